"""Shares of time as a method."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import some

from ddlopt import load
from ddlopt.frontier.scheduling.formulations.fair_shares import TimeShare
from ddlopt.frontier.scheduling.shares import fair_shares
from ddlopt.frontier.scheduling.shares.fair_shares import FairSharing, in_store
from ddlopt.instances.generators import generate
from ddlopt.models.errors import NotApplicableError, SolutionError
from ddlopt.models.scheduling import Capped, Job, PolluxTiming, Run, Schedule, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.backends.convex import Convex, ConvexOutcome
from ddlopt.solvers.contracts import Limits, Method, Status
from ddlopt.solvers.heuristic import Asked
from ddlopt.solvers.scheduling.gadget import Gadget

METHOD = FairSharing()
LINEAR = PolluxTiming(compute_s=1.0)


def job(name, wanted, **more):
    return Job(name=name, **{"max_workers": 2, "timing": LINEAR, "minibatches": wanted, **more})


def cluster(*jobs, slots=2, gpus=2.0, **more):
    servers = (ServerGroup(capacity={"gpu": gpus}),)
    return SchedulingInstance(name="few", slots=slots, slot_s=1.0, servers=servers, jobs=jobs, **more)


def departing():
    """Greedy takes the job that could wait, and is left with half."""
    return cluster(job("waits", 2.0, utility=Capped(value=1.001)), job("leaves", 2.0, deadline=1))


def test_it_lets_the_job_that_leaves_go_first():
    result = METHOD.solve(departing(), Limits())
    assert isinstance(METHOD, Method)
    assert Gadget().solve(departing(), Limits()).objective == pytest.approx(1.001)
    assert result.objective == pytest.approx(2.001)
    assert FairSharing(sweeps=0).solve(departing(), Limits()).objective == pytest.approx(2.001)
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.details["relaxation"] == pytest.approx(2.001)
    assert result.provenance["solver"].startswith("clarabel ")


SHAPES = {
    "plain": {},
    "deadlines": {"deadlines": True, "min_workers": True, "latency": True},
    "all": {"utilities": ("capped", "all_or_nothing")},
    "star": {"places": (2, 2), "network": "star"},
    "mesh": {"places": (2, 1, 1), "network": "mesh"},
    "contention": {"places": (2, 2), "contention": True},
    "energy": {"places": (4,), "energy": True},
    "uneven": {"places": (3, 2), "uneven": True},
    "max_min": {"objective": "max_min"},
}


@pytest.mark.parametrize("shape", some(SHAPES, ["plain", "contention", "max_min"]))
def test_between_greedy_and_the_optimum(shape):
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(10):
        instance = random_instance(rng, **SHAPES[shape])
        result = METHOD.solve(instance, Limits(time_s=60))
        best = brute_force(instance).objective
        assert result.checked
        assert result.objective <= best + 1e-9
        assert result.bound >= best - 1e-9
        if pool(instance).exact and instance.objective == "utility":
            assert result.objective >= Gadget().solve(instance, Limits()).objective - 1e-5 * abs(best)
        ratios.append(result.objective / best if best > 0 else 1.0)
    assert np.mean(ratios) > 0.93
    assert max(ratios) == pytest.approx(1)


def test_sweeps_only_help():
    gained = 0
    for seed in range(4):
        instance = generate("scheduling", "elastic", seed=seed, jobs=20, slots=15, gpus=16)
        none, many = (FairSharing(sweeps=count).solve(instance, Limits()) for count in (0, 10))
        assert none.details["sweeps"] == 0
        assert 0 < many.details["sweeps"] <= 20
        assert many.objective >= none.objective
        incumbents = [point.incumbent for point in many.trace]
        assert incumbents == sorted(incumbents)
        gained += many.objective > none.objective * (1 + 1e-9)
    assert gained >= 2


def test_a_start_is_never_made_worse():
    instance = departing()
    best = METHOD.solve(instance, Limits()).solution
    no_time = METHOD.solve(instance, Limits(time_s=1e-9), start=best)
    assert no_time.solution == best
    assert no_time.objective == pytest.approx(2.001)
    wide = Schedule(instance="few", runs=(Run(job=0, start=0, slots=1, workers=((0, 3),)),))
    with pytest.raises(SolutionError, match="the schedule to start from fails the check: width_is_allowed"):
        METHOD.solve(instance, Limits(), start=wide)


def test_a_solver_that_gives_up_leaves_the_greedy_schedule(monkeypatch):
    def stopped(self, problem, limits):
        return ConvexOutcome(Status.NO_SOLUTION, None, 0.0, "clarabel 0", "clarabel says: user_limit")

    instance = random_instance(np.random.default_rng(3), jobs=6, slots=6)
    good = METHOD.solve(instance, Limits())
    monkeypatch.setattr(Convex, "solve", stopped)
    result = METHOD.solve(instance, Limits())
    assert result.message == "clarabel says: user_limit"
    assert result.objective >= Gadget().solve(instance, Limits()).objective - 1e-6
    assert result.bound >= good.objective
    assert "relaxation" not in result.details


def test_a_solver_that_answers_nonsense_is_not_believed(monkeypatch):
    def zeros(self, problem, limits):
        for variable in problem.variables():
            variable.save_value(np.zeros(variable.shape))
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                dual.save_value(np.zeros(dual.shape))
        return ConvexOutcome(Status.OPTIMAL, 0.0, 0.0, "clarabel 0")

    instance = random_instance(np.random.default_rng(4))
    best = brute_force(instance).objective
    monkeypatch.setattr(Convex, "solve", zeros)
    result = METHOD.solve(instance, Limits())
    assert result.objective <= best <= result.bound
    assert evaluate(instance, result.solution).feasible


def test_what_is_in_store():
    instance = cluster(job("a", 9.0), job("b", 9.0), slots=3)
    shares = [TimeShare(0, 2, 0, 2, 0.5), TimeShare(0, 1, 1, 3, 0.25), TimeShare(1, 2, 2, 3, 1.0)]
    assert in_store(instance, shares).T.tolist() == [[2.5, 1.5, 0.25, 0.0], [2.0, 2.0, 2.0, 0.0]]


def test_what_it_refuses(monkeypatch):
    rigid = departing().model_copy(update={"preemptive": False})
    with pytest.raises(NotApplicableError, match="fair-shares does not cover 'few': jobs run in one piece"):
        METHOD.solve(rigid, Limits())
    times = departing().model_copy(update={"objective": "makespan"})
    assert METHOD.refuses(times) == "objective 'makespan' is no concave function of progress"
    monkeypatch.setattr(fair_shares, "_LARGEST", 5)
    assert METHOD.refuses(departing()) == "it has some 6 shares of jobs in intervals, more than 5"


def test_rings_get_their_best_bandwidths_where_they_are_shared_out():
    found = METHOD.solve(load("scheduling/tiny-shared"), Limits())
    assert found.objective == pytest.approx(2.29)
    assert found.status is Status.OPTIMAL


def test_there_is_a_schedule_when_the_program_takes_all_the_time(monkeypatch):
    """On large instances that was an empty one, as what follows the shares stops with the clock, too."""
    solve, clock = Convex.solve, Asked(lambda: bool(late))
    late = []

    def slow(*given):
        late.append(True)
        return solve(*given)

    monkeypatch.setattr(Convex, "solve", slow)
    found = METHOD.find(departing(), Limits(), 0, clock, None)
    assert evaluate(departing(), found.solution).objective == pytest.approx(1.001)
