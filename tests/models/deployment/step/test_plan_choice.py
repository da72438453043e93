"""The choice among plans: the optimum, starts, ports, and two builds alike."""

import io

import pyomo.environ as pyo
import pytest
from step_cases import best_of_all, drawn
from volume import for_each, seeds

from ddlopt.instances import library
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.formulations.plan_choice import PlanChoice
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

SMALL = 1
"""A seed with plans of unlike numbers of devices."""


def built(instance):
    host = pyo.ConcreteModel()
    host.inner = pyo.Block()
    PlanChoice().build(host.inner, instance)
    host.least = pyo.Objective(expr=host.inner.objective)
    return host


def text(host):
    out = io.StringIO()
    host.pprint(out)
    return out.getvalue()


def test_two_builds_are_alike():
    assert text(built(drawn(SMALL))) == text(built(drawn(SMALL)))


@for_each("seed", seeds(2, 40))
def test_its_optimum_and_its_relaxation_are_the_best_of_all_plans(seed):
    instance = drawn(seed)
    best = best_of_all(instance)
    if best is None:
        assert PlanChoice().plans(instance) == []
        return
    host = built(instance)
    found = Highs().solve(host, Limits(gap=0))
    assert PlanChoice().objective_value(instance, found.objective) == pytest.approx(best, rel=1e-6)
    assert evaluate_step(instance, PlanChoice().read(host.inner, instance)).objective == pytest.approx(best, rel=1e-6)
    for variable in host.inner.plan.values():
        variable.domain = pyo.NonNegativeReals
    relaxed = Highs().solve(host, Limits()).objective
    assert PlanChoice().objective_value(instance, relaxed) == pytest.approx(best, rel=1e-6)


def test_a_host_wants_fewer_devices():
    instance = drawn(SMALL)
    host = built(instance)
    plans = PlanChoice().plans(instance)
    fewest = min(plan.devices for plan in plans)
    assert fewest < max(plan.devices for plan in plans)
    host.few = pyo.Constraint(expr=host.inner.devices <= fewest)
    host.lean = pyo.Constraint(expr=host.inner.memory <= 1)
    found = Highs().solve(host, Limits(gap=0))
    best = min(evaluate_step(instance, plan).objective for plan in plans if plan.devices == fewest)
    assert PlanChoice().objective_value(instance, found.objective) == pytest.approx(best, rel=1e-6)
    assert PlanChoice().read(host.inner, instance).devices == fewest
    assert pyo.value(host.inner.step) == pytest.approx(found.objective)


def test_a_start_is_read_back():
    instance = drawn(SMALL)
    plan = PlanChoice().plans(instance)[3]
    host = built(instance)
    PlanChoice().start(host.inner, instance, plan)
    assert PlanChoice().read(host.inner, instance) == plan


def test_large_ones_are_refused():
    assert "plans; use step-enumeration" in PlanChoice().refuses(library.load("deployment/step-llama3-70b-dgx-h100"))
    assert "it answers a step instance" in PlanChoice().refuses(library.load("deployment/pipeline-tiny-l4-k4"))


def test_times_have_a_unit_where_nothing_is_computed():
    data = drawn(9).model_dump(mode="json")
    for part in (data["embedding"], *data["blocks"], data["head"]):
        for option in (option for way in part["ways"] for option in way["options"]):
            option |= {"forward_s": 0.0, "backward_s": 0.0}
    instance = StepInstance.from_data(data)
    assert 1000 * PlanChoice().unit_s(instance) <= PlanChoice().achievable_s(instance) == 0.25
