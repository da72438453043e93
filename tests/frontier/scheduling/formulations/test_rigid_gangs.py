"""Rigid gangs: equal to the best of all orders, with arrivals and deadlines; starts and horizons."""

import numpy as np
import pyomo.environ as pyo
import pytest
from gang_brute_force import all_orders, gang_instance, random_gangs
from volume import for_each, slow

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


def solve(problem, formulation=None, **options):
    return Exact("rigid-gangs", "scheduling", formulation or RigidGangs()).solve(problem, Limits(), **options)


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


def test_identical_jobs_share_variables():
    problem = gang_instance([(2, 3)] * 6 + [(1, 2)] * 3, 4)
    model = build_model("scheduling", RigidGangs(), problem)
    block = model.scheduling
    assert sorted({k for k, _ in block.starting}) == [0, 1]
    assert block.starting[0, 0].bounds == (0, 6)
    assert solve(problem).objective == 11


@pytest.mark.parametrize(("gpus", "objective", "best"), [(4, "makespan", 3), (2, "completion", 10)])
def test_what_the_check_lets_pass_of_a_pool_is_there(gpus, objective, best):
    """Jobs on a hair less than all GPUs that they need at once."""
    problem = gang_instance([(2, gpus // 2)] * (2 if gpus == 4 else 3) + [(1, 1)], gpus, objective=objective)
    servers = (problem.servers[0].model_copy(update={"capacity": {"gpu": gpus * (1 - 0.9e-9)}}),)
    assert solve(problem.model_copy(update={"servers": servers})).objective == best


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
    "depend on places": {
        "servers": (2, 2),
        "contention": {"between_servers_bytes_per_s": 1.0, "within_server_bytes_per_s": 100.0, "degradation": 0.5},
    },
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
