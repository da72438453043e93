"""The search over orders of gangs: kernels beside plain code, optima of small instances, bounds reached on others."""

import itertools

import numpy as np
import pytest
from gang_brute_force import all_orders, gang_instance, random_gangs
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from ddlopt.frontier.scheduling.formulations.rigid_gangs.gangs import earliest_starts, gangs
from ddlopt.frontier.scheduling.gangs import dispatch as gang_dispatch
from ddlopt.frontier.scheduling.gangs import gang_search
from ddlopt.frontier.scheduling.gangs import kernels as gang_kernels
from ddlopt.frontier.scheduling.gangs.gang_search import GangSearch, placing
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gangs.list_scheduling import ListScheduling, ranks

FLAGS = (gang_dispatch.SPLIT, gang_dispatch.HOLD, gang_dispatch.CALM)


def search(problem, effort=0.02, seed=0, **options):
    return GangSearch(effort).solve(problem, Limits(), seed, **options)


def rigid(problem):
    """The same with the largest width of each job as its only one."""
    data = problem.model_dump()
    for job in data["jobs"]:
        job["min_workers"] = job["max_workers"]
    return SchedulingInstance.from_data(data)


def several_resources(rng, jobs=8):
    """Gangs whose workers differ, on one server."""
    problem = random_gangs(rng, jobs, gpus=6, longest=9)
    data = problem.model_dump()
    data["servers"] = ({"capacity": {"gpu": 6.0, "cpu": 10.0}},)
    for job in data["jobs"]:
        job["demand"] = {"gpu": 1.0, "cpu": float(rng.integers(0, 3)) / 2}
    return SchedulingInstance.from_data(data)


def test_kernel_lists_as_plain_code_does():
    rng = np.random.default_rng(1)
    for case in range(60):
        problem = several_resources(rng) if case % 2 else random_gangs(rng, jobs=9, gpus=6, longest=9)
        jobs = gangs(problem)
        count = len(jobs.slots)
        order, starts = rng.permutation(count), np.zeros(count, dtype=np.int64)
        profile = np.empty(2 * count + 3, dtype=np.int64), np.empty((2 * count + 3, jobs.taken.shape[1]))
        pooled = gang_kernels.Pooled(jobs.slots, jobs.arrival, jobs.taken, jobs.capacity)
        gang_kernels.list_schedule(order, pooled, *profile, starts)
        assert starts.tolist() == earliest_starts(jobs, order.tolist()).tolist()


def test_kernel_serves_as_list_scheduling_does():
    rng = np.random.default_rng(9)
    for _ in range(20):
        problem = random_gangs(rng, jobs=9, gpus=6, longest=9)
        jobs = gangs(problem)
        starts = np.zeros(9, dtype=np.int64)
        order = np.argsort(ranks(problem, "longest"))
        gang_kernels.serve(order, gang_kernels.Pooled(jobs.slots, jobs.arrival, jobs.taken, jobs.capacity), starts)
        runs = ListScheduling().solve(problem, Limits()).solution.runs
        assert {run.job: run.start for run in runs} == dict(enumerate(starts.tolist()))


def test_moves_are_undone_by_their_reverse():
    for first, second, swap in itertools.product(range(5), range(5), (False, True)):
        order = np.arange(5)
        gang_kernels.move(order, first, second, swap)
        assert order[second] == first
        assert sorted(order) == list(range(5))
        gang_kernels.move(order, second, first, swap)
        assert order.tolist() == list(range(5))


def test_objective_counts_lateness_and_what_is_past_the_target():
    starts, slots = np.array([0, 2]), np.array([3, 4])
    goal = gang_kernels.Goal(np.array([0, 1]), np.array([9, 9]), np.array([2.0, 5.0]), np.array([1.0, 3.0]), True)
    assert gang_kernels.objective_of(starts, slots, goal, 4) == (6.0, 10.0)
    assert gang_kernels.objective_of(starts, slots, goal, 1) == (6.0, 24.0)
    assert gang_kernels.objective_of(starts, slots, goal._replace(makespan=False), 0) == (18.0, 18.0)
    late = goal._replace(last=np.array([9, 4]))
    assert gang_kernels.objective_of(starts, slots, late, 9) == (6.0 + 2 * gang_kernels.LATE, 2 * gang_kernels.LATE)


@for_each("cases", [20, slow(60)])
@for_each("contention", [False, True])
def test_simulated_ends_are_those_of_the_check(contention, cases):
    rng = np.random.default_rng(2)
    split_together = 0
    for _ in range(cases):
        kind = {"contention": True, "places": (2, 3, 2)} if contention else {"uneven": True, "places": (3, 2, 4)}
        problem = rigid(random_instance(rng, jobs=5, slots=6, preemptive=False, **kind))
        data = problem.model_dump() | {"slots": 500, "objective": "makespan"}
        for job in data["jobs"]:
            job["minibatches"] *= rng.uniform(1, 9)
        problem = SchedulingInstance.from_data(data)
        placed = np.zeros((5, 3), dtype=np.int64)
        starts, slots = np.zeros((2, 5), dtype=np.int64)
        arrays = placing(problem, gangs(problem))
        assert gang_dispatch.dispatch(rng.permutation(5), rng.integers(0, 8, 5), arrays, placed, starts, slots)
        runs = tuple(
            Run(job=j, start=int(starts[j]), slots=int(slots[j]), workers=workers)
            for j in range(5)
            if (workers := tuple((s, int(placed[j, s])) for s in range(3) if placed[j, s]))
        )
        checked = evaluate(problem, Schedule(instance=problem.name, runs=runs))
        assert checked.violations == ()
        assert checked.objective == (starts + slots).max() * problem.slot_s
        split_together += sum(len(run.workers) > 1 for run in runs) > 1
    assert split_together > cases / 12


def simulated(jobs, servers, order, flags, **fields):
    problem = gang_instance(jobs, servers=servers, **fields)
    count = len(jobs)
    placed = np.zeros((count, len(servers)), dtype=np.int64)
    starts, slots = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    arrays = placing(problem, gangs(problem))
    gang_dispatch.dispatch(np.array(order), np.array(flags), arrays, placed, starts, slots)
    return placed.tolist(), starts.tolist()


def test_flags_say_who_waits_and_who_splits():
    jobs = [(2, 4), (2, 6), (2, 3), (1, 2)]
    split, hold, _ = FLAGS
    placed, starts = simulated(jobs, (3, 3), [0, 1, 2, 3], [0, 0, 0, 0])
    assert placed == [[2, 0], [0, 2], [2, 0], [1, 0]]
    assert starts == [0, 0, 4, 0]  # the third waits for one server, and the last passes it
    placed, starts = simulated(jobs, (3, 3), [0, 1, 2, 3], [0, 0, hold, 0])
    assert starts == [0, 0, 4, 4]  # nobody passes it
    placed, starts = simulated(jobs, (3, 3), [0, 1, 2, 3], [0, 0, split, 0])
    assert placed == [[2, 0], [0, 2], [1, 1], [1, 0]]
    assert starts == [0, 0, 0, 3]
    placed, starts = simulated([(5, 2)], (3, 3), [0], [0])
    assert placed == [[3, 2]]  # no server could hold it


def test_calm_jobs_avoid_split_ones():
    split, _, calm = FLAGS
    jobs, servers = [(3, 4), (3, 4)], (2, 2, 2, 2)
    assert simulated(jobs, servers, [0, 1], [0, 0])[0] == [[2, 1, 0, 0], [0, 1, 2, 0]]
    assert simulated(jobs, servers, [0, 1], [0, calm])[0] == [[2, 1, 0, 0], [0, 0, 2, 1]]
    jobs, servers = [(6, 4), (3, 4)], (4, 4, 1, 1)
    assert simulated(jobs, servers, [0, 1], [0, split])[0] == [[4, 2, 0, 0], [0, 2, 1, 0]]
    assert simulated(jobs, servers, [0, 1], [0, split | calm])[0] == [[4, 2, 0, 0], [0, 1, 1, 1]]


@pytest.mark.slow
def test_annealing_knows_what_it_left_behind():
    problem = random_gangs(np.random.default_rng(8), jobs=12, gpus=5, arrivals=False)
    jobs = gangs(problem)
    goal = gang_kernels.Goal(jobs.arrival, jobs.last, np.ones(12), jobs.weight, False)
    pooled = gang_kernels.Pooled(jobs.slots, jobs.arrival, jobs.taken, jobs.capacity)
    gang_kernels.seed_kernels(1)
    order, best = np.arange(12), np.arange(12)
    first, cost = gang_kernels.anneal_pooled(order, pooled, goal, 0, 5.0, 0.999, 2000, best, np.inf)
    starts = [earliest_starts(jobs, each.tolist()) for each in (order, best)]
    ends = [gang_kernels.objective_of(each, jobs.slots, goal, 0)[0] for each in starts]
    assert ends == [cost, first]
    assert first < gang_kernels.objective_of(earliest_starts(jobs, range(12)), jobs.slots, goal, 0)[0]

    arrays = placing(problem, jobs)
    order, flags, placed = np.arange(12), np.zeros(12, dtype=np.int64), np.zeros((12, 1), dtype=np.int64)
    best, best_flags = order.copy(), flags.copy()
    first, cost = gang_dispatch.anneal_placed(
        *(order, flags, arrays, goal, 0, 5.0, 0.999, 2000, best, best_flags, np.inf)
    )
    for each, own, wanted in ((order, flags, cost), (best, best_flags, first)):
        starts, slots = np.zeros((2, 12), dtype=np.int64)
        assert gang_dispatch.dispatch(each, own, arrays, placed, starts, slots)
        assert gang_kernels.objective_of(starts, slots, goal, 0)[0] == wanted


def test_simulated_jobs_go_on_until_the_check_counts_them_as_finished():
    problem = gang_instance([(2, 3), (1, 7)], 4)
    wanted = placing(problem, gangs(problem)).wanted / [6, 7]
    assert (wanted > 1 - 1e-9).all()
    assert (wanted < 1).all()


@for_each("cases", [8, slow(40)])
@for_each("objective", ["makespan", "completion"])
def test_small_instances_are_solved(objective, cases):
    rng = np.random.default_rng(3)
    for case in range(cases):
        problem = random_gangs(
            rng, gpus=5, objective=objective, arrivals=case % 2 == 0, deadlines=case % 4 == 0, weights=True
        )
        optimum = all_orders(problem)[objective == "completion"]
        if optimum is None:
            assert search(problem).status in (Status.NO_SOLUTION, Status.INFEASIBLE)
        else:
            result = search(problem)
            assert result.objective == optimum
            assert (result.status is Status.OPTIMAL) == (result.bound == optimum)


def test_contended_instances_are_solved_or_nearly():
    rng = np.random.default_rng(4)
    ratios = []
    for case in range(30):
        problem = rigid(
            random_instance(rng, slots=5, places=(2, 2), objective="makespan", contention=True, preemptive=False)
        )
        optimum = brute_force(problem)
        if optimum is not None:
            ratios.append(search(problem, seed=case).objective / optimum.objective)
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) == pytest.approx(1.0)


def test_several_resources_on_one_server():
    rng = np.random.default_rng(5)
    for _ in range(5):
        problem = several_resources(rng)
        lists = [ListScheduling(order).solve(problem, Limits()).objective for order in ("longest", "widest")]
        assert search(problem).objective <= min(lists)


def test_bound_is_reached_where_lists_are_far_off():
    problem = generate("sjf-bco", seed=1, jobs=38, gpus=32, widest=16)
    assert ListScheduling().solve(problem, Limits()).gap > 0.02
    result = search(problem, effort=1.0)
    assert result.status is Status.OPTIMAL
    assert result.details["orders_tried"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [96, 128])
def test_all_160_jobs_are_within_two_percent(gpus):
    for seed in range(3):
        problem = generate("sjf-bco", seed=seed, jobs=160, gpus=gpus)
        assert search(problem, effort=1.0).gap < 0.02


@pytest.mark.slow
def test_contention_is_better_than_lists():
    problem = generate("sjf-bco", seed=1, jobs=38, gpus=32, widest=16, contention=True)
    result = search(problem, effort=0.2)
    assert result.objective < ListScheduling().solve(problem, Limits()).objective


def test_same_seed_same_schedule():
    problem = generate("sjf-bco", seed=2, jobs=20, gpus=16, widest=8, objective="completion", slot_s=20.0)
    one, other = search(problem, seed=7), search(problem, seed=7)
    assert one.solution == other.solution
    assert one.details["orders_tried"] == other.details["orders_tried"]


def test_a_start_is_never_made_worse():
    rng = np.random.default_rng(6)
    for case in range(10):
        problem = random_gangs(rng, jobs=7, gpus=5, arrivals=False, objective=("makespan", "completion")[case % 2])
        best = search(problem, effort=0.1)
        again = search(problem, effort=1e-9, start=best.solution)
        assert again.objective <= best.objective


def test_it_stops_when_the_time_is_up():
    problem = generate("sjf-bco", seed=1, jobs=38, gpus=32, widest=16, objective="completion")
    clock = Clock(Limits(time_s=1e-9), None)
    _, details = GangSearch(100.0).answer(problem, 0, clock, None)
    assert details["orders_tried"] == 1


def test_what_it_refuses():
    problem = gang_instance([(2, 2), (1, 1)], 4)
    assert GangSearch().refuses(problem) is None
    assert GangSearch().refuses(gang_instance([(2, 2)], 4, preemptive=True)) is None
    assert "finishes all jobs" in GangSearch().refuses(gang_instance([(2, 2)], 4, objective="max_min"))
    assert "10001 jobs" in GangSearch().refuses(gang_instance([(1, 1)] * 10_001, 4, 9999))
    assert "network" in GangSearch().refuses(gang_instance([(2, 2)], servers=(2, 2), network={"links": [(0, 1, 1.0)]}))
    none = search(gang_instance([(5, 4)] * 3, slots=11))
    assert none.status is Status.INFEASIBLE
    assert "takes 12 slots at least, but there are 11" in none.message
    with pytest.raises(OptionError, match="effort must be positive, got 0"):
        GangSearch(0)


@for_each("limit_s", [1.0, 30.0])
def test_annealing_has_cooled_when_the_limit_strikes(monkeypatch, limit_s):
    """A hot one finds nothing: a limit that struck there had gone for nothing."""

    class Ticking(Clock):
        @property
        def elapsed_s(self):
            self.ticks = getattr(self, "ticks", 0) + 1
            return 0.02 * self.ticks

    def annealed(lists, target, heat, cooling, moves, least):
        heats.append(heat * cooling**moves)
        return 1e6, 1e6

    heats = []
    problem = random_gangs(np.random.default_rng(3), jobs=60, gpus=6, longest=9).changed(slots=10**4)
    monkeypatch.setattr(gang_search._PooledLists, "anneal", annealed)
    clock = Ticking(Limits(limit_s), None)
    search = gang_search._Search(gang_search._PooledLists(problem), np.random.default_rng(0), clock)
    search.run(1e3, None)
    assert clock.expired
    assert heats[-1] < 0.02 * search.lists.heat()
