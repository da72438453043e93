"""Policies on several types of accelerators: by hand, never above the optimum, and their shares."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, seeds

from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import RingTiming, SchedulingInstance, evaluate
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.methods import default_method
from ddlopt.solvers.scheduling.online.baselines import Fifo, LeastAttainedService, ShortestRemainingTime
from ddlopt.solvers.scheduling.online.engine import UnfinishedError
from ddlopt.solvers.scheduling.online.gavel import Gavel
from ddlopt.solvers.scheduling.online.time_shares import cost_shares, finish_time_shares
from ddlopt.solvers.scheduling.online.type_places import TypePlaces
from ddlopt.solvers.scheduling.online.typed_rounds import isolated_shares
from ddlopt.solvers.scheduling.slot.packing import Place

ALL = (
    Fifo(),
    ShortestRemainingTime(),
    LeastAttainedService(),
    *map(Gavel, ("max_min", "makespan", "finish_time", "cost")),
)
LINEAR = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
"""One mini-batch a second for every worker."""


def instance(jobs, gpus, slots=20, slot_s=1000.0, **fields):
    """Jobs (width, minibatches, speeds, arrival) on one server of each type; slots of half a reset of Gavel's."""
    made = [
        {
            "name": f"job-{place}", "arrival": arrival, "min_workers": width, "max_workers": width, "timing": LINEAR,
            "minibatches": wanted * slot_s, "speeds": dict(zip(gpus, speeds, strict=True)),
        }
        for place, (width, wanted, speeds, arrival) in enumerate(jobs)
    ]  # fmt: skip
    servers = [{"capacity": {"gpu": count}, "type": name, "worker_w": 1.0} for name, count in gpus.items()]
    data = {"name": "hand", "slots": slots, "slot_s": slot_s, "servers": servers, "jobs": made, "mixed_types": False}
    return SchedulingInstance.from_data(data | fields)


def places(method, asked):
    """(T, I) server by slot and job, -1 for none."""
    found, _ = method.answer(asked, 0, Clock(Limits(), None), None)
    assert evaluate(asked, found).violations == ()
    table = np.full((asked.slots, len(asked.jobs)), -1)
    for run in found.runs:
        ((server, count),) = run.workers
        assert count == asked.jobs[run.job].max_workers
        table[run.start : run.end, run.job] = server
    return table


def test_orders_take_the_fastest_type_that_has_room():
    asked = instance([(1, 2, (0.5, 1.0), 0), (1, 2, (1.0, 0.9), 0), (1, 1, (0.0, 1.0), 0)], {"a": 1, "b": 1})
    # The third can run on b only, which the first has.
    assert places(Fifo(), asked)[:4].tolist() == [[1, 0, -1], [1, 0, -1], [-1, -1, 1], [-1, -1, -1]]
    # The shortest on its fastest type comes first, and the first job has what is left.
    assert places(ShortestRemainingTime(), asked)[:3].tolist() == [[0, -1, 1], [1, 0, -1], [1, 0, -1]]


def test_what_jobs_take_of_a_type_is_gone_and_who_may_not_overtake_waits():
    asked = instance([(1, 2, (1.0, 0.5), 0), (2, 2, (1.0, 0.5), 0), (1, 2, (0.5, 1.0), 0)], {"a": 3, "b": 2})
    twice = [
        job.model_copy(update={"demand": {"gpu": demand}}) for job, demand in zip(asked.jobs, (2, 1, 1), strict=True)
    ]
    types = TypePlaces(asked.changed(jobs=twice))
    first, wide, third = Place(((0, 1),)), Place(((1, 2),)), Place(((1, 1),))
    # Where the first is, a has room for one more, not for two.
    assert types.admit_fastest([0, 1, 2], {}) == {0: first, 1: wide, 2: first}
    assert types.admit_fastest([1, 2], {0: first}) == {1: wide, 2: first}
    assert types.admit_fastest([0, 2, 1], {}) == {0: first, 2: third}
    assert types.admit_fastest([1, 0, 2], {}) == {1: Place(((0, 2),)), 0: third, 2: first}
    for skip, found in ((True, {2: third}), (False, {})):
        assert types.admit_fastest([1, 2], {1: Place(((0, 2), (1, 1)))}, skip) == found


def test_gavel_gives_each_the_type_that_suits_it():
    asked = instance([(1, 4, (1.0, 0.1), 0), (1, 2, (0.5, 0.5), 0)], {"a": 1, "b": 1}, objective="makespan")
    table = places(Gavel("makespan"), asked)
    assert table[:4].tolist() == [[0, 1]] * 4


def test_gavel_alternates_by_what_was_had():
    # Half of the time each on the fast type; the other half on the slow one.
    asked = instance([(1, 30, (1.0, 0.5), 0), (1, 30, (1.0, 0.5), 0)], {"a": 1, "b": 1}, slots=12)
    table = places(Gavel("max_min"), asked)
    assert abs((table == 0).sum(axis=0) - 6).max() <= 1
    assert ((table >= 0).sum(axis=1) == 2).all()


def test_new_jobs_wait_for_the_reset_if_there_is_no_room():
    # A reset takes two slots of 1000 s at least: who comes in slot 1 has no share before slot 2.
    asked = instance([(1, 30, (1.0,), 0), (1, 30, (1.0,), 1)], {"a": 1}, slots=8)
    table = places(Gavel("max_min"), asked)
    assert table[1].tolist() == [0, -1]
    assert (table[2:6] == 0).sum(axis=0).min() >= 1
    at_once = places(Gavel("max_min", reset_s=0.0), asked)
    assert at_once[1:3].tolist() in ([[0, -1], [-1, 0]], [[-1, 0], [0, -1]])


@pytest.mark.parametrize("method", ALL, ids=lambda one: one.name)
@for_each("seed", seeds(4, 60))
def test_never_above_the_optimum(method, seed):
    objective = ("utility", "max_min", "makespan", "completion")[seed % 4]
    asked = random_instance(
        np.random.default_rng(seed), objective=objective, types=("mixed", "apart")[seed % 2], places=(2, 2),
        energy=True, preemptive=seed % 3 > 0,
    )  # fmt: skip
    if not asked.accelerators.matter or method.refuses(asked) is not None:
        return
    try:
        result = method.solve(asked, Limits())
    except UnfinishedError:
        return
    best = brute_force(asked).objective
    assert result.checked
    sign = 1 if asked.sense == "maximize" else -1
    assert sign * float(result.objective) <= sign * best + 1e-9
    assert sign * PROBLEM.tightest_bound(asked) >= sign * best - 1e-9


def test_refusals():
    wide = instance([(3, 2, (1.0, 1.0), 0)], {"a": 3, "b": 2})
    assert Fifo().refuses(wide) is None
    mixed = SchedulingInstance.from_data(
        wide.model_dump() | {"mixed_types": True, "servers": [{"capacity": {"gpu": 2}, "type": t} for t in "ab"]}
    )
    assert "wider than any type" in Fifo().refuses(mixed)
    assert "price" in Gavel("cost").refuses(wide)
    flat = instance([(1, 2, (1.0,), 0)], {"a": 1})
    plain = flat.model_copy(update={"jobs": tuple(job.model_copy(update={"speeds": {}}) for job in flat.jobs)})
    assert "types make no difference" in Gavel("finish_time").refuses(plain)
    assert Gavel("makespan").refuses(plain) is None
    assert "reset_s is for several types" in Gavel(reset_s=0.0).refuses(plain)
    for odd in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="reset_s is"):
            Gavel(reset_s=odd)


@pytest.mark.parametrize(
    ("objective", "name"),
    [("makespan", "gavel:goal=makespan"), ("completion", "srtf"), ("finish_time_fairness", "srtf")],
)
def test_large_instances_with_times_have_a_default(objective, name):
    jobs = [(1, 5, (1.0, 0.5), 0)] * 60
    data = instance(jobs, {"a": 4, "b": 4}, slots=2000).model_dump() | {"objective": objective}
    for job in data["jobs"] if objective == "finish_time_fairness" else ():
        job["fair_s"] = 1e5
    asked = SchedulingInstance.from_data(data)
    assert default_method(asked) == name


def test_finish_time_shares_are_the_least_ratio():
    rng = np.random.default_rng(0)
    for _ in range(5):
        throughputs = rng.uniform(0.2, 2, (4, 2))
        widths, accelerators = rng.choice([1.0, 2.0], 4), np.array([2.0, 3.0])
        steps, waited = rng.uniform(5, 20, 4), rng.uniform(0, 5, 4)
        alone = waited + steps / (throughputs * isolated_shares(widths, accelerators)).sum(axis=1)
        shares, level = finish_time_shares(throughputs, widths, accelerators, steps, waited, alone)
        assert (shares.sum(axis=1) <= 1 + 1e-9).all()
        assert (widths @ shares <= accelerators + 1e-9).all()
        ratios = (waited + steps / (throughputs * shares).sum(axis=1)) / alone
        assert ratios.max() <= level * (1 + 1e-6)
        assert level <= 1 + 1e-3  # its part of the cluster is a solution
        # Nobody at a lower ratio: at 0.99 of it the shares of time do not suffice.
        less = steps / (0.99 * level * alone - waited)
        needed = max(_least_scale(throughputs, widths, accelerators, less, rng), 0.0)
        assert needed < 1


@for_each("jobs", [1, 2, 5])
def test_the_ratio_of_jobs_that_are_alike_is_by_hand(jobs):
    # Each has an equal part of one accelerator, 5 s ago it came, and alone it would take 4 s.
    every = np.ones(jobs)
    shares, level = finish_time_shares(2 * every[:, None], every, np.ones(1), 10 * every, 5 * every, 4 * every)
    assert level == pytest.approx((5 + jobs * 10 / 2) / 4, rel=2e-3)
    assert level >= (5 + jobs * 10 / 2) / 4 * (1 - 1e-9)
    assert shares.ravel() == pytest.approx(every / jobs, rel=2e-2)


def test_what_makes_no_shares_is_one_line():
    one, two = np.ones(1), np.ones(2)
    idle = np.array([[1.0], [0.0]])
    with pytest.raises(OptionError, match="job 1 has throughput on no type"):
        finish_time_shares(idle, two, one, two, two, two)
    with pytest.raises(OptionError, match="job 1 has throughput on no type"):
        cost_shares(idle, two, one, one)
    for steps, alone in ((np.array([1.0, 0.0]), two), (two, np.array([1.0, 0.0]))):
        with pytest.raises(OptionError, match="job 1 has a width or number of steps that is not positive"):
            finish_time_shares(two[:, None], two, one, steps, two, alone)
    with pytest.raises(OptionError, match="throughputs are 2 x 1"):
        finish_time_shares(two[:, None], two, one, one, two, two)


def _least_scale(throughputs, widths, accelerators, need, rng):
    """The largest level over many random shares, none of which may reach 1."""
    best = 0.0
    for _ in range(3000):
        shares = rng.dirichlet(np.ones(3), 4)[:, :2]
        shares = shares / np.maximum(1.0, widths @ shares / accelerators)
        best = max(best, float(((throughputs * shares).sum(axis=1) / need).min()))
    return best


def test_cost_shares_prefer_cheap_throughput():
    shares, level = cost_shares(np.array([[2.0, 1.0]]), np.ones(1), np.ones(2), np.array([4.0, 1.0]))
    assert shares.tolist() == [[0.0, 1.0]]
    assert level == 1
    with pytest.raises(OptionError, match="type 1 costs nothing"):
        cost_shares(np.ones((1, 2)), np.ones(1), np.ones(2), np.array([1.0, 0.0]))
