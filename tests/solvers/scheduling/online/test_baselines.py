"""Baselines: what each of them does on cases by hand, that none beats the optimum, and shares of time."""

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from benchmarks.scheduling.gavel_makespan import bisection, jobs
from ddlopt.models.errors import OptionError, SolverError
from ddlopt.models.scheduling import Capped, SchedulingInstance, evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.online.allox import AlloX
from ddlopt.solvers.scheduling.online.baselines import Fifo, LeastAttainedService, ShortestRemainingTime
from ddlopt.solvers.scheduling.online.gavel import Gavel
from ddlopt.solvers.scheduling.online.time_shares import makespan_shares, max_min_shares
from ddlopt.solvers.scheduling.online.worker_by_worker import DominantResourceFairness, Optimus

ALL = (
    Fifo(),
    ShortestRemainingTime(),
    LeastAttainedService(),
    LeastAttainedService(thresholds_s=(2.0,)),
    DominantResourceFairness(),
    Optimus(),
    AlloX(),
    Gavel("max_min"),
    Gavel("makespan"),
)
LINEAR = {"kind": "ring", "gradient_bytes": 0, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 1}
"""One mini-batch a second for every worker."""


def instance(jobs, gpus, slots=20, **fields):
    """Jobs (name, arrival, min, max, minibatches) on one server with slots of a second."""
    made = [
        {"name": n, "arrival": a, "min_workers": low, "max_workers": high, "minibatches": f, "timing": LINEAR}
        for n, a, low, high, f in jobs
    ]
    data = {"name": "hand", "slots": slots, "slot_s": 1.0, "servers": [{"capacity": {"gpu": gpus}}], "jobs": made}
    return SchedulingInstance.from_data(data | fields)


def schedule(method, problem):
    found, _ = method.answer(problem, 0, Clock(Limits(), None), None)
    assert evaluate(problem, found).violations == ()
    return found


def widths(method, problem):
    """(T, I) workers by slot and job."""
    table = np.zeros((problem.slots, len(problem.jobs)), dtype=int)
    for run in schedule(method, problem).runs:
        table[run.start : run.end, run.job] = run.width
    return table


def test_fifo_lets_nobody_pass():
    problem = instance([("a", 0, 2, 2, 4), ("wide", 0, 3, 3, 3), ("b", 1, 1, 1, 1)], gpus=3)
    assert widths(Fifo(), problem)[:4].tolist() == [[2, 0, 0], [2, 0, 0], [0, 3, 0], [0, 0, 1]]


def test_srtf_pushes_the_long_job_aside():
    problem = instance([("long", 0, 2, 2, 8), ("short", 1, 2, 2, 2)], gpus=2)
    assert widths(ShortestRemainingTime(), problem)[:5].tolist() == [[2, 0], [0, 2], [2, 0], [2, 0], [2, 0]]


def test_srtf_counts_slots_and_not_work():
    problem = instance([("narrow", 0, 1, 1, 4), ("wide", 0, 2, 2, 6)], gpus=2)
    assert widths(ShortestRemainingTime(), problem)[:4].tolist() == [[0, 2], [0, 2], [0, 2], [1, 0]]


def test_thresholds_of_las_are_worker_seconds():
    problem = instance([("a", 0, 2, 2, 20), ("b", 0, 2, 2, 20)], gpus=2, slot_s=2.0)
    queues = LeastAttainedService(thresholds_s=(8.0,))
    assert widths(queues, problem)[:4].tolist() == [[2, 0], [2, 0], [0, 2], [0, 2]]


def test_las_serves_who_had_least():
    problem = instance([("a", 0, 2, 2, 4), ("b", 0, 2, 2, 4)], gpus=2)
    assert widths(LeastAttainedService(), problem)[:4].tolist() == [[2, 0], [0, 2], [2, 0], [0, 2]]
    queues = LeastAttainedService(thresholds_s=(4.0,))
    assert widths(queues, problem)[:4].tolist() == [[2, 0], [2, 0], [0, 2], [0, 2]]


def test_drf_equalises_dominant_shares():
    """Worker-seconds of two resources as in the paper's example: 9 CPUs and 18 GB; (1, 4) and (3, 1) for a task."""
    jobs = [
        {"name": n, "max_workers": 3, "minibatches": 100, "timing": LINEAR, "demand": demand}
        for n, demand in (("a", {"cpu": 1, "gb": 4}), ("b", {"cpu": 3, "gb": 1}))
    ]
    data = {"name": "drf", "slots": 1, "slot_s": 1.0, "servers": [{"capacity": {"cpu": 9, "gb": 18}}], "jobs": jobs}
    assert widths(DominantResourceFairness(), SchedulingInstance.from_data(data)).tolist() == [[3, 2]]


def demanding(jobs, capacity):
    """Jobs (demand, least and most workers, mini-batches) on one server in one slot."""
    made = [
        {"name": str(n), "min_workers": low, "max_workers": high, "minibatches": left, "timing": LINEAR}
        | {"demand": demand}
        for n, (demand, low, high, left) in enumerate(jobs)
    ]
    data = {"name": "hand", "slots": 1, "slot_s": 1.0, "servers": [{"capacity": capacity}], "jobs": made}
    return SchedulingInstance.from_data(data)


def test_drf_and_optimus_look_at_the_resource_of_which_a_job_takes_most():
    # Of 18 CPUs and 9 GB the first takes 4/9 by a worker and the second 1/6: that is behind until it has three.
    jobs = [({"cpu": 1, "gb": 4}, 1, 2, 100), ({"cpu": 3, "gb": 1}, 1, 6, 100)]
    for method in (DominantResourceFairness(), Optimus()):
        assert widths(method, demanding(jobs, {"cpu": 18, "gb": 9})).tolist() == [[1, 5]]


def test_drf_gives_twice_as_much_to_who_is_worth_twice_as_much():
    problem = instance([("a", 0, 1, 6, 100), ("b", 0, 1, 6, 100)], gpus=6, slots=1)
    first, second = problem.jobs
    worth = first.model_copy(update={"utility": Capped(value=2.0)})
    problem = problem.changed(jobs=[worth, second.model_copy(update={"utility": Capped(value=1.0)})])
    assert widths(DominantResourceFairness(), problem).tolist() == [[4, 2]]


def test_optimus_stops_at_a_second_worker_that_gains_nothing():
    """With 10 s of communication from the second worker on, two workers are slower than one, and 16 much faster."""
    slow = {"kind": "ring", "gradient_bytes": 10, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 1}
    job = {"name": "a", "max_workers": 64, "minibatches": 1000, "timing": slow}
    data = {"name": "trap", "slots": 1, "slot_s": 1.0, "servers": [{"capacity": {"gpu": 64}}], "jobs": [job]}
    problem = SchedulingInstance.from_data(data)
    assert problem.progress(0, 64) > 3 * problem.progress(0, 1) > 3 * problem.progress(0, 2)
    assert widths(Optimus(), problem).tolist() == [[1]]


def test_optimus_gives_workers_where_they_shorten_most():
    problem = instance([("long", 0, 1, 3, 30), ("short", 0, 1, 3, 3)], gpus=4, slots=1)
    assert widths(Optimus(), problem).tolist() == [[3, 1]]


def test_optimus_gives_equal_jobs_as_much():
    problem = instance([("a", 0, 1, 3, 30), ("b", 0, 1, 3, 30)], gpus=4, slots=1)
    assert widths(Optimus(), problem).tolist() == [[2, 2]]


ONE, TWO = {"gpu": 1}, {"gpu": 2}


@for_each(
    ("jobs", "gpus", "given"),
    [
        ([(TWO, 1, 2, 12), (ONE, 1, 4, 12)], 5, [1, 3]),  # after the first workers the cheaper ones
        ([(ONE, 1, 1, 9), (ONE, 1, 1, 3)], 1, [0, 1]),  # where not all can begin the one that is done first
        ([(TWO, 1, 1, 4), (ONE, 1, 1, 6)], 2, [0, 1]),  # and its time counts by the part of the cluster that it takes
        ([(ONE, 2, 2, 8), (ONE, 1, 1, 3)], 2, [0, 1]),
        ([(ONE, 1, 2, 1)], 2, [2]),  # half a slot is a gain
    ],
)
def test_optimus_counts_what_a_worker_takes(jobs, gpus, given):
    assert widths(Optimus(), demanding(jobs, {"gpu": gpus})).tolist() == [given]


def test_allox_is_optimal_for_equal_machines_without_arrivals():
    rng = np.random.default_rng(1)
    for _ in range(20):
        jobs = [(str(i), 0, 1, 1, int(f)) for i, f in enumerate(rng.integers(1, 6, 5))]
        problem = instance(jobs, gpus=2, objective="completion", preemptive=False)
        found = evaluate(problem, schedule(AlloX(considered=1.0), problem)).objective
        times, total = [0, 0], 0
        for f in sorted(f for *_, f in jobs):
            times.sort()
            times[0] += f
            total += times[0]
        assert found == total


def test_allox_counts_time_and_not_work_and_takes_no_more_than_there_is():
    quick = LINEAR | {"forward_s_per_sample": 0.5}
    jobs = [
        {"name": "slow", "max_workers": 1, "minibatches": 3, "timing": LINEAR, "demand": {"gpu": 1, "cpu": 2}},
        {"name": "quick", "max_workers": 1, "minibatches": 4, "timing": quick, "demand": {"gpu": 1, "cpu": 2}},
    ]
    data = {"name": "hand", "slots": 6, "slot_s": 1.0, "servers": [{"capacity": {"gpu": 2, "cpu": 3}}], "jobs": jobs}
    problem = SchedulingInstance.from_data(data)
    assert widths(AlloX(considered=1.0), problem).tolist() == [[0, 1]] * 2 + [[1, 0]] * 3 + [[0, 0]]
    jobs[0]["demand"] = {"gpu": 1, "cpu": 1}
    assert "different amounts" in AlloX().refuses(SchedulingInstance.from_data(data))


def test_allox_refuses_wide_jobs():
    assert "needs 2" in AlloX().refuses(instance([("a", 0, 2, 2, 4)], gpus=2))


@pytest.mark.parametrize("goal", ["max_min", "makespan"])
def test_gavel_keeps_the_shares(goal):
    """Three equal jobs that fill the cluster alone: each runs in a third of the slots."""
    problem = instance([(n, 0, 2, 2, 100) for n in "abc"], gpus=2, slots=12)
    assert widths(Gavel(goal), problem).sum(axis=0).tolist() == [8, 8, 8]


def test_gavel_makespan_gives_time_by_what_is_left():
    problem = instance([("a", 0, 2, 2, 24), ("b", 0, 2, 2, 8)], gpus=2, slots=16, objective="makespan")
    assert evaluate(problem, schedule(Gavel("makespan"), problem)).objective == 16


FEATURES = (
    {},
    {"objective": "completion", "slots": 4},
    {"objective": "max_min"},
    {"places": (2, 2), "network": "star"},
    {"places": (2, 2), "contention": True, "preemptive": False, "jobs": 2},
    {"uneven": True, "deadlines": True, "min_workers": True},
)


@pytest.mark.parametrize("cases", [6, slow(48)])
@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_never_above_the_optimum(method, cases):
    met = 0
    for seed in range(cases):
        problem = random_instance(np.random.default_rng(seed), **FEATURES[seed % len(FEATURES)])
        if method.refuses(problem) is not None:
            continue
        try:
            found, _ = method.answer(problem, 0, Clock(Limits(), None), None)
        except SolverError as late:  # an online policy may miss the end of the horizon
            if "does not finish" not in str(late):
                raise
            continue
        checked = evaluate(problem, found)
        assert checked.feasible, checked.violations
        ahead = checked.objective - brute_force(problem).objective
        assert (ahead if problem.sense == "maximize" else -ahead) <= 1e-9 * abs(checked.objective)
        met += 1
    assert met >= 5 * cases / 12


@pytest.mark.parametrize("seed", range(3))
def test_the_bisection_is_at_most_five_percent_above(seed):
    data = jobs(24, seed)
    exact = makespan_shares(*data).level
    found, _ = bisection(*data, "CLARABEL")
    assert exact * (1 - 1e-6) <= found <= 1.05 * exact


@for_each("seed", range(20))
def test_makespan_shares_are_feasible_and_reach_the_level(seed):
    throughputs, widths, accelerators, steps = jobs(30, seed)
    shares, makespan = makespan_shares(throughputs, widths, accelerators, steps)
    assert (widths @ shares <= accelerators * (1 + 1e-9)).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert ((throughputs * shares).sum(axis=1) * makespan >= steps * (1 - 1e-7)).all()


def test_one_type_is_the_larger_of_area_and_longest():
    """On equal accelerators the fluid makespan has a closed form."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        widths, hours = rng.integers(1, 5, 6).astype(float), rng.uniform(1, 9, 6)
        expected = max(hours.max(), widths @ hours / 8)
        found = makespan_shares(np.ones((6, 1)), widths, np.array([8.0]), hours).level
        assert found == pytest.approx(expected, rel=1e-7)


def test_max_min_of_equal_jobs_is_an_equal_split():
    shares, level = max_min_shares(np.ones((4, 2)), np.ones(4), np.array([1.0, 1.0]), np.ones(4))
    assert shares.sum(axis=1) == pytest.approx(np.full(4, 0.5))
    assert level == pytest.approx(0.5)


def test_max_min_gives_the_fast_type_to_whom_it_helps():
    """Job 0 is no faster on the second type, job 1 four times: what is left of the fast type is job 1's."""
    throughputs = np.array([[1.0, 1.0], [1.0, 4.0]])
    shares, level = max_min_shares(throughputs, np.ones(2), np.ones(2), np.array([1.0, 1.6]))
    assert level == pytest.approx(1.0)
    assert shares[0] == pytest.approx([1, 0], abs=1e-6)
    assert shares[1] == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_max_min_takes_weights_of_any_size(unit):
    shares, level = max_min_shares(np.ones((2, 1)), np.ones(2), np.ones(1), unit * np.array([1.0, 3.0]))
    assert shares[:, 0] == pytest.approx([0.25, 0.75])
    assert level == pytest.approx(0.25 / unit)
    # Beside a job that weighs next to nothing another one has all.
    shares, level = max_min_shares(np.ones((2, 1)), np.ones(2), np.ones(1), np.array([1.0, unit]))
    assert shares.max() == pytest.approx(1)
    assert level == pytest.approx(min(1, 1 / unit))


def test_bad_input_is_one_line():
    with pytest.raises(OptionError, match="job 1 has throughput on no type"):
        makespan_shares(np.array([[1.0], [0.0]]), np.ones(2), np.ones(1), np.ones(2))
    with pytest.raises(OptionError, match="job 0 has a width"):
        makespan_shares(np.ones((2, 1)), np.array([0.0, 1.0]), np.ones(1), np.ones(2))
    with pytest.raises(OptionError, match="throughputs are 2 x 1"):
        makespan_shares(np.ones((2, 1)), np.ones(3), np.ones(1), np.ones(2))
