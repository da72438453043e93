"""Rigid gangs: equal to brute force in both forms, with contention, arrivals and deadlines; starts and horizons."""

import numpy as np
import pyomo.environ as pyo
import pytest
from gang_brute_force import LINEAR, all_orders, gang_instance, random_gangs
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow, some

from ddlopt.frontier.scheduling.formulations.rigid_gangs.gangs import (
    earliest_starts,
    gangs,
    quick_starts,
    schedule_of_starts,
    useful_starts,
)
from ddlopt.frontier.scheduling.formulations.rigid_gangs.rigid_gangs import RigidGangs
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import SchedulingInstance, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

CONTENDED = {
    "between_servers_bytes_per_s": 1.0,
    "within_server_bytes_per_s": 100.0,
    "degradation": 0.5,
    "server_overhead_s": 0.05,
}
TALKATIVE = LINEAR | {"gradient_bytes": 0.5}


def solve(problem, formulation=None, **options):
    return Exact("rigid-gangs", "scheduling", formulation or RigidGangs()).solve(problem, Limits(), **options)


def contended(jobs, servers=(2, 2, 2), slots=9, rules=None, **fields):
    """Gangs (width, mini-batches of a worker[, arrival]) whose rings share network cards."""
    made = [
        {
            "name": f"gang-{number}",
            "arrival": job[2] if len(job) > 2 else 0,
            "min_workers": job[0],
            "max_workers": job[0],
            "minibatches": job[0] * job[1],
            "timing": TALKATIVE,
        }
        for number, job in enumerate(jobs)
    ]
    data = {
        "name": "contended",
        "slots": slots,
        "slot_s": 1.0,
        "servers": [{"count": 1, "capacity": {"gpu": size}} for size in servers],
        "contention": CONTENDED | (rules or {}),
        "jobs": made,
        "objective": "makespan",
        "preemptive": False,
    }
    return SchedulingInstance.from_data(data | fields)


@for_each("cases", [6, slow(15)])
@for_each("objective", ["makespan", "completion"])
def test_starts_give_the_optimum_of_all_orders(objective, cases):
    rng = np.random.default_rng(1)
    for case in range(cases):
        fields = {"arrivals": case % 2 == 0, "deadlines": case % 3 == 0, "weights": True, "slots": 40}
        problem = random_gangs(rng, gpus=4, objective=objective, **fields)
        optimum = all_orders(problem)[objective == "completion"]
        result = solve(problem)
        if optimum is None:
            assert result.status is Status.INFEASIBLE
        else:
            assert result.status is Status.OPTIMAL
            assert result.objective == pytest.approx(optimum)


@pytest.mark.parametrize("cases", [6, slow(12)])
@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize("objective", ["makespan", "completion"])
def test_places_give_the_optimum_of_brute_force(objective, contention, cases):
    rng = np.random.default_rng(2)
    for case in range(cases):
        problem = random_instance(
            rng,
            slots=4,
            places=((2, 2), (3, 2))[case % 2],
            objective=objective,
            deadlines=case % 3 == 0,
            uneven=not contention,
            contention=contention,
            preemptive=False,
        )
        jobs = tuple(job.model_copy(update={"min_workers": job.max_workers}) for job in problem.jobs)
        problem = SchedulingInstance.from_data(problem.model_dump() | {"jobs": [job.model_dump() for job in jobs]})
        optimum = brute_force(problem)
        result = solve(problem)
        if optimum is None:
            assert result.status is Status.INFEASIBLE
        else:
            assert result.status is Status.OPTIMAL
            assert result.objective == pytest.approx(optimum.objective)


MEETING = {
    "two-that-meet": ([(3, 2), (3, 2)], {}),
    "one-after-the-other": ([(3, 2), (3, 2)], {"rules": {"degradation": 8.0}, "slots": 9}),
    "a-late-one": ([(3, 1), (3, 2, 1), (2, 2)], {"slots": 6}),
    "completion": ([(3, 2), (3, 1), (1, 1)], {"objective": "completion", "slots": 7}),
    "three-servers": ([(3, 2), (1, 3)], {"servers": (1, 1, 1, 1), "rules": {"server_overhead_s": 0.4}, "slots": 8}),
    "two-servers-or-three": ([(2, 2), (3, 2)], {"servers": (1, 2, 1, 1), "rules": {"server_overhead_s": 0.4}}),
    "room-on-three-only": ([(2, 5), (3, 3)], {"servers": (2, 1, 1, 1), "rules": {"server_overhead_s": 0.4}}),
    "part-at-once": ([(3, 2), (3, 2)], {"rules": {"share": 0.6, "server_overhead_s": 0.0}}),
}


@for_each("name", some(MEETING, ["two-that-meet", "completion"]))
def test_contention_that_matters_gives_the_optimum_of_brute_force(name):
    jobs, fields = MEETING[name]
    problem = contended(jobs, **fields)
    optimum = brute_force(problem)
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum.objective)
    alone = {"between_servers_bytes_per_s": 1e6, "server_overhead_s": 0.0}
    assert solve(contended(jobs, **fields | {"rules": alone})).objective < result.objective


def test_places_come_back_as_they_were_found():
    problem = contended([(3, 2), (3, 2)], objective="completion")
    result = solve(problem)
    assert evaluate(problem, result.solution).feasible
    assert all(run.width == 3 and len(run.workers) == 2 for run in result.solution.runs)


def test_jobs_that_are_alike_share_variables():
    problem = gang_instance([(2, 3)] * 6 + [(1, 2)] * 3, 4)
    model = build_model("scheduling", RigidGangs(), problem)
    block = model.scheduling
    assert sorted({k for k, _ in block.starting}) == [0, 1]
    assert block.starting[0, 0].bounds == (0, 6)
    assert solve(problem).objective == 11


def test_the_relaxation_is_the_area_of_what_cannot_be_told_apart():
    problem = gang_instance([(3, 2)] * 4, 6)
    assert lp_relaxation(RigidGangs(), problem).objective == 4
    problem = gang_instance([(4, 5), (2, 3), (3, 4), (3, 1)], 6, objective="completion")
    optimum = all_orders(problem)[1]
    assert 0.9 * optimum <= lp_relaxation(RigidGangs(), problem).objective <= optimum + 1e-9


def test_jobs_start_when_others_end():
    jobs = gangs(gang_instance([(1, 3), (1, 5, 2)], 4))
    reached = useful_starts(jobs, 12)
    assert [t for t in range(12) if reached >> t & 1] == [0, 2, 3, 5, 7, 8, 10]


def test_left_shifted_schedules_start_at_useful_slots_only():
    rng = np.random.default_rng(3)
    for _ in range(50):
        jobs = gangs(random_gangs(rng, jobs=6, gpus=5, longest=9))
        starts = earliest_starts(jobs, rng.permutation(6).tolist())
        useful = useful_starts(jobs, 100)
        assert all(useful >> int(start) & 1 for start in starts)


def test_lists_start_each_job_as_early_as_it_fits():
    problem = gang_instance([(3, 2), (2, 3), (1, 2), (4, 1, 1)], 4)
    jobs = gangs(problem)
    assert earliest_starts(jobs, [0, 1, 2, 3]).tolist() == [0, 2, 0, 5]
    assert earliest_starts(jobs, [3, 2, 1, 0]).tolist() == [5, 2, 2, 1]
    assert (quick_starts(jobs) + jobs.slots).max() == 6


def test_schedules_of_starts_keep_places():
    problem = gang_instance([(3, 2), (2, 3), (1, 4)], servers=(2, 2))
    schedule = schedule_of_starts(problem, [0, 2, 0], [2, 3, 4])
    assert evaluate(problem, schedule).objective == 5
    with pytest.raises(SolverError, match="do not fit"):
        schedule_of_starts(problem, [0, 1, 0], [2, 3, 4])


@pytest.mark.parametrize("objective", ["makespan", "completion"])
def test_a_start_sets_all_variables_and_breaks_no_row(objective):
    rng = np.random.default_rng(4)
    for _ in range(10):
        problem = random_gangs(rng, gpus=5, objective=objective, weights=True)
        jobs = gangs(problem)
        starts = earliest_starts(jobs, rng.permutation(5).tolist())
        schedule = schedule_of_starts(problem, (starts + rng.integers(0, 2)).tolist(), jobs.slots.tolist())
        form = RigidGangs(achievable_s=1000.0)
        model = build_model("scheduling", form, problem)
        form.start(model.scheduling, problem, schedule)
        for row in model.component_data_objects(pyo.Constraint, active=True):
            body = pyo.value(row.body)
            assert pyo.value(row.lower) is None or body >= pyo.value(row.lower) - 1e-9
            assert pyo.value(row.upper) is None or body <= pyo.value(row.upper) + 1e-9
        assert pyo.value(model.objective) <= evaluate(problem, schedule).objective


@pytest.mark.slow
def test_a_start_of_places_can_be_completed():
    problem = contended([(3, 2), (2, 1), (3, 1), (3, 1)], servers=(3, 3))
    problem = SchedulingInstance.from_data(
        problem.model_dump() | {"servers": [{"count": 2, "capacity": {"gpu": 3}}], "slots": 20}
    )
    best = solve(problem).solution
    swapped = best.model_copy(
        update={
            "runs": tuple(
                run.model_copy(update={"workers": tuple((1 - s, count) for s, count in run.workers)})
                for run in best.runs
            )
        }
    )
    objective = evaluate(problem, best).objective
    assert evaluate(problem, swapped).objective == objective
    for given in (best, swapped):
        form = RigidGangs()
        model = build_model("scheduling", form, problem)
        block = model.scheduling
        form.start(block, problem, given)
        for variable in (block.running, block.workers):
            for each in variable.values():
                each.fix(each.value)
        found = Exact("rigid-gangs", "scheduling", form).backend.solve(model, Limits())
        assert form.objective_value(problem, found.objective) == objective


def test_worse_than_achievable_is_excluded():
    problem = gang_instance([(3, 4), (3, 4), (1, 2), (2, 3)], 4)
    optimum = all_orders(problem)[0]
    assert solve(problem, RigidGangs(achievable_s=optimum)).objective == optimum
    wide = build_model("scheduling", RigidGangs(achievable_s=40.0), problem).scheduling
    assert len(wide.starting) > len(build_model("scheduling", RigidGangs(), problem).scheduling.starting)
    totals = gang_instance([(3, 4), (3, 4), (1, 2), (2, 3)], 4, objective="completion")
    best = all_orders(totals)[1]
    tight = build_model("scheduling", RigidGangs(achievable_s=best), totals).scheduling
    assert len(tight.starting) < len(build_model("scheduling", RigidGangs(), totals).scheduling.starting)
    assert solve(totals, RigidGangs(achievable_s=best)).objective == best


def test_slots_become_seconds():
    problem = gang_instance([(3, 2), (3, 2)], 4, slot_s=0.5)
    assert solve(problem).objective == 4.0


REFUSED = {
    "the objective is 'utility'": {"objective": "utility"},
    "jobs are preemptive": {"preemptive": True},
    "reserves no bandwidth": {"servers": (4, 4), "network": {"links": [(0, 1, 1.0)]}},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals(reason):
    assert reason in RigidGangs().refuses(gang_instance([(2, 2), (1, 1)], 4, **REFUSED[reason]))


def test_elastic_jobs_and_hopeless_sizes_are_refused():
    problem = gang_instance([(2, 2), (1, 1)], 4)
    elastic = problem.model_dump()
    elastic["jobs"][0]["min_workers"] = 1
    assert "jobs[0] 'gang-0' may have 1..2 workers" in RigidGangs().refuses(SchedulingInstance.from_data(elastic))
    assert RigidGangs().refuses(problem) is None
    assert "pairs of a start and a slot" in RigidGangs().refuses(
        gang_instance([(n % 4 + 1, 900 + n) for n in range(8)], 4, 9999)
    )
    assert RigidGangs().refuses(gang_instance([(1, 900)] * 8, 4, 9999)) is None
    assert "2001 jobs" in RigidGangs().refuses(gang_instance([(1, 1)] * 2001, 4, 9999))
    assert "variables" in RigidGangs().refuses(contended([(3, 2)] * 12, slots=600))
