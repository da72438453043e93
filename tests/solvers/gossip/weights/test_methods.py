"""The best weights: published values, closed forms, a generic solver, and rules."""

import math

import networkx as nx
import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.analysis.gossip_convex.weights import Semidefinite
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip import Network, WeightsInstance, evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.spectral.interior_point import solve
from ddlopt.solvers.gossip.weights.exact import FastestWeights
from ddlopt.solvers.gossip.weights.programs import WeightsProgram

TIGHT = Limits(gap=1e-8)


def instance(graph, goal="averaging", budget=None):
    graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    network = Network(nodes=len(graph), edges=tuple(graph.edges()))
    return WeightsInstance(name="graph", network=network, goal=goal, budget=budget)


def value(name, asked):
    found = method(name, "gossip").solve(asked, TIGHT)
    assert found.checked
    return found.objective


FDLA, FMMC, FMMP = (f"fastest-weights:goal={goal}" for goal in ("averaging", "chain", "process"))
PENDANT = nx.Graph([(0, 1), (1, 2), (1, 3), (2, 3)])


@for_each(
    ("name", "expected", "time"),
    [
        (FDLA, 0.6433, 2.2671),
        (FMMC, 0.6810, 2.6025),
        ("metropolis", 0.7743, 3.9094),
        ("max-degree", 0.7793, 4.0093),
        ("best-constant", 0.7119, 2.9422),
    ],
)
def test_values_printed_with_the_example_of_cvx(name, expected, time):
    asked = ddlopt.load("gossip/cvx-n8-averaging")
    found = ddlopt.solve(asked, name, gap=1e-8)
    assert round(found.objective, 4) == expected
    assert round(found.details["averaging_time"], 4) == time


@for_each(
    ("graph", "name", "expected"),
    [
        *((nx.path_graph(n), name, math.cos(math.pi / n)) for n in (4, 7) for name in (FDLA, FMMC, "metropolis")),
        *((nx.cycle_graph(n), FDLA, (1 + c) / (3 - c)) for n in (6, 8) for c in [math.cos(2 * math.pi / n)]),
        (PENDANT, FMMC, 7 / 11),
        (PENDANT, FDLA, 1 / math.sqrt(3)),
        (PENDANT, "best-constant", 0.6),
        (PENDANT, "metropolis", 2 / 3),
        (nx.complete_bipartite_graph(2, 3), FMMC, 3 / 7),
        (nx.complete_bipartite_graph(3, 3), FMMC, 1 / 3),
        (nx.wheel_graph(5), FMMC, 1 / 4),
        (nx.wheel_graph(5), "metropolis", 7 / 12),
        (nx.hypercube_graph(4), FDLA, 3 / 5),
        (nx.petersen_graph(), FDLA, 3 / 7),
        (nx.star_graph(4), FMMC, 3 / 4),
        (nx.star_graph(4), FDLA, 2 / 3),
        (nx.complete_graph(5), FDLA, 0.0),
    ],
)
def test_closed_forms(graph, name, expected):
    asked = instance(graph, "chain" if name == FMMC else "averaging")
    assert value(name, asked) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("nodes", [4, 6, 8])
def test_process_on_a_path(nodes):
    found = method(FMMP, "gossip").solve(instance(nx.path_graph(nodes), "process", 1.0), TIGHT)
    assert found.objective == pytest.approx(12 / (nodes * (nodes**2 - 1)), rel=1e-7)
    rates = np.array([i * (nodes - i) for i in range(1, nodes)], dtype=float)
    np.testing.assert_allclose(found.solution.weights, rates / rates.sum(), rtol=1e-3)


@for_each(
    ("name", "expected"),
    [
        ("abilene-n11-averaging", 0.8447),
        ("abilene-n11-chain", 0.8447),
        ("nsfnet-n13-averaging", 0.8506),
        ("nsfnet-n13-chain", 0.8673),
        ("abilene-n11-process", 0.033663 * 11),
        ("nsfnet-n13-process", 0.035128 * 13),
        ("abilene-n11-pairwise", 0.983246),
        ("nsfnet-n13-pairwise", 0.983911),
        ("cvx-n8-process", 0.119616 * 8),
        ("cvx-n8-pairwise", 0.940192),
    ],
)
def test_values_by_a_generic_solver(name, expected):
    found = ddlopt.solve(f"gossip/{name}", gap=1e-8)
    assert found.objective == pytest.approx(expected, abs=6e-5)
    assert found.gap <= 1e-8


@for_each("goal", ["averaging", "chain", "process", "pairwise"])
@for_each("seed", range(3))
def test_agrees_with_semidefinite_programming(goal, seed):
    graph = nx.connected_watts_strogatz_graph(12, 4, 0.4, seed=seed)
    asked = instance(graph, goal, 5.0 if goal == "process" else None)
    exact = FastestWeights(goal).solve(asked, TIGHT)
    generic = Semidefinite().solve(asked, TIGHT)
    assert exact.gap <= 1e-8
    assert generic.gap <= 1e-6
    assert exact.objective == pytest.approx(generic.objective, rel=1e-6)
    proven = float(evaluate(asked, exact.solution, exact=True).objective)
    assert proven == pytest.approx(exact.objective, rel=1e-9)
    assert evaluate(asked, exact.solution, exact=True).feasible


@for_each("goal", ["averaging", "chain", "process", "pairwise"])
def test_symmetry_changes_nothing_but_the_size(goal):
    asked = instance(nx.grid_2d_graph(4, 4), goal, 3.0 if goal == "process" else None)
    with_it = FastestWeights(goal).solve(asked, TIGHT)
    without = FastestWeights(goal, symmetry=False).solve(asked, TIGHT)
    assert with_it.objective == pytest.approx(without.objective, rel=1e-7)
    assert with_it.details["classes"] < without.details["classes"]


def test_costs_break_symmetry():
    graph = nx.path_graph(4)
    network = Network(nodes=4, edges=tuple(graph.edges()))
    even = WeightsInstance(name="a", network=network, goal="process", budget=1.0, costs=(1.0, 1.0, 1.0))
    odd = WeightsInstance(name="b", network=network, goal="process", budget=1.0, costs=(1.0, 1.0, 9.0))
    assert FastestWeights("process").solve(even, TIGHT).details["classes"] == 2
    found = FastestWeights("process").solve(odd, TIGHT)
    assert found.details["classes"] == 3
    assert found.gap <= 1e-8


def test_every_bound_on_the_way_holds():
    asked = instance(nx.connected_watts_strogatz_graph(14, 4, 0.4, seed=1), "chain")
    best = FastestWeights("chain").solve(asked, TIGHT).objective
    program = WeightsProgram(asked, np.arange(len(asked.network.edges)))
    bounds = []
    solve(program.program(), lambda at: bounds.append(program.bound(at)) or len(bounds) > 30)
    assert len(bounds) > 5
    assert max(bounds) <= best * (1 + 1e-9)


def test_chains_answer_averaging_within_their_scope():
    found = method(FMMC, "gossip").solve(ddlopt.load("gossip/cvx-n8-averaging"), TIGHT)
    assert found.scope == "Markov chain"
    assert found.scope_gap <= 1e-8
    assert found.bound < 0.6434
    assert min(found.solution.weights) >= 0


def test_a_deadline_gives_weights_and_what_is_known_by_then():
    asked = instance(nx.connected_watts_strogatz_graph(40, 4, 0.4, seed=1), "chain")
    found = FastestWeights("chain").solve(asked, Limits(time_s=1e-9))
    assert found.checked
    assert found.status == "feasible"


@for_each(("name", "goal"), [(FDLA, "chain"), (FMMP, "averaging"), ("metropolis", "pairwise"), ("uniform", "chain")])
def test_refusals(name, goal):
    with pytest.raises(NotApplicableError, match=f"'{goal}'"):
        method(name, "gossip").solve(instance(nx.path_graph(3), goal), Limits())


@pytest.mark.parametrize("name", ["max-degree", "metropolis", "best-constant"])
def test_rules_for_chains_are_chains(name):
    for graph in (nx.star_graph(6), nx.path_graph(5), nx.complete_graph(4), PENDANT):
        assert method(name, "gossip").solve(instance(graph, "chain"), Limits()).checked


def test_natural_probabilities():
    assert value("uniform", ddlopt.load("gossip/cvx-n8-pairwise")) == pytest.approx(0.958386, abs=1e-6)
    assert value("uniform", ddlopt.load("gossip/abilene-n11-pairwise")) == pytest.approx(0.989178, abs=1e-6)
    assert value("uniform", ddlopt.load("gossip/nsfnet-n13-process")) == pytest.approx(13 * 0.027094, abs=2e-5)
