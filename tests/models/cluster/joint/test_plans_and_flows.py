"""One program of plans and schedule: against all schedules at proven times, its relaxation, its ports, refusals."""

import pyomo.environ as pyo
import pytest
from jobs_brute_force import brute_force
from joint_cases import drawn, proven_tables
from refusals import one_line
from volume import for_each, seeds

import ddlopt
from ddlopt.models.cluster import JointInstance
from ddlopt.models.cluster.jobs.formulations.server_flows import ServerFlows
from ddlopt.models.cluster.joint.formulations.plans_and_flows import PlansAndFlows
from ddlopt.models.errors import NotApplicableError, RangeError
from ddlopt.models.switched import switch
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model, lp_relaxation

METHOD = "plans-and-flows"


@for_each("seed", seeds(3, 80))
def test_the_program_finds_the_best_of_all_schedules_with_proven_plans(seed):
    instance = drawn(seed)
    jobs, found = proven_tables(instance), ddlopt.solve(instance, METHOD, time_limit=60, gap=1e-7)
    if jobs is None:
        assert found.status is Status.INFEASIBLE
        return
    best = float(brute_force(jobs))
    assert found.checked
    assert found.objective == pytest.approx(best, rel=1e-5, abs=1e-6)
    assert found.bound <= best + 1e-6 * max(1.0, best)
    assert ddlopt.check(instance, found.solution, exact=True).feasible


@for_each("seed", seeds(2, 20))
def test_the_loop_of_refinement_says_the_same(seed):
    instance = drawn(seed + 500, most=4)
    one, two = (ddlopt.solve(instance, name, time_limit=60, gap=1e-4) for name in (METHOD, "refinement"))
    assert (one.status is Status.INFEASIBLE) == (two.status is Status.INFEASIBLE)
    if one.objective is not None:
        assert one.objective == pytest.approx(two.objective, rel=2e-4, abs=1e-6)
        assert one.bound <= two.objective + 1e-6 * max(1.0, two.objective)
        assert two.bound <= one.objective + 1e-6 * max(1.0, one.objective)


def table(steps, **changes):
    """Jobs of one workload with given times, on two servers."""
    choices = [{"servers": width, "step_s": step} for width, step in steps.items()]
    data = {
        "name": "table",
        "servers": 2,
        "workloads": [{"name": "w", "choices": choices}],
        "jobs": [{"name": name, "workload": 0, "iterations": 10} for name in "ab"],
    }
    return JointInstance.from_data(data | changes)


@pytest.mark.parametrize("objective", ["weighted_completion", "weighted_tardiness"])
def test_a_job_without_weight_does_not_coarsen_the_program(objective):
    """Rows hold to a part of a unit: by the length of that job the bound was 7e-3 short, or the order a wrong one."""

    def beside(iterations):
        jobs = [{"name": name, "workload": 0, "iterations": 2, "weight": 1, "deadline_s": 1} for name in "ab"]
        idle = jobs[0] | {"name": "idle", "iterations": iterations, "weight": 0}
        return table({1: 1, 2: 0.6}, objective=objective, jobs=[idle, *jobs])

    units = [ServerFlows().unit_s(beside(iterations).at(lambda _, choice: choice.step_s)) for iterations in (2, 2e4)]
    assert units[0] == units[1]
    with pytest.raises(RangeError, match=r"1e\+08 s, and the longest that counts takes 1.2 s: too far apart"):
        ddlopt.solve(beside(1e8), METHOD, time_limit=60)


def planned(seed=3, jobs=1):
    """Jobs of one workload, with a co-design on two servers or another on three."""
    from ddlopt.instances.generators import generate

    options = {"jobs": jobs, "servers": 4, "widths": (2, 3), "workloads": ("tiny-codesign",), "spread": 0.0}
    return generate("cluster", "joint", seed, **options)


def test_the_relaxation_has_the_bounds_of_plans_and_no_order():
    assert lp_relaxation(PlansAndFlows(), table({1: 1, 2: 1})).objective == pytest.approx(10)
    assert lp_relaxation(PlansAndFlows(), table({2: 1})).objective == pytest.approx(10)  # the optimum is 20
    instance = planned()
    one = lp_relaxation(PlansAndFlows(), instance).objective
    assert ddlopt.models.cluster.bound(instance) * (1 - 1e-6) <= one
    assert one <= ddlopt.solve(instance, METHOD, time_limit=60).objective


def test_a_problem_that_nobody_has_a_plan_of_is_switched_off():
    instance = planned()
    model = build_model("cluster", PlansAndFlows(), instance)
    block = model.component("cluster")
    found = Highs().solve(model, Limits(gap=1e-7))
    assert found.status is Status.OPTIMAL
    (off,) = [key for key in block.planned if round(pyo.value(block.planned[key])) == 0]
    whole = [each for each in block.plan[off].component_data_objects(pyo.Var) if not each.is_continuous()]
    assert whole
    assert all(abs(pyo.value(each)) < 1e-6 for each in whole)


def test_a_host_may_ask_for_a_plan_on_few_servers():
    """What it couples to: widths of the schedule, and whether there is a plan."""
    instance = planned(jobs=2)
    values = []
    for wanted in (2, 3):
        model = build_model("cluster", PlansAndFlows(), instance)
        block = model.component("cluster")
        model.as_wanted = pyo.Constraint(expr=block.schedule.width[0, wanted] + block.schedule.width[1, wanted] == 2)
        assert Highs().solve(model, Limits(gap=1e-7)).status is Status.OPTIMAL
        answer = PlansAndFlows().read(block, instance)
        assert {run.servers for run in answer.runs} == {wanted}
        assert ddlopt.check(instance, answer).feasible
        values.append(ddlopt.check(instance, answer).objective)
    assert min(values) == pytest.approx(ddlopt.solve(instance, METHOD, time_limit=60, gap=1e-7).objective, rel=1e-4)


def test_a_start_is_taken():
    instance = planned(jobs=2)
    known = ddlopt.solve(instance, "apart", time_limit=60).solution
    found = ddlopt.solve(instance, METHOD, time_limit=60, start=known)
    assert found.objective <= ddlopt.check(instance, known).objective * (1 + 1e-9)


def test_two_builds_are_the_same(tmp_path):
    texts = []
    for place in range(2):
        model = build_model("cluster", PlansAndFlows(), planned(jobs=2))
        model.write(str(tmp_path / f"{place}.lp"))
        texts.append((tmp_path / f"{place}.lp").read_bytes())
    assert texts[0] == texts[1]


def test_what_a_problem_s_own_program_refuses_is_refused_in_its_words():
    instance = planned()
    wide = ddlopt.load("codesign/vgg16-n16-d4")
    data = instance.model_dump() | {"servers": 16, "problems": [*instance.problems, wide]}
    data["workloads"][0]["choices"] += ({"servers": 16, "problem": len(instance.problems)},)
    with pytest.raises(NotApplicableError) as error:
        ddlopt.solve(JointInstance.from_data(data), METHOD)
    one_line(error.value, "workload 'tiny-codesign' on 16 servers: it has 16 servers, but one program")


def test_a_shared_fabric_is_refused():
    fabric = {"groups": [{"name": name, "hosts": 1, "uplink_bytes_per_s": 1} for name in "ab"]}
    told = PlansAndFlows().refuses(table({1: 1, 2: 1}, fabric=fabric))
    assert "share a fabric" in told


def small(on):
    """Whole x in 1..3 and any y, at least 2x - 1 and at most 7, with a constant in the objective, switched."""
    model = pyo.ConcreteModel()
    model.on = pyo.Var(domain=pyo.Binary)
    model.on.fix(on)
    model.inner = pyo.Block()
    model.inner.x = pyo.Var(domain=pyo.Integers, bounds=(1, 3))
    model.inner.y = pyo.Var(bounds=(-5, None))
    model.inner.given = pyo.Var(initialize=4.0)
    model.inner.given.fix()
    model.inner.above = pyo.Constraint(expr=model.inner.y >= 2 * model.inner.x - 1)
    model.inner.within = pyo.Constraint(expr=(2, model.inner.x + model.inner.y, 7))
    model.inner.equal = pyo.Constraint(expr=model.inner.y - model.inner.x == 1)
    model.inner.objective = pyo.Expression(expr=model.inner.y + model.inner.given + 10)
    value = switch(model.inner, model.on)
    model.objective = pyo.Objective(expr=value.expression)
    return model


@pytest.mark.parametrize(("on", "value"), [(1, 16), (0, 0)])
def test_a_model_is_there_or_it_is_nothing(on, value):
    model = small(on)
    found = Highs().solve(model, Limits())
    assert found.objective == pytest.approx(value)
    assert pyo.value(model.inner.x) == pytest.approx(on)
    assert pyo.value(model.inner.given) == pytest.approx(4 * on)
    worst = small(on)
    worst.objective.sense = pyo.maximize
    assert Highs().solve(worst, Limits()).objective == pytest.approx(17 * on)


def test_a_model_without_a_solution_is_switched_off():
    model = small(1)
    model.on.unfix()
    model.inner.never = pyo.Constraint(expr=model.inner.x >= 5 * model.on)
    model.objective.sense = pyo.maximize
    assert Highs().solve(model, Limits()).objective == pytest.approx(0)
