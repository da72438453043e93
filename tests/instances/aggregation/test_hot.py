"""Generated and bundled hot sets."""

import numpy as np
import pytest

from ddlopt.instances.generators import generate
from ddlopt.instances.library.aggregation.hot import instances
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, zipf_frequencies


def made(seed: int = 0, **options):
    return generate("aggregation", "hot-zipf", seed=seed, **options)


def test_one_job_is_as_stated() -> None:
    instance = made(parameters=1000, workers=8, memory=0.05)
    job = instance.jobs[0]
    assert (job.workers, job.iterations_per_s, instance.switches[0].registers) == (8, 1.0, 50)
    stated = zipf_frequencies(10, CRITEO_SAMPLE.of_size(1000))
    assert np.sort(job.frequencies) == pytest.approx(np.sort(stated), rel=1e-3)


def test_racks_share_out_workers_and_registers() -> None:
    instance = made(seed=3, jobs=3, parameters=300, workers=16, switches=4, racks=True, widths=(1, 2), memory=0.1)
    assert [sum(own) for own in zip(*instance.passing, strict=True)] == [job.workers for job in instance.jobs]
    total = 0.1 * sum(int(job.widths.sum()) for job in instance.jobs)
    registers = [switch.registers for switch in instance.switches]
    assert total - 5 < sum(registers) <= total
    assert min(registers) >= int(total / 8)
    assert {int(width) for job in instance.jobs for width in job.widths} == {1, 2}


def test_bundled_instances_are_small_and_of_all_sorts() -> None:
    bundled = list(instances())
    assert len({instance.name for instance in bundled}) == len(bundled) >= 8
    assert sum(len(instance.to_json()) for instance in bundled) < 400_000
    assert {len(instance.switches) for instance in bundled} >= {1, 2, 4, 8}
    assert any(job.saved_messages is not None for instance in bundled for job in instance.jobs)
