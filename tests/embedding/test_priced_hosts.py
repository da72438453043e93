"""Host models with prices of their own: nothing that a host may price is left out, and ports say what they mean.

A host minimises random prices of one port over a formulation with its symmetry and dominance switched off. Its optimum
is no more than any random feasible solution costs, by what the solution itself says; and what is read of it is feasible
and costs as much.
"""

import random
from itertools import pairwise

import feasible_cases as cases
import pyomo.environ as pyo
import pytest
from feasible_walks import walked
from topology_cases import all_to_all
from volume import slow

import ddlopt
from ddlopt.frontier.aggregation.graph.formulations.single_layer_flow import SingleLayerFlow
from ddlopt.frontier.scheduling.formulations.one_piece.one_piece import OnePiece
from ddlopt.frontier.scheduling.formulations.one_piece.plans import plans
from ddlopt.frontier.scheduling.formulations.rigid_gangs.rigid_gangs import RigidGangs
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import GraphAggregation
from ddlopt.models.aggregation.hot.formulations.hot_parameters import HotParameters
from ddlopt.models.aggregation.registers.batches import merged
from ddlopt.models.aggregation.registers.formulations.count_placement import CountPlacement, twins_of
from ddlopt.models.aggregation.registers.formulations.pair_placement import PairPlacement
from ddlopt.models.aggregation.table.formulations.table_path import TablePath
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation
from ddlopt.models.gossip.exchange.formulations.exchange_path import ExchangePath
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model


def links(instance, design):
    """Of pairs, as ``RingsAndRoutes`` has them."""
    found = {}
    for i, j, count in design.links:
        found[i, j] = found.get((i, j), 0) + count
    return found


def copies(instance, design):
    """Of pairs and numbers of links."""
    return {(i, j, c): 1 for (i, j), count in links(instance, design).items() for c in range(1, count + 1)}


def offsets(instance, design):
    """Links of server 0, of one-way circulants."""
    return {j: count for (i, j), count in links(instance, design).items() if i == 0}


def held(instance, placement):
    """Parameters of each set of twins in each array."""
    twins = [each.parameters for each in twins_of(instance, merged(instance)) if each.touched]
    found = {}
    for g, parameters in enumerate(twins):
        for i in parameters:
            found[g, placement.arrays[i]] = found.get((g, placement.arrays[i]), 0) + 1
    return found


def aggregating(instance, trees):
    """Switches where routes of a job end."""
    ends = {(j, route[-1]) for j, tree in enumerate(trees.trees) for route in tree}
    return {(j, v): 1 for j, v in ends if v != instance.jobs[j].server}


def hot(instance, placed):
    return {(j, int(i), s): 1 for s, own in enumerate(placed.placed) for j, each in enumerate(own) for i in each}


def entries(instance, tables):
    ends = [(*starts[1:], t.high + 1) for t, starts in zip(instance.tables, tables.starts, strict=True)]
    rows = zip(tables.starts, ends, strict=True)
    return {(k, a, b): 1 for k, (starts, last) in enumerate(rows) for a, b in zip(starts, last, strict=True)}


def in_slots(instance, schedule):
    """Workers of jobs on servers in slots."""
    return {(run.job, s, t): n for run in schedule.runs for t in range(run.start, run.end) for s, n in run.workers}


def starts(instance, schedule):
    """Jobs that start in a slot."""
    found = {}
    for run in schedule.runs:
        found[run.start] = found.get(run.start, 0) + 1
    return found


def port(name):
    return lambda block, instance: dict(block.component(name).items())


def of_plans(block, instance):
    """Workers of jobs on servers in slots, by the plans that have them."""
    found = {}
    for h, one in enumerate(plans(instance, len(block.plan) < len(plans(instance, False)))):
        for s, count in one.option.workers:
            for t in range(one.first, one.last):
                found[one.job, s, t] = found.get((one.job, s, t), 0) + count * block.plan[h]
    return found


def of_slots(block, instance):
    """Starts of all kinds in a slot."""
    found = {}
    for (_, t), variable in block.starting.items():
        found[t] = found.get(t, 0) + variable
    return found


def circulants(seed):
    """All-to-all, and the answers of heuristics."""
    instance = all_to_all(5 + seed % 3, 2)
    return instance, list(cases.answers_of(instance, ("expander", "topology-finder"), (0,)))


def twins(seed):
    """All servers alike."""
    instance = all_to_all(4, 2)
    return instance, list(cases.answers_of(instance, ("expander", "ocs-greedy", "topology-finder")))


CASES = {
    "RingsAndRoutes": (RingsAndRoutes(rings="all"), cases.topology_with_groups, port("link"), links),
    "RingsAndRoutes, congestion": (RingsAndRoutes(form="congestion"), cases.topology, port("link"), links),
    "CirculantDesign": (CirculantDesign(led=False), circulants, port("links"), offsets),
    "CountPlacement": (CountPlacement("none"), cases.registers, port("held"), held),
    "PairPlacement": (
        PairPlacement(symmetry=False),
        lambda seed: cases.registers(2 * seed + 1),
        port("on"),
        lambda _, placement: dict.fromkeys(enumerate(placement.arrays), 1),
    ),
    "GraphAggregation": (GraphAggregation(), lambda seed: cases.graph(6 * seed), port("aggregates"), aggregating),
    "SingleLayerFlow": (SingleLayerFlow(), lambda seed: cases.graph(6 * seed), port("aggregates"), aggregating),
    "HotParameters": (HotParameters(reduced=False), cases.hot, port("on"), hot),
    "TablePath": (TablePath(), cases.table, port("chosen"), entries),
    "TreeAggregation": (
        TreeAggregation(),
        cases.tree,
        port("aggregates"),
        lambda _, found: {(j, v): 1 for j, own in enumerate(found.switches) for v in own},
    ),
    "ExchangePath": (
        ExchangePath(),
        cases.exchange,
        port("chosen"),
        lambda instance, found: dict.fromkeys(pairwise((0, *found.times, instance.size)), 1),
    ),
    "TimeIndexed": (
        TimeIndexed(places="servers"),
        lambda seed: cases.scheduling(seed, ({"places": (2, 2), "objective": "makespan"},)),
        port("workers"),
        in_slots,
    ),
    "OnePiece": (
        OnePiece(symmetry=False),
        lambda seed: cases.scheduling(seed, ({"preemptive": False, "objective": "makespan", "places": (2, 2)},)),
        of_plans,
        in_slots,
    ),
    "RigidGangs": (RigidGangs(reduced=False), cases.gangs, of_slots, starts),
}
"""Formulation, drawer, what has a price in its block, and in a solution; all jobs are to be finished, of schedules."""


class Host:
    """A model with random prices of a port, solved."""

    def __init__(self, formulation, instance, priced, seed):
        self.formulation, self.instance = formulation, instance
        model = build_model(instance.family, formulation, instance)
        self.block = model.component(instance.family)
        ports, rng = priced(self.block, instance), random.Random(seed)
        self.price = {key: rng.choice((0.0, 1.0, 2.0, 5.0, 11.0)) for key in sorted(ports)}
        model.objective.deactivate()
        model.prices = pyo.Objective(expr=sum(value * ports[key] for key, value in self.price.items()))
        outcome = Highs().solve(model, Limits(time_s=60, gap=0))
        assert outcome.status is Status.OPTIMAL
        self.least = outcome.objective

    def cost(self, said):
        """Of what a solution says that it has of the port."""
        return sum(count * self.price[key] for key, count in said.items() if key in self.price)


def checked(name, seed):
    """Whether a host was built: its optimum is compared with random feasible solutions, and with what is read of it."""
    formulation, draw, priced, said = CASES[name]
    drawn = draw(seed)
    if drawn is None or formulation.refuses(drawn[0]) is not None:
        return False
    known = walked(drawn[0], drawn[1], random.Random(seed), 12)
    if not known:
        return False
    host = Host(formulation, drawn[0], priced, seed)
    read = formulation.read(host.block, drawn[0])
    assert ddlopt.check(drawn[0], read).feasible
    assert host.cost(said(drawn[0], read)) <= host.least + 1e-5
    for solution, _ in known:
        if formulation.scope(drawn[0]) is None:
            assert host.least <= host.cost(said(drawn[0], solution)) + 1e-5, solution.to_json(None)
    return True


@pytest.mark.parametrize("name", CASES)
def test_a_host_with_prices_finds_what_costs_least(name):
    assert any(checked(name, seed) for seed in range(12))


@pytest.mark.parametrize("name", [slow(name) for name in CASES])
def test_hosts_with_many_prices_find_what_costs_least(name):
    assert sum(checked(name, seed) for seed in range(100, 125)) >= 5


@pytest.mark.parametrize(
    ("name", "other", "draw"),
    [
        ("CountPlacement", CountPlacement(), cases.registers),
        ("PairPlacement", PairPlacement(), CASES["PairPlacement"][1]),
        ("RingsAndRoutes, congestion", RingsAndRoutes(numbering=True), lambda _: (all_to_all(4, 2), ())),
        ("RigidGangs", RigidGangs(), cases.gangs),
    ],
)
def test_with_its_symmetry_broken_it_would_not(name, other, draw):
    """The switches are needed: some host with prices pays more without them."""
    formulation, _, priced, _ = CASES[name]
    hosts = ([Host(each, draw(seed)[0], priced, seed) for each in (formulation, other)] for seed in range(12))
    assert any(broken.least > plain.least + 1e-6 for plain, broken in hosts)
