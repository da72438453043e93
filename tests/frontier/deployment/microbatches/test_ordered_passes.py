"""The disjunctive program: what it refuses, its relaxation, its start, and what it makes of answers of a solver."""

import pyomo.environ as pyo
import pytest
from microbatch_cases import drawn
from volume import seeds

from ddlopt.frontier.deployment.microbatches.formulations.ordered_passes import OrderedPasses
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.simple_order import simple_words
from ddlopt.models.deployment.microbatches.ticks import exact_ticks, order_of
from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits


def built(instance, **options):
    model = pyo.ConcreteModel()
    model.order = pyo.Block()
    formulation = OrderedPasses(**options)
    formulation.build(model.order, instance)
    model.objective = pyo.Objective(expr=model.order.objective)
    return model, formulation


def test_what_is_refused():
    refuses = OrderedPasses().refuses
    assert refuses(generate("microbatches", 0)) is None
    assert "a pass takes 1e-12 s" in refuses(generate("microbatches", 0, weights_s=1e-12))
    assert "a pass takes 1e-06 s" in refuses(generate("microbatches", 0, forward_s=1e-6))
    assert "pairs of passes share a device" in refuses(generate("microbatches", 0, micro_batches=100))


RELAXATIONS = [(4, 4.0, "makespan", 14.0), (4, 4.0, "span", 14.0), (4, 7.0, "span", 14.0)]
"""There and back in 7, the six B of the first device one behind another, and W: memory and pairs say nothing."""


@pytest.mark.parametrize(("p", "memory", "objective", "value"), RELAXATIONS)
def test_the_relaxation_is_weak(p, memory, objective, value):
    instance = generate("microbatches", 0, stages=p, micro_batches=6, memory=memory, objective=objective)
    model, formulation = built(instance, bounded=False)
    for variable in model.order.is_before.values():
        variable.domain = pyo.UnitInterval
    found = Highs().solve(model, Limits(), 0)
    assert formulation.objective_value(instance, found.objective) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(6, 100))
def test_a_start_keeps_every_row(seed):
    instance = drawn(seed, zeros=False)
    ticks = exact_ticks(instance)
    order = order_of(ticks, simple_words(ticks))
    model, formulation = built(instance)
    formulation.start(model.order, instance, order)
    known = evaluate_order(instance, order, exact=True)
    assert known.feasible
    for row in model.order.component_data_objects(pyo.Constraint):
        if all(variable is not model.order.length for variable in row.body.linear_vars):
            assert pyo.value(row.body) <= row.upper + 1e-9, row.name
    for variable in model.order.begins.values():
        assert variable.lb - 1e-9 <= variable.value <= variable.ub + 1e-9
    assert formulation.read(model.order, instance) == order


def test_what_is_no_order_is_not_read():
    instance = generate("microbatches", 0, stages=2, micro_batches=3, memory=3.0)
    ticks = exact_ticks(instance)
    model, formulation = built(instance)
    formulation.start(model.order, instance, order_of(ticks, simple_words(ticks)))
    variable = model.order.is_before[0, 0, 2, 0, 1, 0]
    variable.set_value(0.5)
    with pytest.raises(SolverError, match="not 0 or 1"):
        formulation.read(model.order, instance)
    for pair in model.order.is_before.values():
        pair.set_value(0)
    variable.set_value(1)
    with pytest.raises(SolverError, match="in a circle"):
        formulation.read(model.order, instance)


def test_a_host_in_which_a_micro_batch_comes_late():
    """At 6: then it goes there and back, W behind B, and the step ends at 11, not at 10."""
    instance = generate("microbatches", 0, stages=2, micro_batches=3, memory=2.0)
    model, formulation = built(instance)
    model.late = pyo.Constraint(expr=model.order.begins[0, 0, 2] * formulation.objective_value(instance, 1.0) >= 6)
    found = Highs().solve(model, Limits(gap=1e-9), 0)
    assert formulation.objective_value(instance, found.objective) == pytest.approx(11)
    assert evaluate_order(instance, formulation.read(model.order, instance)).feasible
