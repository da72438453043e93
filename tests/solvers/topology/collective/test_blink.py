"""Blink's trees: near the narrowest cut, as the paper has it, and few."""

from fractions import Fraction

import pytest
from networks_drawn import several
from volume import for_each, seeds

import ddlopt
from ddlopt.instances import generators
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.collective.blink import blink_trees
from ddlopt.solvers.topology.collective.forest import OneRoot

LIMITS = Limits(time_s=60.0, gap=0.0)


def made(network, collective, **options):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


def seconds(instance, plan):
    found = evaluate_collective(instance, plan, exact=True)
    assert found.feasible
    return found.objective


@pytest.mark.parametrize(
    ("network", "options", "most"),
    [
        ("ndv2", {}, 6),  # the paper's DGX-1V: 181 trees become six
        ("mi250", {}, 8),
        ("torus", {"dimensions": "3x3"}, 5),
        ("dgx-a100", {"boxes": 2}, 16),
        ("kautz", {"accelerators": 12}, 3),
    ],
)
def test_few_trees_at_the_narrowest_cut(network, options, most):
    instance = made(network, "broadcast", **options)
    plan = OneRoot().solve(instance, LIMITS).solution
    assert len(plan.trees) <= most
    assert (
        exact_collective_bound(instance)
        <= seconds(instance, plan)
        <= exact_collective_bound(instance) * Fraction(10, 9)
    )


@for_each("seed", seeds(6, 150))
def test_drawn_networks(seed):
    """Within 5 % of weights that are within some of the cut, whatever the bandwidths."""
    instance = several(seed + 1, "broadcast")[seed]
    bound = exact_collective_bound(instance)
    assert bound <= seconds(instance, OneRoot().solve(instance, LIMITS).solution) <= bound * Fraction(5, 4)
    if set(instance.bandwidth.values()) <= {1.0, 2.0, 3.0}:
        assert bound == seconds(instance, OneRoot(weights="optimal").solve(instance, LIMITS).solution)


def test_sums_come_back_over_the_same_trees():
    instance = made("mi250", "all-reduce")
    plan = ddlopt.solve(instance, "blink").solution
    assert len({tree.root for tree in plan.trees}) == 1
    for tree in plan.trees:
        assert {path[::-1] for path in tree.gather} == set(tree.spread)
    assert seconds(instance, plan) >= exact_collective_bound(instance)


def test_what_is_found_when_the_time_is_up_is_a_plan():
    instance = made("ndv2", "broadcast")
    assert sum(Fraction(tree.share) for tree in blink_trees(instance, lambda: True)) == 1
