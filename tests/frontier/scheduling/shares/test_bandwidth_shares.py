"""Bandwidths of given rings as a method."""

import numpy as np
import pytest
from scheduling_brute_force import random_instance

from ddlopt.frontier.scheduling.shares.bandwidth_shares import BandwidthSharing
from ddlopt.models.errors import NotApplicableError, SolutionError
from ddlopt.models.scheduling import (
    Fair,
    Job,
    Network,
    RingTiming,
    Run,
    Schedule,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)
from ddlopt.solvers.backends.convex import Convex, ConvexOutcome
from ddlopt.solvers.contracts import Limits, Method, Status

METHOD = BandwidthSharing()


def shared(count=3, **changes):
    """Jobs of two workers on two servers with too few places for them on one."""
    timing = RingTiming(gradient_bytes=2e8, bandwidth_bytes_per_s=3e8, forward_s_per_sample=0.1)
    jobs = tuple(
        Job(
            name=f"{k}",
            min_workers=4,
            max_workers=4,
            timing=timing,
            minibatches=3000.0 * (k + 1),
            utility=Fair(alpha=1, epsilon=0.1),
        )
        for k in range(count)
    )
    data = {
        "name": "shared",
        "slots": 6,
        "slot_s": 10.0,
        "servers": (ServerGroup(count=4, capacity={"gpu": 3.0}),),
        "network": Network(switches=1, links=tuple((server, 4, 1e9) for server in range(4))),
        "jobs": jobs,
        "bandwidth": "shared",
    }
    return SchedulingInstance(**{**data, **changes})


def run(number, **changes):
    data = {"job": number, "start": 0, "slots": 6, "workers": ((0, 2), (1, 2)), "ring": (0, 4, 1, 4)}
    return Run(**{**data, **changes})


TWO = Schedule(
    instance="shared",
    runs=(
        run(0, bandwidth_bytes_per_s=3e8),
        run(1, workers=((0, 1), (1, 1), (2, 2)), ring=(0, 4, 1, 4, 2, 4), bandwidth_bytes_per_s=3e8),
    ),
)


def test_it_makes_a_schedule_and_betters_its_bandwidths():
    instance = shared()
    result = METHOD.solve(instance, Limits(time_s=60))
    assert isinstance(METHOD, Method)
    assert result.status is Status.FEASIBLE
    assert result.checked
    assert result.scope == "bandwidths of given rings"
    assert result.objective <= result.scope_bound <= result.objective * (1 + 1e-5)
    assert result.bound >= result.scope_bound
    assert result.objective > result.trace[0].incumbent * 1.01  # the ring's own bandwidth is a third of a link
    assert result.details["rings"] >= 1
    prices = [row[4] for row in result.details["link_prices"]]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] > 0
    assert result.provenance["solver"].startswith("clarabel ")


@pytest.mark.parametrize("own", [None, 2e8, 9e8])
def test_a_start_keeps_its_rings(own):
    """Whatever its bandwidths: none, some, or more than there is."""
    instance = shared(2)
    runs = tuple(
        run(k, workers=((0, 1), (1, 1), (2, 2)), ring=(0, 4, 1, 4, 2, 4), bandwidth_bytes_per_s=own) for k in range(2)
    )
    runs = tuple(one.model_copy(update={"workers": ((0, 1), (1, 2 - k), (2, 1 + k))}) for k, one in enumerate(runs))
    start = Schedule(instance="shared", runs=runs)
    result = METHOD.solve(instance, Limits(), start=start)
    assert [(one.job, one.workers, one.ring) for one in result.solution.runs] == [
        (one.job, one.workers, one.ring) for one in runs
    ]
    assert sum(one.bandwidth_bytes_per_s for one in result.solution.runs) == pytest.approx(1e9, rel=1e-4)
    before = evaluate(instance, start)
    assert not before.feasible or result.objective > before.objective
    assert result.scope_gap < 1e-5


def test_no_rings_no_program(monkeypatch):
    monkeypatch.setattr(Convex, "solve", None)
    instance = shared(servers=(ServerGroup(count=4, capacity={"gpu": 4.0}),))
    start = Schedule(instance="shared", runs=(run(0, workers=((0, 4),), ring=()),))
    result = METHOD.solve(instance, Limits(), start=start)
    assert result.details["rings"] == 0
    assert result.scope_bound == result.objective


def test_a_solver_that_gives_up_leaves_the_start(monkeypatch):
    """And nothing but a bound that needs no solver."""

    def stopped(self, problem, limits):
        return ConvexOutcome(Status.NO_SOLUTION, None, 0.0, "clarabel 0", "clarabel says: user_limit")

    good = METHOD.solve(shared(), Limits(), start=TWO)
    monkeypatch.setattr(Convex, "solve", stopped)
    result = METHOD.solve(shared(), Limits(), start=TWO)
    assert result.message == "clarabel says: user_limit"
    assert result.status is Status.FEASIBLE
    assert result.objective == pytest.approx(good.trace[0].incumbent)
    assert result.scope_bound >= good.scope_bound * (1 - 1e-9)


def test_a_solver_that_answers_nonsense_is_not_believed(monkeypatch):
    """Zeros with the word optimal: the schedule from before is kept, and the bound stays a bound."""

    def zeros(self, problem, limits):
        for variable in problem.variables():
            variable.save_value(np.zeros(variable.shape))
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                dual.save_value(np.zeros(dual.shape))
        return ConvexOutcome(Status.OPTIMAL, 0.0, 0.0, "clarabel 0")

    good = METHOD.solve(shared(), Limits(), start=TWO)
    monkeypatch.setattr(Convex, "solve", zeros)
    result = METHOD.solve(shared(), Limits(), start=TWO)
    assert result.objective == pytest.approx(good.trace[0].incumbent)
    assert result.scope_bound >= good.scope_bound * (1 - 1e-9)


def test_no_time_at_all():
    start = Schedule(instance="shared", runs=(run(0),))
    result = METHOD.solve(shared(), Limits(time_s=1e-9), start=start)
    assert result.checked
    assert result.scope_bound is None
    assert result.message == "no time was left for the bandwidths"
    assert METHOD.solve(shared(), Limits(time_s=1e-9)).checked


def test_bad_starts():
    instance = shared()
    crowded = Schedule(instance="shared", runs=(run(0), run(1)))
    with pytest.raises(SolutionError, match="the schedule to start from fails the check: capacity at server 0, gpu"):
        METHOD.solve(instance, Limits(), start=crowded)
    with pytest.raises(SolutionError, match="was made for instance"):
        METHOD.solve(instance, Limits(), start=Schedule(instance="other", instance_digest="0" * 64))


def test_what_it_refuses():
    other = random_instance(np.random.default_rng(0), places=(2, 2), network="star")
    with pytest.raises(NotApplicableError, match=r"bandwidth-shares does not cover .* its bandwidth is 'reserved'"):
        METHOD.solve(other, Limits())


def test_jobs_in_one_piece():
    instance = shared(preemptive=False)
    result = METHOD.solve(instance, Limits(time_s=30))
    assert result.checked
    assert result.scope_gap < 1e-5
    assert len({one.job for one in result.solution.runs}) == len(result.solution.runs)
