"""Maximum flows on 64-bit integers, and sufficient factor broadcasting as a minimum cut."""

from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np
import pytest
from sfb_brute_force import all_best
from volume import for_each, seeds, slow

from ddlopt.instances.generators.compression.sfb_random import random_graph
from ddlopt.models.compression import Operator, SfbInstance, SfbSelection, Tensor, evaluate
from ddlopt.models.compression.sfb import cut_network
from ddlopt.models.compression.sfb.cut_network import CutNetwork, minimum_cut
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.max_flow import LARGEST_TOTAL, FlowNetwork
from ddlopt.solvers.compression.sfb.min_cut import MinCut
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation

FORMS = list(product(("per_link", "total_bytes", "tag_code"), ("per_tensor", "per_edge")))
SHAPES = ("training", "any")


def drawn_network(rng):
    """Up to nine nodes from 0 to 1, with parallel and opposite arcs, and capacities of any magnitude."""
    nodes, arcs = int(rng.integers(2, 10)), int(rng.integers(0, 36))
    tails, heads = rng.integers(0, nodes, arcs), rng.integers(0, nodes, arcs)
    tails, heads = tails[tails != heads], heads[tails != heads]
    capacities = rng.integers(0, rng.choice([3, 2**20, 2**31, 2**40, 2**57]), len(tails))
    capacities[(rng.random(len(tails)) < 0.2) & (tails != 0)] = 2**61
    return nodes, tails, heads, capacities


def capacity(side, tails, heads, capacities):
    """Of the arcs from the source's side to the other one."""
    return sum(int(c) for i, j, c in zip(tails, heads, capacities, strict=True) if side[i] and not side[j])


@for_each("seed", seeds(15, 120))
def test_flow_and_both_extreme_cuts(seed):
    nodes, tails, heads, capacities = drawn_network(np.random.default_rng(seed))
    sides = [np.array((True, False, *bits)) for bits in product((False, True), repeat=nodes - 2)]
    values = [capacity(side, tails, heads, capacities) for side in sides]
    best = np.array([side for side, value in zip(sides, values, strict=True) if value == min(values)])
    network = FlowNetwork(nodes, tails, heads, 0, 1)
    fewest, most = network.minimum_cut(capacities), network.minimum_cut(capacities, largest=True)
    assert fewest.value == most.value == min(values)
    assert fewest.source_side.tolist() == best.all(axis=0).tolist()
    assert most.source_side.tolist() == best.any(axis=0).tolist()


def test_large_flow_is_that_of_another_library():
    rng = np.random.default_rng(0)
    tails, heads = rng.integers(0, 300, 2000), rng.integers(0, 300, 2000)
    tails, heads = tails[tails != heads], heads[tails != heads]
    capacities = rng.integers(0, 2**55, len(tails))
    graph = nx.DiGraph()
    for i, j, c in zip(tails.tolist(), heads.tolist(), capacities.tolist(), strict=True):
        graph.add_edge(i, j, capacity=c + graph.get_edge_data(i, j, {"capacity": 0})["capacity"])
    found = FlowNetwork(300, tails, heads, 0, 1).minimum_cut(capacities)
    assert found.value == nx.maximum_flow_value(graph, 0, 1)
    assert found.value == capacity(found.source_side, tails, heads, capacities)
    assert found.value.bit_length() > 54  # Beyond double precision, and SciPy's 32 bits by far.


@pytest.mark.parametrize("copies", [3, 4, 8])
def test_parallel_arcs_beyond_64_bits(copies):
    tails, heads = np.array([0] + copies * [2]), np.array([2] + copies * [1])
    found = FlowNetwork(3, tails, heads, 0, 1).minimum_cut(np.array([5] + copies * [2**61]))
    assert found.value == 5
    assert found.source_side.tolist() == [True, False, False]


def test_capacities_out_of_range_are_refused():
    network = FlowNetwork(2, np.array([0, 0]), np.array([1, 1]), 0, 1)
    assert network.minimum_cut(np.array([LARGEST_TOTAL // 2] * 2)).value == LARGEST_TOTAL
    for capacities in ([LARGEST_TOTAL] * 2, [-1, 2]):
        with pytest.raises(ValueError, match="2\\^61"):
            network.minimum_cut(np.array(capacities))


@pytest.mark.parametrize(("cost_model", "broadcast"), FORMS)
def test_optimum_is_that_of_enumeration(cost_model, broadcast):
    chosen = 0
    for seed in range(6):
        instance = random_graph(
            np.random.default_rng(seed), 8, SHAPES[seed % 2], mixed_replicas=seed > 2, network_gigabit_per_s=2.0,
            cost_model=cost_model, broadcast=broadcast,
        )  # fmt: skip
        result = MinCut().solve(instance, Limits(gap=0))
        best, _ = all_best(instance)
        assert result.objective == pytest.approx(best, rel=1e-12)
        assert result.bound == pytest.approx(best, rel=1e-12)
        assert result.bound <= float(all_best(instance, exact=True)[0]) * (1 + 1e-15)
        chosen += len(result.solution.duplicated)
    assert chosen > 0


def whole(seed, broadcast, operators=8):
    """A graph whose costs are small integers, so that floats are exact and there are many optima."""
    rng = np.random.default_rng(seed)
    parts = [
        Operator(
            name=f"{node}",
            time_s=2.0 * rng.integers(0, 3),
            replicas=2,
            bandwidth_bytes_per_s=1.0,
            gradient_bytes=float(rng.integers(0, 5) * rng.integers(0, 2)),
            can_duplicate=bool(rng.random() < 0.9),
        )
        for node in range(operators)
    ]
    tensors = []
    for node in range(operators - 1):
        consumers = rng.choice(np.arange(node + 1, operators), min(2, operators - node - 1), replace=False)
        tensors.append(Tensor(producer=node, consumers=consumers.tolist(), size_bytes=2.0 * rng.integers(0, 3)))
    return SfbInstance(name="whole", operators=parts, tensors=tensors, broadcast=broadcast)


@pytest.mark.parametrize("broadcast", ["per_tensor", "per_edge"])
def test_fewest_and_most_operators_of_all_optima(broadcast):
    apart = 0
    for seed in range(20):
        instance = whole(seed, broadcast)
        best, selections = all_best(instance)
        fewest, most = minimum_cut(instance), minimum_cut(instance, largest=True)
        assert fewest.bound_s == most.bound_s == best
        assert set(np.flatnonzero(fewest.duplicated)) == set.intersection(*selections)
        assert set(np.flatnonzero(most.duplicated)) == set.union(*selections)
        apart += (fewest.duplicated != most.duplicated).any()
    assert apart > 5


def independent_cut(instance):
    """The minimum cut as another library finds it, in a network made from the problem statement."""
    graph = nx.DiGraph()
    graph.add_nodes_from(["s", "t"])

    def add(tail, head, **capacity):
        """With parallel arcs as one; without a capacity it is endless."""
        if graph.has_edge(tail, head):
            capacity["capacity"] += graph[tail][head]["capacity"]
        graph.add_edge(tail, head, **capacity)

    for node, may in enumerate(instance.eligible):
        add("s", node, capacity=instance.sync_s[node])
        if may:
            add(node, "t", capacity=instance.extra_s[node] + instance.duplication_penalty_s)
        else:
            add(node, "t")
    for number, (tensor, cost) in enumerate(zip(instance.tensors, instance.broadcast_s, strict=True)):
        if instance.broadcast == "per_edge":
            for consumer in tensor.consumers:
                add(consumer, tensor.producer, capacity=cost)
        else:
            add(("tensor", number), tensor.producer, capacity=cost)
            for consumer in tensor.consumers:
                add(consumer, ("tensor", number))
    value, (side, _) = nx.minimum_cut(graph, "s", "t")
    return value, {node for node in side if isinstance(node, int)}


@for_each(("cost_model", "broadcast"), FORMS)
def test_cut_is_that_of_another_library(cost_model, broadcast):
    for seed, shape in enumerate(SHAPES):
        instance = random_graph(
            np.random.default_rng(seed), 90, shape, mixed_replicas=True, cost_model=cost_model, broadcast=broadcast
        )
        value, chosen = independent_cut(instance)
        found = minimum_cut(instance)
        assert found.bound_s == pytest.approx(value, rel=1e-12)
        selection = SfbSelection(instance=instance.name, duplicated=tuple(sorted(chosen)))
        assert evaluate(instance, selection).objective == pytest.approx(value, rel=1e-12)


def check_that_all_agree(seed):
    """Minimum cut, linear relaxation and integer program on a graph of 5 to 60 operators, of any kind."""
    rng = np.random.default_rng(seed)
    cost_model, broadcast = FORMS[seed % len(FORMS)]
    instance = random_graph(
        rng, int(rng.integers(5, 61)), SHAPES[seed // 6 % 2], width=int(rng.integers(1, 9)),
        replicas=int(rng.integers(2, 9)), mixed_replicas=seed % 3 == 0,
        network_gigabit_per_s=float(10 ** rng.uniform(-1, 2)), samples=int(rng.integers(1, 65)),
        cost_model=cost_model, broadcast=broadcast,
    )  # fmt: skip
    cut = MinCut().solve(instance, Limits(gap=0))
    relaxed = lp_relaxation(SfbMilp(), instance).objective
    whole = Exact("milp", "compression", SfbMilp()).solve(instance, Limits(gap=0))
    assert cut.objective * (1 - 1e-6) <= relaxed <= cut.objective * (1 + 1e-7)
    for result in (cut, whole):
        assert result.status is Status.OPTIMAL
        assert result.checked
        # Between the bound of the cut, which is rounded down from whole numbers, and the tolerance of a solver.
        assert cut.bound <= result.objective <= cut.objective * (1 + 1e-7)
        assert cut.objective * (1 - 1e-6) <= result.bound <= cut.objective * (1 + 1e-9)
    assert cut.bound == pytest.approx(cut.objective, rel=1e-9)
    return len(cut.solution.duplicated) > 0


@pytest.mark.parametrize("graphs", [18, slow(1000)])
def test_cut_relaxation_and_integer_program_agree(graphs):
    assert sum(check_that_all_agree(seed) for seed in range(graphs)) > graphs / 2


@pytest.mark.slow
def test_all_agree_on_a_large_graph():
    instance = random_graph(np.random.default_rng(0), 20_000)
    cut = MinCut().solve(instance, Limits(gap=0))
    relaxed = lp_relaxation(SfbMilp(), instance).objective
    assert cut.objective == pytest.approx(relaxed, rel=1e-7)
    assert cut.gap < 1e-11


def test_one_network_for_many_costs():
    instance = random_graph(np.random.default_rng(3), 60, "any", penalty_s=0.0)
    network = CutNetwork(instance)
    sizes = []
    for factor in (1e-3, 1.0, 1e3):
        data = instance.model_dump()
        for each in data["operators"]:
            each["time_s"] *= factor
        other = SfbInstance.from_data(data)
        found, expected = network.cut(extra_s=instance.extra_s * factor), minimum_cut(other)
        assert found.duplicated.tolist() == expected.duplicated.tolist()
        assert found.bound_s == pytest.approx(expected.bound_s, rel=1e-12)
        sizes.append(int(found.duplicated.sum()))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    doubled = network.cut(instance.extra_s, 2 * instance.sync_s, 2 * instance.broadcast_s)
    assert doubled.bound_s == pytest.approx(2 * network.cut(instance.extra_s / 2).bound_s, rel=1e-12)


@pytest.mark.parametrize("cost", ["extra_s", "sync_s", "broadcast_s"])
def test_negative_costs_are_refused(cost):
    instance = random_graph(np.random.default_rng(0), 20)
    with pytest.raises(ValueError, match="a cost is negative"):
        CutNetwork(instance).cut(**{cost: getattr(instance, cost) - 1})


@pytest.mark.parametrize("bits", [1, 4, 10, 20])
def test_bound_holds_on_any_grid(monkeypatch, bits):
    monkeypatch.setattr(cut_network, "_BITS", bits)
    for seed in range(10):
        instance = random_graph(np.random.default_rng(seed), 30, SHAPES[seed % 2])
        best, network = independent_cut(instance)[0], CutNetwork(instance)
        bound = network.cut().bound_s
        assert bound <= best * (1 + 1e-12)
        # No cut loses more than a unit of the grid for each of its arcs.
        assert bound >= best - network.figures["arcs"] * instance.sync_s.sum() * 2.0 ** (1 - bits)


def test_bound_is_rounded_down():
    # Sums of these do not fit into double precision.
    for seed in range(10):
        instance = random_graph(np.random.default_rng(seed), 30, fixed_part=1.0)
        exact = sum(map(Fraction, instance.sync_s.tolist()))
        assert exact * (1 - Fraction(1, 2**51)) <= Fraction(minimum_cut(instance).bound_s) <= exact


def test_figures_of_all_magnitudes():
    # The first gradient is 1e15 times the second; both are decided by their own figures.
    def operator(name, time_s, gradient_bytes):
        return Operator(name=name, time_s=time_s, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=gradient_bytes)

    instance = SfbInstance(
        name="magnitudes",
        operators=[
            operator("endless", 1e100, 0.0), operator("large", 1.0, 1e9), operator("small", 1e-6, 1e-6),
            operator("dear", 1e90, 1e-6), operator("bound", 0.0, 1e-6),
        ],
        tensors=[Tensor(producer=0, consumers=(4,), size_bytes=1e95)],
    )  # fmt: skip
    result = MinCut().solve(instance, Limits(gap=0))
    assert result.solution.duplicated == (1, 2)
    assert result.objective == pytest.approx(0.5 + 0.5e-6 + 2e-6, rel=1e-9)
    assert result.gap < 1e-8


def test_without_gradients_nothing_is_duplicated():
    parts = [Operator(name=name, time_s=1.0, replicas=2, bandwidth_bytes_per_s=1.0) for name in "ab"]
    alone = SfbInstance(name="alone", operators=parts[:1])
    two = SfbInstance(name="two", operators=parts, tensors=[Tensor(producer=0, consumers=(1,), size_bytes=1.0)])
    for instance in (alone, two):
        for largest in (False, True):
            found = minimum_cut(instance, largest=largest)
            assert not found.duplicated.any()
            assert found.bound_s == 0


def test_what_it_does_not_cover_is_refused():
    instance = random_graph(np.random.default_rng(0), 20, memory_part=0.5)
    with pytest.raises(NotApplicableError, match="knows no budgets"):
        MinCut().solve(instance, Limits())


def test_bound_and_size_are_reported():
    instance = random_graph(np.random.default_rng(0), 50, broadcast="per_edge")
    points = []
    result = MinCut().solve(instance, Limits(), progress=points.append)
    assert [point.bound for point in points] == [pytest.approx(result.objective, rel=1e-12)]
    edges = sum(len(tensor.consumers) for tensor in instance.tensors)
    assert (result.details["nodes"], result.details["arcs"]) == (52, 100 + edges)
