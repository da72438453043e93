"""Trees as flows: pinned optima, hosts that use their ports, and trees out of numbers that are a little off."""

import random
from contextlib import suppress
from fractions import Fraction

import pyomo.environ as pyo
import pytest
from networks_drawn import several
from volume import for_each

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.errors import RangeError, SolverError
from ddlopt.models.topology import CollectiveInstance
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.carried import trees_of
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.models.topology.collective.formulations.tree_flows import TreeFlows
from ddlopt.models.topology.collective.instance import CollectivePlan, busy_s
from ddlopt.models.units import unread
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits


def made(network, collective, **options):
    return generate("topology", "collective", network=network, collective=collective, **options)


def host(instance):
    """A model that holds nothing but the formulation."""
    model = pyo.ConcreteModel()
    model.trees = pyo.Block()
    TreeFlows().build(model.trees, instance)
    return model


def solved(model, instance):
    """The plan read, and its seconds as a fraction."""
    assert Highs().solve(model, Limits()).objective is not None
    plan = TreeFlows().read(model.trees, instance)
    return plan, evaluate_collective(instance, plan, exact=True).objective


@pytest.mark.parametrize(
    ("network", "collective", "options", "wanted"),
    [
        ("dgx-a100", "all-gather", {"boxes": 2}, Fraction(3, 1040)),
        ("star", "all-reduce", {"accelerators": 5}, Fraction(1)),
        ("path", "all-reduce", {"accelerators": 4}, Fraction(1)),
        ("de-bruijn", "all-reduce", {"accelerators": 8}, Fraction(1)),
        ("kautz", "reduce-scatter", {"accelerators": 6}, None),
        ("torus", "broadcast", {"dimensions": "3x3", "root": 4}, Fraction(1, 4)),
    ],
)
def test_optima_are_read_as_fractions(network, collective, options, wanted):
    instance = made(network, collective, **options)
    model = host(instance)
    model.goal = pyo.Objective(expr=model.trees.objective)
    _, seconds = solved(model, instance)
    assert seconds == (exact_collective_bound(instance) if wanted is None else wanted)


def test_a_host_chooses_where_sums_are_made():
    """Accelerator 0 of a path, at its end, has all roots: each phase then needs a whole link each way."""
    instance = made("path", "all-reduce", accelerators=4)
    model = host(instance)
    model.at_the_end = pyo.Constraint(expr=model.trees.rooted[0] == 1)
    model.goal = pyo.Objective(expr=model.trees.objective)
    plan, seconds = solved(model, instance)
    assert {tree.root for tree in plan.trees} == {0}
    assert seconds == 1


def test_a_host_buys_bandwidth():
    """One faster link of a ring of one direction changes nothing; all of them, paid for in bytes per second, do."""
    instance = made("ring", "all-gather", accelerators=4)
    model, unit = host(instance), TreeFlows().objective_value(instance, 1.0)
    model.trees.link_carries.deactivate()
    model.more = pyo.Var(model.trees.LINKS, domain=pyo.NonNegativeReals)
    model.paid = pyo.Constraint(expr=sum(model.more.values()) <= 4)
    part, second = instance.collective_bytes / 4, 0.375

    @model.Constraint(model.trees.LINKS)
    def carries(m, i, j):
        return part * m.trees.carried["spread", i, j] <= instance.bandwidth[i, j] * (1 + m.more[i, j]) * second

    model.goal = pyo.Objective(expr=sum(model.more.values()))
    assert Highs().solve(model, Limits()).objective == pytest.approx(4)
    assert {round(each.value, 6) for each in model.more.values()} == {1}
    assert unit > 0


@for_each("seed", range(12))
def test_trees_out_of_numbers_that_are_a_little_off(seed):
    """What links carry in good trees with odd shares, off by rounding: all bytes still arrive, and nearly as soon."""
    draw = random.Random(seed)
    instance = several(seed + 1, "all-reduce", most=4, balanced=False)[seed]
    if instance is None or max(instance.bandwidth.values()) > 1e6 * min(instance.bandwidth.values()):
        return
    model = host(instance)
    prices = {each: draw.uniform(0.5, 1.5) for each in model.trees.LINKS}
    model.goal = pyo.Objective(
        expr=model.trees.objective
        + sum(0.01 * prices[i, j] * each for (_, i, j), each in model.trees.carried.items())
        + sum(draw.uniform(-0.1, 0.1) * each for each in model.trees.rooted.values())
    )
    plan, seconds = solved(model, instance)
    noisy = {
        phase: {
            link: pyo.value(model.trees.carried[phase, link]) * draw.uniform(1, 1 + 1e-6) for link in instance.bandwidth
        }
        for phase in ("gather", "spread")
    }
    roots = [pyo.value(each) * draw.uniform(1, 1 + 1e-6) for each in model.trees.rooted.values()]
    trees = trees_of(instance, roots, noisy)
    again = CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees))
    found = evaluate_collective(instance, again, exact=True)
    assert not found.violations
    assert max(busy_s(instance, trees).values()) <= seconds * (1 + Fraction(1, 10**4))
    assert not evaluate_collective(instance, plan, exact=True).violations


def test_circles_of_switches_are_not_lost():
    """What leads back from a switch to where it came from is, joined with a circle, what another one needs."""
    ends = [(0, 3), (3, 0), (1, 3), (1, 4), (4, 1), (2, 4), (4, 2), (3, 4), (4, 3)]
    instance = CollectiveInstance(
        name="two-switches", accelerators=3, switches=2, collective="all-gather", collective_bytes=3.0,
        links=[{"source": i, "target": j, "bytes_per_s": 1.0} for i, j in ends],
    )  # fmt: skip
    model = host(instance)
    model.goal = pyo.Objective(expr=model.trees.objective)
    _, seconds = solved(model, instance)
    assert seconds == pytest.approx(pyo.value(model.goal) * TreeFlows().objective_value(instance, 1.0), rel=1e-6)


def test_too_few_bytes_are_no_trees():
    instance = made("ring", "all-gather", accelerators=4)
    carried = dict.fromkeys(instance.bandwidth, 3.0)
    assert len(trees_of(instance, [1.0] * 4, {"spread": carried})) == 4
    with pytest.raises(SolverError, match="does not bring all bytes"):
        trees_of(instance, [1.0] * 4, {"spread": {**carried, (0, 1): 2.9}})


@pytest.mark.parametrize(
    ("bandwidths", "kind", "told"), [((1.0, 2.0), SolverError, "^short$"), ((1.0, 1e12), RangeError, "too far apart")]
)
def test_what_a_tolerance_explains_is_a_refusal(bandwidths, kind, told):
    problem = unread(SolverError("short"), bandwidths, "x")
    assert type(problem) is kind
    with pytest.raises(kind, match=told):
        raise problem


@for_each(("collective", "method"), [("all-to-all", "all-to-all-flows"), ("all-reduce", "tree-flows")])
def test_bandwidths_that_are_far_apart_leave_a_plan_or_a_refusal(collective, method):
    """The program is off by more than is let pass between what is claimed and what is found, and its bound holds."""
    rates = {(0, 1): 4e15, (0, 2): 4e9, (1, 0): 1e6, (1, 2): 4e9, (2, 0): 3e15, (2, 1): 4e3}
    rates |= {(1, 3): 1e9, (3, 1): 1e6, (2, 3): 1e9, (3, 2): 1e3}
    instance = CollectiveInstance(
        name="apart", accelerators=3, switches=1, collective=collective, collective_bytes=3e6,
        links=[{"source": i, "target": j, "bytes_per_s": b} for (i, j), b in rates.items()],
    )  # fmt: skip
    with suppress(RangeError):
        found = ddlopt.solve(instance, method, gap=0)
        assert found.bound <= found.objective <= found.bound * 1.01


def test_paths_and_other_problems_are_refused():
    assert "paths" in TreeFlows().refuses(made("ring", "all-to-all", accelerators=4))
