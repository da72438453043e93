"""Combinatorial bounds without rounding: never above what a solution has, and what floats say of the same."""

import random
from fractions import Fraction

import networkx as nx
import pytest

from ddlopt import check_certificate, instances
from ddlopt.certificates.compression.sfb.exact_flow import maximum_flow
from ddlopt.certificates.own import exact_bound_of
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models.aggregation.graph.bounds import exact_graph_bound, graph_bound
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.errors import RefutedError
from ddlopt.solvers.proofs import CombinatorialCertificate

SAME = ("topology", "compression/sfb", "aggregation/registers")
"""Where the exact bound is the floating-point one without its rounding; elsewhere it is another one."""
QUICK = ("tiny", "n12-d4", "registers-n24", "tree-soar", "abilene", "resnet50-powersgd", "wheel", "sfb-alexnet")

TABLES = [name for name in instances.names("aggregation") if name.startswith("aggregation/table-")]
"""Some seconds each."""


def known(family):
    for name in instances.names(family):
        instance = instances.load(name)
        # The sum over jobs that share slots has no bound in rational numbers.
        if exact_bound_of(problem_of(instance).path) is not None and getattr(instance, "goal", None) != "total":
            yield name


def agrees(name, instance):
    """Raise unless the exact bound lies on the right side of the best known solution and beside the float."""
    problem, sign = problem_of(instance), 1 if instance.sense == "minimize" else -1
    bound = exact_bound_of(problem.path)(instance)
    assert isinstance(bound, Fraction), name
    best = instances.best(name)
    if best is not None:
        assert sign * bound <= sign * problem.evaluate(instance, best, exact=True).objective, name
    if problem.path in SAME:
        assert float(bound) == pytest.approx(in_floats(problem, instance), rel=1e-9), name


def in_floats(problem, instance):
    """The same bound with rounding: that of topologies has no blocks and no cells."""
    if problem.path != "topology":
        return problem.bound(instance)
    found = congestion_bounds(instance)
    return instance.iteration_time_s(max(value for name, value in found.items() if name not in ("blocks", "cells")))


@pytest.mark.parametrize("family", ["topology", "compression", "aggregation"])
def test_exact_bounds_hold_for_the_best_known_solutions(family):
    chosen = [name for name in known(family) if any(part in name for part in QUICK)]
    assert chosen
    for name in chosen:
        agrees(name, instances.load(name))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["topology", "compression", "aggregation"])
def test_they_do_in_the_whole_library(family):
    for name in known(family):
        if name not in TABLES:
            agrees(name, instances.load(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_they_do_for_lookup_tables(name):
    agrees(name, instances.load(name))


def test_bounds_are_rational_where_they_are_said_to_be():
    assert {path for path in problems() if exact_bound_of(path) is not None} >= set(SAME)


@pytest.mark.parametrize("goal", ["utilization", "congestion", "rates"])
def test_a_graph_in_fractions_is_bounded_as_in_floats(goal):
    instance = instances.load("aggregation/fat-tree-k4-utilization")
    instance = instance.model_copy(update={"goal": goal})
    assert float(exact_graph_bound(instance)) == pytest.approx(graph_bound(instance), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_maximum_flows_are_those_of_networkx(seed):
    rng = random.Random(seed)
    nodes = rng.randrange(3, 12)
    arcs = [
        (tail, head, rng.choice((0, 1, 3, 2**70 + rng.randrange(9))))
        for tail in range(nodes)
        for head in range(nodes)
        if tail != head and rng.random() < 0.4
    ]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    for tail, head, capacity in arcs:
        graph.add_edge(tail, head, capacity=capacity)
    assert maximum_flow(nodes, arcs, 0, 1) == nx.maximum_flow_value(graph, 0, 1)


@pytest.mark.parametrize(
    "name", ["table-tiny-n8", "tree-tiny-congestion-n7-k2", "tree-soar-n7-k2", "slots-slowest-n24"]
)
def test_claims_above_what_is_recomputed_are_refused(name):
    instance = instances.load(f"aggregation/{name}")
    known = exact_bound_of(problem_of(instance).path)(instance)
    true = CombinatorialCertificate(instance.name, instance.digest, known)
    assert check_certificate(instance, true).bound == known
    for more in (Fraction(1, 10**30), Fraction(10**30)):
        with pytest.raises(RefutedError, match="the combinatorial bound of"):
            check_certificate(instance, CombinatorialCertificate(instance.name, instance.digest, known + more))
