"""Generated sets of jobs that share switches, and the bundled ones."""

import pytest

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.generators.aggregation.slots import HARDWARE
from ddlopt.instances.library.aggregation.slots import instances
from ddlopt.instances.workloads.cluster_models import cluster_model
from ddlopt.models.aggregation import SlotsInstance


def test_sizes_are_those_of_the_published_programs() -> None:
    assert HARDWARE["switchml"] == (16384 // 2, 32 * 2 * 4)
    assert HARDWARE["atp"][0] * HARDWARE["atp"][1] == 5.12e6


def test_jobs_are_the_networks_they_are_named_after() -> None:
    instance = generate("slots", 4, jobs=20, servers=0.5)
    assert isinstance(instance, SlotsInstance)
    for job in instance.jobs:
        assert job.gradient_bytes == cluster_model(job.name.rpartition("-")[0]).gradient_bytes
        assert 5e-6 <= job.rtt_s <= 2e-5
        assert (4 in job.switches) == bool(job.links) == (len(job.switches) > 1)
        if job.fallback_bytes_per_s is not None:
            workers = job.nic_bytes_per_s / job.fallback_bytes_per_s
            assert workers == pytest.approx(round(workers), rel=1e-3)
    assert 0 < sum(job.fallback_bytes_per_s is None for job in instance.jobs) < 20


def test_options_are_heard() -> None:
    options = {"jobs": 5, "racks": 1, "hardware": "atp", "memory": 0.5, "whole": True, "goal": "slowest"}
    instance = generate("slots", 4, name="x", **options)
    assert isinstance(instance, SlotsInstance)
    assert (instance.name, instance.whole, instance.goal, instance.links) == ("x", True, "slowest", ())
    assert [(switch.slots, switch.payload_bytes) for switch in instance.switches] == [(20_000, 128.0)]


def test_bundled_instances_differ_and_are_small() -> None:
    made = list(instances())
    assert len({instance.name for instance in made}) == len(made) >= 8
    assert sum(len(instance.to_json()) for instance in made) < 3e5
    assert {instance.goal for instance in made} == {"total", "slowest"}
