"""Slots counted together: the bound holds for every schedule, and the search ends at the optimum."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, some

from ddlopt import load
from ddlopt.frontier.scheduling.shares.fair_shares import FairSharing
from ddlopt.frontier.scheduling.slot_counts.slot_counts import SlotCounts
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import Capped, Job, PolluxTiming, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.network import Network
from ddlopt.solvers.contracts import Limits, Status

METHOD = SlotCounts()
ENOUGH = Limits(time_s=300)
SHAPES = {
    "plain": {},
    "deadlines": {"deadlines": True, "min_workers": True, "latency": True},
    "star": {"places": (2, 2), "network": "star"},
    "mesh": {"places": (2, 1, 1), "network": "mesh"},
    "uneven": {"places": (3, 2), "uneven": True},
}


CASES = [(seed, shape) for seed in range(40) for shape in SHAPES]


@for_each("seed, shape", some(CASES, 6))
def test_it_ends_at_the_optimum_of_trying_everything(seed, shape):
    instance = random_instance(np.random.default_rng(seed), **SHAPES[shape])
    best, found = brute_force(instance), METHOD.solve(instance, ENOUGH)
    assert found.checked
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best.objective, rel=1.1e-4, abs=1e-9)
    assert found.bound >= best.objective * (1 - 1e-6)


def test_utilities_in_small_units_are_bounded_as_well():
    """Of costs below 1e-9 solvers make none, and a bound would pass the optimum."""
    instance = random_instance(np.random.default_rng(3), **SHAPES["uneven"])
    small = instance.changed(
        jobs=tuple(
            job.model_copy(update={"utility": job.utility.model_copy(update={"value": job.utility.value * 2.0**-30})})
            for job in instance.jobs
        )
    )
    best, found = METHOD.solve(instance, ENOUGH), METHOD.solve(small, ENOUGH)
    assert found.status is Status.OPTIMAL
    assert found.objective * 2.0**30 == pytest.approx(best.objective)
    assert found.bound >= found.objective


def narrow(slots):
    """Two servers with a place each, three jobs that are faster on both: one of them runs in a slot, or two alone."""
    timing = RingTiming(gradient_bytes=1.0, bandwidth_bytes_per_s=1.0, forward_s_per_sample=1.0)
    jobs = tuple(
        Job(name=f"job-{i}", min_workers=2, max_workers=2, timing=timing, minibatches=4.0, utility=Capped(value=1.0))
        for i in range(3)
    )
    network = Network(links=((0, 1, 1.0),))
    servers = (ServerGroup(count=2, capacity={"gpu": 1.0}),)
    return SchedulingInstance(name="narrow", slots=slots, slot_s=2.0, servers=servers, network=network, jobs=jobs)


def test_alike_slots_need_one_program():
    # A mini-batch of each worker takes 2 s: 2 of the 4 wanted in a slot, whichever job it is.
    found = METHOD.solve(narrow(5), ENOUGH)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(2.5)
    assert found.details["programs"] <= 2


def test_a_start_is_kept_where_nothing_is_better():
    start = METHOD.solve(narrow(3), ENOUGH).solution
    again = METHOD.solve(narrow(3), ENOUGH, start=start)
    assert again.objective == pytest.approx(1.5)
    assert again.details["programs"] == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": "makespan"}, "the objective is 'makespan'"),
        ({"preemptive": False}, "in one piece"),
        ({"energy_price_per_j": 1.0}, "energy has a price"),
    ],
)
def test_refusals(change, words):
    fields = {name: getattr(narrow(2), name) for name in SchedulingInstance.model_fields}
    with pytest.raises(NotApplicableError, match=words):
        METHOD.solve(SchedulingInstance(**{**fields, **change}), ENOUGH)


@for_each("seed", some(range(8), 1))
def test_where_bandwidth_is_shared_it_is_no_worse_than_own_bandwidths_and_other_rules(seed):
    shape = ("star", "mesh")[seed % 2]
    instance = random_instance(np.random.default_rng(seed), places=(2, 2), network=shape)
    best = brute_force(instance).objective
    shared = instance.model_copy(update={"bandwidth": "shared"})
    found = METHOD.solve(shared, ENOUGH)
    assert found.checked
    assert found.bound >= found.objective >= max(best, FairSharing().solve(shared, ENOUGH).objective) * (1 - 1.1e-4)


@pytest.mark.parametrize(("name", "programs"), [("leaf-spine-j20-t10-s8", 200), ("contended-shared-j10-t4-s4", 20)])
@pytest.mark.slow
def test_plans_near_the_bound_are_a_schedule(name, programs):
    """Slots one by one and all together end far from it."""
    found = METHOD.solve(load(f"scheduling/{name}"), Limits(time_s=900))
    assert found.status is Status.OPTIMAL
    assert found.details["programs"] < programs


def test_one_that_has_all_it_wants_needs_no_program():
    jobs = (Job(name="a", max_workers=1, timing=PolluxTiming(compute_s=1.0), minibatches=1.0),)
    servers = (ServerGroup(capacity={"gpu": 1.0}),)
    found = METHOD.solve(SchedulingInstance(name="one", slots=1, slot_s=2.0, servers=servers, jobs=jobs), ENOUGH)
    assert found.objective == pytest.approx(1.0)


def test_it_begins_at_what_rounded_shares_of_time_find():
    """A gap that they reach is reached without a program, which a search from no schedule needs."""
    instance = load("scheduling/leaf-spine-j20-t10-s8")
    first = FairSharing().solve(instance, Limits(time_s=300, gap=0.495))
    found = SlotCounts(bound=False).solve(instance, Limits(time_s=300, gap=0.99))
    assert found.objective == pytest.approx(first.objective)
    assert found.details["programs"] == 0
