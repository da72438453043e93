"""Interchangeable slots counted together in one pool: no schedule is better, and whole widths count."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, some

from ddlopt.frontier.scheduling.shares.fair_shares import FairSharing
from ddlopt.frontier.scheduling.shares.pooled import covers, pooled_bound
from ddlopt.instances import load
from ddlopt.models.scheduling import Capped, Job, PolluxTiming, SchedulingInstance, ServerGroup
from ddlopt.solvers.contracts import Limits

SHAPES = {
    "plain": {},
    "deadlines": {"deadlines": True, "min_workers": True, "latency": True},
    "star": {"places": (2, 2), "network": "star"},
    "mesh": {"places": (2, 1, 1), "network": "mesh"},
    "contention": {"places": (2, 2), "contention": True},
    "uneven": {"places": (3, 2), "uneven": True},
}
CASES = [(seed, shape) for seed in range(40) for shape in SHAPES]


@for_each("seed, shape", some(CASES, 18))
def test_no_schedule_is_better(seed, shape):
    instance = random_instance(np.random.default_rng(seed), utilities=("capped",), **SHAPES[shape])
    assert covers(instance)
    assert pooled_bound(instance, Limits(time_s=60)) >= brute_force(instance).objective * (1 - 1e-6)


def test_widths_are_whole():
    # Nine places in three slots hold four pairs of workers, where half a pair more would fit in fractions.
    timing = PolluxTiming(compute_s=1.0)
    pair = {"min_workers": 2, "max_workers": 2, "timing": timing, "minibatches": 6.0, "utility": Capped(value=1.0)}
    servers = (ServerGroup(capacity={"gpu": 3.0}),)
    jobs = (Job(name="a", **pair), Job(name="b", **pair))
    instance = SchedulingInstance(name="whole", slots=3, slot_s=1.0, servers=servers, jobs=jobs)
    assert pooled_bound(instance, Limits(time_s=60)) == pytest.approx(4 * instance.progress(0, 2) / 6.0, rel=1e-3)


@pytest.mark.slow
def test_a_method_has_it_where_bandwidth_is_shared():
    instance = load("scheduling/contended-shared-j10-t4-s4")
    found = FairSharing(sweeps=0).solve(instance, Limits(time_s=60))
    assert found.objective <= found.bound < 57.03  # that of prices is 57.08
