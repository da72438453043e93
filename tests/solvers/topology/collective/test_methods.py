"""Methods for collectives: proven values, agreement with each other, and no bound above any plan."""

import json
import random
from contextlib import suppress
from fractions import Fraction
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from networks_drawn import drawn, several
from shared_data import shared_data
from volume import for_each, slow

import ddlopt
from ddlopt.frontier.topology.collective.columns import TreeColumns
from ddlopt.frontier.topology.collective.prices import price_bound
from ddlopt.frontier.topology.collective.rings import Rings
from ddlopt.frontier.topology.collective.shares import Column, best_shares
from ddlopt.frontier.topology.collective.tours import good_tour, least_tour, length
from ddlopt.instances import generators
from ddlopt.models import plugins
from ddlopt.models.catalogue import outside_of_room
from ddlopt.models.errors import RangeError
from ddlopt.models.topology import CollectiveInstance
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.models.topology.collective.formulations.all_to_all_flows import AllToAllFlows
from ddlopt.models.topology.collective.paths import loads, shortest
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.catalogue import entries, method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.topology.collective.baselines import binary_tree
from ddlopt.solvers.topology.collective.forest import Forest

COLLECTIVES = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all")
ROOM = tuple(entry for entry in entries("topology") if entry.summary.startswith("collective: "))
LIMITS = Limits(time_s=60.0, gap=0.0)


def seconds(instance, result):
    """The objective as a fraction."""
    found = evaluate_collective(instance, result.solution, exact=True)
    assert found.feasible
    return found.objective


def made(network, collective, **options):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


@for_each("seed", range(40))
def test_trees_attain_the_cut_exactly(seed):
    """Balanced switches: packed trees are at the bound of the worst cut, without any tolerance in whole bandwidths."""
    for collective in ("all-gather", "reduce-scatter", "broadcast"):
        instance = several(seed + 1, collective)[seed]
        result, bandwidths = Forest().solve(instance, LIMITS), set(instance.bandwidth.values())
        bound = exact_collective_bound(instance)
        if bandwidths <= {1.0, 2.0, 3.0}:
            assert seconds(instance, result) == bound
        elif max(bandwidths) < 1e6 * min(bandwidths):
            assert bound <= seconds(instance, result) <= bound * (1 + Fraction(1, 10**5))
        else:
            assert result.solution is None or seconds(instance, result) >= bound


@pytest.mark.parametrize("step_s", [0.0, 1e-6])
@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "all-to-all"])
def test_without_the_frontier_there_is_a_checked_plan(monkeypatch, collective, step_s):
    """Flows where steps take no time, and then they prove it; else trees, a ring or shortest paths."""
    monkeypatch.setenv(plugins.HIDDEN, "1")
    instance = several(1, collective, most=4)[0].model_copy(update={"step_s": step_s})
    result = ddlopt.solve(instance, "exact")
    assert result.checked
    assert step_s or result.status is Status.OPTIMAL


def test_shortest_paths_of_all_pairs():
    """On a ring of four with links in one direction a byte is on 1 + 2 + 3 links, for a quarter of M each."""
    links = [{"source": i, "target": (i + 1) % 4, "bytes_per_s": 1.0} for i in range(4)]
    instance = CollectiveInstance.model_validate(
        {"name": "ring", "accelerators": 4, "collective": "all-to-all", "collective_bytes": 4.0, "links": links}
    )
    assert seconds(instance, ddlopt.solve(instance, "shortest-paths")) == 6


def test_costs_are_least_beside_a_price_that_is_far_larger():
    """From 0 to 2 by 1, at 2e-9: each link costs a part of the largest price besides, so that ties make short paths."""
    links = [{"source": i, "target": j, "bytes_per_s": 1.0} for i in range(3) for j in range(3) if i != j]
    instance = CollectiveInstance.model_validate(
        {"name": "all", "accelerators": 3, "collective": "all-gather", "collective_bytes": 1.0, "links": links}
    )
    prices = {(0, 1): 1e-9, (1, 2): 1e-9, (0, 2): 1e-6, (1, 0): 1e6, (2, 0): 1.0, (2, 1): 1.0}
    costs, _ = shortest(instance, prices)
    assert costs[0] == [0.0, 1e-9, 2e-9]


@for_each("seed", range(25))
def test_columns_agree_with_trees_and_flows(seed):
    for collective in COLLECTIVES:
        instance = several(seed + 1, collective, most=4)[seed]
        columns = TreeColumns().solve(instance, LIMITS)
        found = seconds(instance, columns)
        assert float(found) <= columns.bound * (1 + 1e-6)
        if collective == "all-to-all":
            with suppress(RangeError):  # a link of a billionth of the others' bandwidth
                flows = ddlopt.solve(instance, "all-to-all-flows")
                assert float(found) == pytest.approx(flows.objective, rel=1e-6)
            continue
        with suppress(RangeError):
            flows = ddlopt.solve(instance, "tree-flows")
            assert flows.objective == pytest.approx(float(found), rel=1e-6)
            assert flows.bound <= float(found) * (1 + 1e-6)
        if collective != "all-reduce":
            assert float(found) == pytest.approx(float(exact_collective_bound(instance)), rel=1e-6)


@for_each("seed", range(15))
def test_unbalanced_switches_are_no_obstacle(seed):
    """More leads into a switch than out of it: trees are not packed, and their linear program bounds them."""
    instance = drawn(seed, "all-gather", balanced=False)
    if instance is not None:
        result = ddlopt.solve(instance)
        assert result.status == "optimal"
        assert seconds(instance, result) >= exact_collective_bound(instance)


@pytest.mark.parametrize(
    ("network", "options", "in_turn", "at_once"),
    [
        ("star", {"accelerators": 5}, 8, 5),
        ("path", {"accelerators": 4}, 3, 2),
        ("de-bruijn", {"accelerators": 8}, 7, 4),
    ],
)
def test_phases_in_turn_may_lose(network, options, in_turn, at_once):
    """All-reduce against a reduce-scatter and then an all-gather: 8/5, 3/2, and 7/4 on a de Bruijn graph."""
    parts = sum(exact_collective_bound(made(network, each, **options)) for each in ("all-gather", "reduce-scatter"))
    whole = made(network, "all-reduce", **options)
    result = ddlopt.solve(whole)
    best = seconds(whole, result)
    assert best == exact_collective_bound(whole)
    assert parts / best == Fraction(in_turn, at_once)


@pytest.mark.parametrize(("boxes", "loss"), [(2, Fraction(13, 8)), slow(4, Fraction(31, 24)), slow(8, Fraction(9, 8))])
def test_what_rings_lose_on_boxes(boxes, loss):
    instance = made("dgx-a100", "all-gather", boxes=boxes)
    trees, rings = Forest().solve(instance, LIMITS), Rings().solve(instance, Limits(time_s=600.0))
    lost = seconds(instance, rings) / seconds(instance, trees)
    assert lost == loss if boxes == 2 else abs(lost / loss - 1) < 1e-7


@for_each("seed", range(30))
def test_mixtures_of_rings_are_those_of_all_rings(seed):
    """Against the linear program over all rings whose neighbours are joined directly."""
    instance = several(seed + 1, most=5)[seed]
    if instance.switches or instance.accelerators < 3:
        return
    rings = [
        tuple(zip((0, *order), (*order, 0), strict=True)) for order in permutations(range(1, instance.accelerators))
    ]
    rings = [each for each in rings if all(hop in instance.bandwidth for hop in each)]
    method = Rings(forwarding=False)
    if not rings:
        assert method.solve(instance, LIMITS).status == "no_solution"
        return
    around = (instance.accelerators - 1) / instance.accelerators
    columns = [Column((), {link: n * around for link, n in loads(each).items()}) for each in rings]
    floor = float(exact_collective_bound(instance)) / instance.collective_bytes
    wanted = best_shares(instance.bandwidth, {(): Fraction(1)}, columns, floor).seconds * instance.collective_bytes
    result = method.solve(instance, LIMITS)
    assert result.objective == pytest.approx(wanted, rel=1e-6)
    assert result.scope_bound == pytest.approx(wanted, rel=1e-6)
    assert result.scope_bound <= result.objective


@for_each("seed", range(30))
def test_no_bound_is_above_any_plan(seed):
    for collective in COLLECTIVES:
        instance = several(seed + 1, collective, most=4 + (seed > 0))[seed]
        plans, bounds = [], [exact_collective_bound(instance)]
        for entry in ROOM:
            method = entry.make("highs")
            if method.refuses(instance) is None:
                with suppress(RangeError):
                    result = method.solve(instance, Limits(time_s=20.0))
                    plans += [] if result.solution is None else [seconds(instance, result)]
                    bounds += [] if result.bound is None else [Fraction(result.bound)]
        draw = random.Random(seed)
        for _ in range(5):
            bounds.append(price_bound(instance, {link: Fraction(draw.randrange(5)) + 1 for link in instance.bandwidth}))
        assert max(bounds) <= min(plans) * (1 + Fraction(1, 10**7))


@for_each("seed", range(12))
def test_the_best_single_ring_is_that_of_all_orders(seed):
    """Against the linear program of each order, over all simple paths of each hop."""
    instance = several(seed + 1, most=4)[seed]
    if max(instance.bandwidth.values()) > 1e6 * min(instance.bandwidth.values()):
        return
    graph, count = nx.DiGraph(list(instance.bandwidth)), instance.accelerators
    around, values = Fraction(count - 1, count), []
    floor = float(exact_collective_bound(instance)) / instance.collective_bytes
    for rest in permutations(range(1, count)):
        ends = list(zip((0, *rest), (*rest, 0), strict=True))
        columns = [
            Column(end, {link: n * around for link, n in loads([tuple(path)]).items()})
            for end in ends
            for path in nx.all_simple_paths(graph, *end)
        ]
        shares = best_shares(instance.bandwidth, dict.fromkeys(ends, Fraction(1)), columns, floor)
        values.append(shares.seconds * instance.collective_bytes)
    result = method("ring", "topology").solve(instance, LIMITS)
    assert result.objective == pytest.approx(min(values), rel=1e-6)
    assert result.scope_bound == pytest.approx(min(values), rel=1e-6)
    assert result.scope == "one ring"


def test_shares_without_a_small_common_denominator_are_solved_for():
    """Mixtures of rings on a complete graph: some weights have large denominators, and their sum is exact."""
    instance = made("complete", "all-gather", accelerators=7)
    result = Rings(forwarding=False).solve(instance, LIMITS)
    assert seconds(instance, result) == exact_collective_bound(instance) == Fraction(1, 7)


def test_oblivious_trees_are_what_they_are_called():
    for count in range(2, 40):
        edges = binary_tree(count)
        assert sorted(far for _, far in edges) == list(range(1, count))
        assert max(sum(near == node for near, _ in edges) for node in range(count)) <= 2
    instance = made("complete", "all-reduce", accelerators=8)
    hops = {name: ddlopt.solve(instance, name).details["hops"] for name in ("halving-doubling", "double-binary-tree")}
    assert hops == {"halving-doubling": 6, "double-binary-tree": 6}
    assert seconds(instance, ddlopt.solve(instance, "ring-in-order")) == Fraction(7, 4)
    odd = made("complete", "all-gather", accelerators=6)
    assert "power of two" in entry_of("halving-doubling").refuses(odd)


def one_way(*links, root=0):
    """A broadcast whose bytes cannot come back."""
    joined = [{"source": i, "target": j, "bytes_per_s": 1.0} for i, j in links]
    data = {"name": "one-way", "accelerators": len(links) + 1, "links": joined, "collective": "broadcast", "root": root}
    return CollectiveInstance.from_data({**data, "collective_bytes": 1.0})


def test_trees_by_number_need_paths():
    along = method("ring-in-order", "topology").solve(one_way((0, 1), (1, 2)), Limits(5.0))
    assert (along.objective, along.checked) == (1.0, True)
    for name, instance in (
        ("ring-in-order", one_way((0, 2), (2, 1))),
        ("halving-doubling", one_way((0, 1), (0, 3), (3, 2))),
    ):
        found = method(name, "topology").solve(instance, Limits(5.0))
        assert found.status is Status.NO_SOLUTION
        assert found.message.startswith("no path leads from accelerator 1 to ")


def entry_of(name):
    return next(entry for entry in ROOM if entry.name == name).make("highs")


@for_each("seed", range(20))
def test_tours(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 8))
    costs = rng.integers(1, 9, (count, count)).astype(float)
    costs[rng.random((count, count)) < 0.2] = np.inf
    orders = [[0, *rest] for rest in permutations(range(1, count))]
    wanted = min(length(costs, order) for order in orders)
    value, order = least_tour(costs)
    assert value == wanted
    assert not np.isfinite(value) or length(costs, order) == wanted
    if np.isfinite(costs[~np.eye(count, dtype=bool)]).all():
        value, order = good_tour(costs, rng)
        assert sorted(order) == list(range(count))
        assert value == length(costs, order) >= wanted


@pytest.mark.parametrize("seed", range(4))
def test_tours_end_where_prices_are_rounding(seed):
    """What rounding gains beside prices of 1e-17 was moved for, there and back, without an end."""
    rng = np.random.default_rng(seed)
    there, back = (np.where(rng.random(9) < 0.5, rng.random(9), 1e-17 * rng.random(9)) for _ in range(2))
    costs = there[:, None] + back[None, :]
    value, order = good_tour(costs, rng)
    assert value == length(costs, order) >= least_tour(costs)[0] * (1 - 1e-12)


def test_methods_of_topology_design_refuse_a_collective_and_the_other_way_round():
    here, there = made("ring", "all-gather", accelerators=4), ddlopt.load("topology/tiny-n4-d2")
    for entry in entries("topology"):
        if entry.name == "exact":
            continue
        method = entry.make("highs")
        of_here = entry in ROOM
        assert method.refuses(there) is not None if of_here else "collective" in method.refuses(here), entry.name


@pytest.mark.slow
@pytest.mark.parametrize("network", ["torus", "dgx-a100"])
def test_128_accelerators_at_the_bound(network):
    instance = made(network, "all-gather", dimensions="8x16", boxes=16)
    result = ddlopt.solve(instance, time_limit=300)
    assert seconds(instance, result) == exact_collective_bound(instance)


@pytest.mark.slow
def test_rings_found_elsewhere():
    """Single rings and mixtures on the same networks, without forwarding and with it."""
    kinds = {
        "ring_single": (False, False), "ring_single_forwarding": (False, True),
        "ring_mixture": (True, False), "ring_mixture_forwarding": (True, True),
    }  # fmt: skip
    for name, known in json.loads(shared_data("collectives/values.json").read_text()).items():
        data = json.loads(shared_data(f"collectives/{name}.json").read_text())
        instance = CollectiveInstance(
            name=name, accelerators=len(data["accelerators"]), switches=len(data["switches"]), collective="all-gather",
            links=[{"source": i, "target": j, "bytes_per_s": b} for i, j, b in data["links"]], collective_bytes=1,
        )  # fmt: skip
        for kind in known.keys() & kinds.keys():
            mixture, forwarding = kinds[kind]
            result = Rings(mixture=mixture, forwarding=forwarding).solve(instance, Limits(time_s=120.0))
            told = known[kind]["time"] if isinstance(known[kind], dict) else known[kind]
            found = None if result.solution is None else str(seconds(instance, result))
            assert found == told, (name, kind)


@pytest.mark.slow
def test_values_found_elsewhere():
    """30 networks whose optima are known as fractions."""
    for name, known in json.loads(shared_data("collectives/values.json").read_text()).items():
        data = json.loads(shared_data(f"collectives/{name}.json").read_text())
        count = len(data["accelerators"])
        wanted = {
            "all-gather": known["allgather"]["time"], "reduce-scatter": known["reduce_scatter"]["time"],
            "all-reduce": known["allreduce"], "all-to-all": known["alltoall"],
        }  # fmt: skip
        for collective, value in wanted.items():
            instance = CollectiveInstance(
                name=name, accelerators=count, switches=len(data["switches"]), collective=collective,
                links=[{"source": i, "target": j, "bytes_per_s": b} for i, j, b in data["links"]],
                collective_bytes=count if collective == "all-to-all" else 1,
            )  # fmt: skip
            assert seconds(instance, ddlopt.solve(instance)) == Fraction(value), (name, collective)


def test_what_stands_in_a_room_is_not_of_rooms_within():
    """Formulations of topology design are none of collectives, nor of other families."""
    here, there = made("ring", "all-gather", accelerators=4), ddlopt.load("topology/tiny-n4-d2")
    design, flows = RingsAndRoutes(), AllToAllFlows()
    assert outside_of_room(design, here) == "it is of topology, and this is a collective"
    assert outside_of_room(design, there) is None
    assert outside_of_room(flows, here) is None
    assert outside_of_room(flows, there) is None
    assert outside_of_room(object(), here) is None
    schedule = ddlopt.load("scheduling/tiny-fair")
    assert outside_of_room(design, schedule) == "it is of topology, and this is a scheduling instance"
