"""Column generation over plans: bounds hold, schedules are near them, and the parts do what they say."""

import dataclasses

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, UTILITIES, brute_force, random_instance
from volume import slow

from ddlopt.frontier.scheduling.job_plans import job_plans, packing
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.job_plans.master import Plan, PlanMaster
from ddlopt.frontier.scheduling.job_plans.packing import Packer
from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import Capped, Job, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gadget import Gadget

FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "finishing": {"utilities": tuple(UTILITIES)},
    "two-servers": {"places": (2, 2)},
    "energy": {"energy": True, "jobs": 2},
}


def without_idle_power(instance):
    servers = tuple(group.model_copy(update={"idle_w": 0.0}) for group in instance.servers)
    return instance.model_copy(update={"servers": servers})


@pytest.mark.parametrize("cases", [2, slow(4)])
@pytest.mark.parametrize("feature", FEATURES)
def test_finds_the_optimum_of_tiny_instances_and_never_more(feature, cases):
    for seed in range(cases):
        options = {"utilities": CONCAVE} | FEATURES[feature]
        instance = without_idle_power(random_instance(np.random.default_rng(seed), **options))
        best = brute_force(instance).objective
        result = JobPlans(stalls=3).solve(instance, Limits(gap=1e-6))
        assert result.objective == pytest.approx(best, rel=1e-5, abs=1e-9)
        assert result.bound >= best - 1e-9 * abs(best)
        assert evaluate(instance, result.solution).violations == ()


def contended(jobs=20, slots=12, gpus=8):
    return generate("elastic", 1, jobs=jobs, slots=slots, gpus=gpus)


def test_bound_and_schedule_are_near_each_other():
    result = JobPlans().solve(contended(), Limits(gap=1e-3))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-3
    assert result.details["relaxation"] <= result.bound * (1 + 1e-9)
    assert result.bound <= result.details["relaxation"] * (1 + 1e-4)
    bounds = [point.bound for point in result.trace if point.bound is not None]
    assert bounds == sorted(bounds, reverse=True)


def test_same_seed_same_schedule():
    instance = contended(8, 6, 4)
    one, other = (JobPlans(stalls=3).solve(instance, Limits(gap=2e-3), seed=3) for _ in range(2))
    assert one.solution == other.solution
    assert one.bound == other.bound


def test_a_start_is_never_lost():
    instance = contended()
    start = LpGuided().solve(instance, Limits()).solution
    alone = JobPlans(stalls=0, integer_s=1e-3).solve(instance, Limits(gap=1e-4))
    again = JobPlans(stalls=0, integer_s=1e-3).solve(instance, Limits(gap=1e-4), start=start)
    assert float(evaluate(instance, start).objective) > alone.objective * (1 - 1e-3)
    assert again.objective >= float(evaluate(instance, start).objective) * (1 - 1e-12)


def test_without_time_there_are_still_a_schedule_and_a_bound():
    result = JobPlans().solve(contended(), Limits(time_s=1e-6))
    assert result.objective > 0
    assert result.bound >= result.objective


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "makespan"}, "not 'utility'"),
        ({"preemptive": False}, "one piece"),
        ({"places": (3, 2), "network": "star"}, "which servers"),
    ],
)
def test_refuses_what_the_knapsack_does_not_place(options, words):
    with pytest.raises(NotApplicableError, match=words):
        JobPlans().solve(random_instance(np.random.default_rng(0), **options), Limits())


def test_refuses_what_takes_minutes():
    assert "use lp-guided" in JobPlans().refuses(contended(1000, 400, 256))


@pytest.mark.parametrize("unit", [1.0, 2.0**-40])
def test_master_prices_its_capacities(unit):
    # Two units; jobs worth 3 for two units, and 2 or 1 for one unit each.
    master = PlanMaster(np.array([2.0]), 3)
    for job, (use, worth) in enumerate(((2.0, 3.0), (1.0, 2.0), (1.0, 1.0))):
        master.add(Plan(job, np.array([int(use)]), np.array([use]), worth * unit))
    optimum = master.solve()
    assert optimum.value / unit == pytest.approx(3.5)
    assert optimum.prices / unit == pytest.approx([1.5])
    assert optimum.shares == pytest.approx([0.5, 1.0, 0.0])
    plans, outcome = master.whole_plans([0], Limits(), 0)
    assert outcome.objective / unit == pytest.approx(3.0)
    assert outcome.bound / unit == pytest.approx(3.0)
    assert sum(plan.worth for plan in plans) / unit == pytest.approx(3.0)
    master.close()


def test_without_plans_none_is_chosen():
    # As where no job can finish, and all are worth nothing before that.
    master = PlanMaster(np.array([2.0]), 3)
    plans, outcome = master.whole_plans([], Limits(), 0)
    assert (plans, outcome.objective, outcome.bound) == ([], 0.0, 0.0)
    master.close()


def test_packs_what_fits_and_only_that():
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = tuple(Job(name=f"{i}", max_workers=3, timing=timing, minibatches=1e3, utility=Capped()) for i in range(4))
    servers = (ServerGroup(capacity={"gpu": 3}),)
    instance = SchedulingInstance(name="pack", slots=4, slot_s=1, servers=servers, jobs=jobs)
    packer = Packer(instance, np.random.default_rng(0))
    wanted = {0: [2, 1, 2, 1], 1: [1, 1], 2: [2, 2]}
    widths = packer.pack(wanted, 4)
    assert (widths.sum(axis=1) <= 3).all()
    for job, some in wanted.items():
        assert sorted(widths[:, job][widths[:, job] > 0].tolist()) == sorted(some)
    # Three jobs of two workers in two slots of three places: an area that is enough, and only two of them fit.
    widths = packer.pack({0: [2], 1: [2], 2: [2]}, 2)
    assert sorted(widths.sum(axis=1).tolist()) == [2, 2]


def test_packs_exactly_what_a_greedy_cannot(monkeypatch):
    """Widths are drawn from full slots, so that all of them fit, with no place to spare."""
    monkeypatch.setattr(packing, "_EFFORT", packing.Effort(packings=0))
    rng = np.random.default_rng(5)
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = tuple(Job(name=f"{i}", max_workers=8, timing=timing, minibatches=1e3, utility=Capped()) for i in range(12))
    servers = (ServerGroup(count=2, capacity={"gpu": 8}),)
    instance = SchedulingInstance(name="full", slots=9, slot_s=1, servers=servers, jobs=jobs)
    drawn = np.zeros((9, 12), dtype=np.int64)
    for row in drawn:
        for job in rng.permutation(12):
            row[job] = min(rng.integers(1, 9), 16 - row.sum())
    wanted = {job: drawn[:, job][drawn[:, job] > 0].tolist() for job in range(12)}
    widths = Packer(instance, rng).pack(wanted, 9)
    assert (widths.sum(axis=1) == 16).all()
    assert all(sorted(widths[:, job][widths[:, job] > 0]) == sorted(some) for job, some in wanted.items())


@pytest.mark.parametrize("seed", [0, 1, 2, *map(slow, range(3, 60))])
def test_a_window_of_all_jobs_is_the_optimum_but_for_slots(seed):
    """In intervals of a slot each it is the optimum; in longer ones no schedule is better."""
    instance = random_instance(
        np.random.default_rng(seed), utilities=tuple(UTILITIES), deadlines=seed % 2 == 0, min_workers=seed % 3 == 0
    )
    best = brute_force(instance).objective
    search = job_plans._Search(JobPlans(), instance, Clock(Limits(), None), 0)
    search.begin(None)
    search.generate()
    search.by_jobs.size = float(len(instance.jobs))
    found = search.by_jobs.changed(search.widths, search._losses(), search.clock)
    worth = search.slots.worth(found)
    assert worth >= best * (1 - 1e-3)
    if (search.rounds.lengths == 1).all():
        assert worth <= best * (1 + 1e-9)
    search._pack(found)
    assert search.slots.worth(search.widths) <= best * (1 + 1e-9)
    search.rounds.master.close()


@pytest.mark.slow
def test_rounds_leave_time_for_schedules(monkeypatch):
    instance = generate("elastic", 1, jobs=20, slots=12, gpus=8)
    greedy = Gadget().solve(instance, Limits()).objective
    monkeypatch.setattr(job_plans, "ROUNDS", dataclasses.replace(job_plans.ROUNDS, reserve=2.0))
    result = JobPlans(stalls=1).solve(instance, Limits(time_s=60.0))
    assert result.details["rounds"] == 1
    assert result.objective > greedy
