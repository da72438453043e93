"""Jobs on shared cards: where the contention model is exact, and where sharing is kinder than it says."""

import pytest

import ddlopt
from ddlopt.analysis.simulation.contention import busiest_slot, contended
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance
from tests.helpers.refusals import one_line


def cluster(jobs, **timing):
    """Two servers of four GPUs each; jobs of two workers that are alike but for what is said."""
    alike = {"kind": "ring", "gradient_bytes": 8.0, "bandwidth_bytes_per_s": 4.0, "forward_s_per_sample": 1.0}
    return SchedulingInstance.from_data(
        {
            "name": "cards",
            "slots": 2,
            "slot_s": 60.0,
            "servers": [{"count": 2, "capacity": {"gpu": 4}}],
            "contention": {
                "between_servers_bytes_per_s": 4.0,
                "within_server_bytes_per_s": 100.0,
                "server_overhead_s": 0.25,
            },
            "jobs": [
                {"name": f"job-{k}", "max_workers": 2, "timing": alike | timing | own, "minibatches": 10.0}
                for k, own in enumerate(jobs)
            ],
        }
    )


def split(count):
    runs = tuple(Run(job=k, start=0, slots=1, workers=((0, 1), (1, 1))) for k in range(count))
    return Schedule(instance="cards", runs=runs)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_jobs_in_step_share_as_the_model_says(count):
    """1 s of computation, 0.5 s of overhead, 8 bytes over a card of rate 4 / count; alike, they send at one time."""
    for found in contended(cluster([{}] * count), split(count), 0):
        assert found.predicted_s == pytest.approx(1.5 + 2.0 * count, rel=1e-12)
        assert found.simulated_s == pytest.approx(found.predicted_s, rel=1e-9)
        assert found.competitors == count


def test_reduction_and_latency_take_time_without_bandwidth():
    (found,) = contended(cluster([{}], reduction_bytes_per_s=2.0, latency_s=0.125), split(1), 0)
    assert found.simulated_s == pytest.approx(found.predicted_s, rel=1e-9)
    assert found.predicted_s == pytest.approx(1.5 + 2.0 + 2.0 + 0.25, rel=1e-12)


def test_jobs_that_compute_long_hardly_meet():
    """The model has each of two jobs send at half the rate at all times; most of the time the other computes."""
    jobs = contended(cluster([{"forward_s_per_sample": 40.0}, {"forward_s_per_sample": 61.0}]), split(2), 0)
    assert all(job.simulated_s < job.predicted_s for job in jobs)
    assert all(job.simulated_s >= alone for job, alone in zip(jobs, (42.5, 63.5), strict=True))


def test_the_busiest_slot():
    runs = [Run(job=k, start=k, slots=2 - k, workers=((0, 1), (1, 1))) for k in range(2)]
    assert busiest_slot(Schedule(instance="cards", runs=tuple(runs))) == 1
    assert contended(cluster([{}]), Schedule(instance="cards"), busiest_slot(Schedule(instance="cards"))) == []


def test_without_contention_is_one_line():
    with one_line(NotApplicableError, "has no contention"):
        contended(ddlopt.load("scheduling/departures-half"), Schedule(instance="departures-half"), 0)
