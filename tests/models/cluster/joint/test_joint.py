"""Jobs with plans: the check and every way to break a schedule, bad instances, the bound without a search."""

from types import SimpleNamespace

import pytest
from refusals import one_line

from ddlopt.instances.generators import generate
from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster import JointInstance, JointPlan, bound, evaluate
from ddlopt.models.cluster.joint import bounds
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment import StepPlan
from ddlopt.models.errors import InfeasibleError, InstanceError, SolutionError
from ddlopt.models.tolerances import ROUNDING

STEP = generate("cluster", "joint", 0, jobs=1, servers=4, workloads=("tiny-step",), widths=(2, 4)).problems[0]
DATA = {
    "name": "two",
    "servers": 5,
    "problems": [STEP],
    "workloads": [
        {"name": "step", "choices": [{"servers": 2, "problem": 0, "devices": 4}, {"servers": 4, "problem": 0}]},
        {"name": "told", "choices": [{"servers": 1, "step_s": 2.0}]},
    ],
    "jobs": [
        {"name": "a", "workload": 0, "iterations": 100, "arrival_s": 1, "weight": 2, "deadline_s": 3},
        {"name": "b", "workload": 1, "iterations": 3, "deadline_s": 100},
    ],
}
PLAN = {"family": "deployment", "problem": "step", "instance": "x", "data": 4, "micro_batch": 1}
INNER = STEP.changed(devices=4)


def made(**changes):
    return JointInstance.from_data(DATA | changes)


def time_s(plan=PLAN, inner=INNER, exact=False):
    return problem_of(inner).evaluate(inner, StepPlan.from_data(plan), exact).objective


def answer(runs=(("1", 2), ("0", 1)), **changes):
    plans = [
        {"workload": 0, "servers": 2, "step_s": float(time_s()) * (1 + 1e-12), "answer": PLAN},
        {"workload": 1, "servers": 1, "step_s": 2.0},
    ]
    data = {"instance": "two", "runs": [{"start": start, "servers": count} for start, count in runs], "plans": plans}
    return JointPlan.from_data(data | changes)


def with_plan(**changes):
    return answer(plans=[answer().plans[0].model_dump() | changes, answer().plans[1].model_dump()])


@pytest.mark.parametrize("exact", [False, True])
def test_a_job_takes_its_iterations_of_its_plan_s_time(exact):
    length = 100 * float(time_s())
    values = {"makespan": max(1 + length, 6), "weighted_completion": 2 * (1 + length) + 6}
    values["weighted_tardiness"] = 2 * max(0, 1 + length - 3)
    for objective, value in values.items():
        found = evaluate(made(objective=objective), answer(), exact)
        assert found.feasible
        assert float(found.objective) == pytest.approx(value)
    assert found.details["plans"] == 2


def test_idle_time_may_be_reserved():
    assert evaluate(made(), with_plan(step_s=1.0), True).objective == 101


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("solution", "kind", "figures"),
    [
        (answer(runs=[("1", 2)]), "every job has an entry", (1, 2)),
        (answer(runs=[("1", 4), ("0", 1)]), "a job has a plan for its servers", (4, 0)),
        (answer(plans=[answer().plans[0]] * 2 + [answer().plans[1]]), "a workload has one plan a width", (2, 1)),
        (with_plan(workload=2), "plans are of workloads", (2, 2)),
        (with_plan(servers=3), "widths are choices", (3, 0)),
        (answer(plans=[*answer().plans, answer().plans[0].model_dump() | {"servers": 4}]), "a plan is used", (0, 1)),
        (with_plan(answer=None), "there is a plan", (0, 1)),
        (
            answer(plans=[answer().plans[0], answer().plans[1].model_dump() | {"answer": PLAN}]),
            "there is nothing to plan",
            (1, 0),
        ),
        (
            answer(plans=[answer().plans[0], answer().plans[1].model_dump() | {"step_s": 1.5}]),
            "a step takes as long as is said",
            (1.5, 2.0),
        ),
        (
            with_plan(step_s=float(time_s()) * 0.999),
            "a plan takes no longer than is reserved",
            (float(time_s()), float(time_s()) * 0.999),
        ),
        (answer(runs=[("0", 2), ("0", 1)]), "a job starts after its arrival", (0, 1)),
    ],
)  # fmt: skip
def test_every_way_to_break_a_schedule(solution, kind, figures, exact):
    found = {each.kind: (float(each.lhs), float(each.rhs)) for each in evaluate(made(), solution, exact).violations}
    assert found[kind] == pytest.approx(figures)


def test_violations_of_a_plan_are_told_with_its_workload():
    found = evaluate(made(), with_plan(answer=PLAN | {"data": 8}))
    (told,) = [each for each in found.violations if each.kind == "devices suffice"]
    assert "workload 'step' on 2 servers" in told.where


def test_floats_have_room_for_the_last_digit_and_fractions_have_none():
    nearly = with_plan(step_s=float(time_s()) * (1 - ROUNDING / 2))
    assert evaluate(made(), nearly).feasible
    assert not evaluate(made(), nearly, True).feasible


@pytest.mark.parametrize("exact", [False, True])
def test_a_plan_may_take_all_that_is_reserved(exact):
    """Two seconds, in which nothing is rounded."""
    menu = {"tensor": 1, "options": [{"name": "only", "time_s": 2.0, "weight_bytes": 0, "kept_bytes": 0}]}
    line = {"family": "deployment", "problem": "pipeline", "name": "line", "edges": []}
    line |= {"layers": [{"name": "layer", "menus": [menu]}], "devices": 1, "memory_bytes": 1, "micro_batches": 1}
    choice = {"servers": 1, "problem": 0}
    asked = made(
        problems=[line | {"bandwidth_bytes_per_s": 1}],
        workloads=[{"name": "line", "choices": [choice]}],
        jobs=[{"name": "a", "workload": 0, "iterations": 3}],
    )
    stage = {"layers": [0], "replicas": 1, "tensor": 1, "options": ["only"]}
    whole = {"family": "deployment", "problem": "pipeline", "instance": "line", "stages": [stage]}
    for step_s, feasible in ((2.0, True), (2.0 - 1e-6, False)):
        plans = [{"workload": 0, "servers": 1, "step_s": step_s, "answer": whole}]
        found = evaluate(asked, JointPlan(instance="two", runs=[{"start": "0", "servers": 1}], plans=plans), exact)
        assert found.feasible is feasible


def test_servers_suffice_over_all_jobs():
    jobs = [DATA["jobs"][0] | {"name": name} for name in "xyz"]
    data = {"instance": "two", "runs": [{"start": "1", "servers": 2}] * 3, "plans": [answer().plans[0]]}
    found = evaluate(made(jobs=jobs), JointPlan.from_data(data))
    assert {each.kind for each in found.violations} == {"servers suffice"}


def test_a_plan_of_another_problem_is_refused():
    other = {"family": "cluster", "problem": "jobs", "instance": "x", "runs": []}
    with pytest.raises(SolutionError, match="cannot answer the step instance"):
        evaluate(made(), with_plan(answer=other))


def workload(**changes):
    choice = DATA["workloads"][0]["choices"][0] | changes
    return {"workloads": [{"name": "step", "choices": [choice]}, DATA["workloads"][1]]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (workload(servers=6), "a choice for 6 servers, and the cluster has 5"),
        (workload(problem=3), "problem is 3, and there are 1"),
        (workload(problem=None, devices=None), "give either problem or step_s"),
        (workload(step_s=1.0), "give either problem or step_s"),
        (workload(devices=4096), "2 servers: step instance 'step-dense-l2-k8-k4096'"),
        ({"workloads": [DATA["workloads"][0] | {"choices": DATA["workloads"][0]["choices"][::-1]}]}, "ascending"),
        ({"jobs": [DATA["jobs"][0] | {"workload": 2}]}, "workload is 2, and there are 2"),
        ({"jobs": [DATA["jobs"][0] | {"deadline_s": 0}]}, "its deadline, 0 s, is before its arrival, 1 s"),
        ({"jobs": [DATA["jobs"][0]] * 2}, "is named like"),
        ({"problems": [{"family": "nothing"}]}, "there is no family 'nothing'"),
        ({"problems": [generate("cluster", "jobs", 0)]}, "is of cluster/jobs; plans of jobs are answers of one of"),
        ({"problems": [3]}, "expected an object with a field family"),
    ],
)
def test_bad_instances_are_a_line(changes, words):
    with pytest.raises(InstanceError) as error:
        made(**changes)
    one_line(error.value, words)


def test_devices_are_of_nested_problems_only():
    inner = generate("codesign", "random", 0, servers=2, degree=1, layers=2, strategies=2)
    with pytest.raises(InstanceError, match="is of another problem"):
        made(problems=[inner])


def test_documents_are_read_back():
    for document in (made(), answer()):
        assert type(document).from_json(document.to_json()) == document
    assert isinstance(made().problems[0], Instance)


def of_the_problem(servers):
    inner = made().inner(made().workloads[0].choice(servers))
    return problem_of(inner).bound(inner)


@pytest.mark.parametrize("told", [None, 0.0])
def test_where_a_problem_has_no_bound_a_step_is_longer_than_nothing(told, monkeypatch):
    monkeypatch.setattr(bounds, "problem_of", lambda inner: SimpleNamespace(bound=lambda inner: told))
    assert bounds.simple_step_bound(made(), made().workloads[0].choices[0]) == bounds.TINY_S


def test_the_simple_bound_is_below_and_says_where_nothing_fits():
    assert 0 < bound(made()) <= evaluate(made(), answer()).objective
    assert bound(made()) == pytest.approx(max(6, 1 + 100 * min(of_the_problem(servers) for servers in (2, 4))))
    never = STEP.changed(devices=1)
    ways = [way for way in never.embedding.model_dump()["ways"] if way["tensor"] > 1]
    blocked = never.changed(embedding=never.embedding.model_dump() | {"ways": ways})
    with pytest.raises(InfeasibleError, match="no plan for any number of servers"):
        bound(
            made(
                problems=[blocked],
                workloads=[{"name": "w", "choices": [{"servers": 1, "problem": 0}]}, DATA["workloads"][1]],
            )
        )
