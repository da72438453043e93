"""Least times of parts and branch and bound over sets, against all partitions."""

from typing import Any

import numpy as np
import pytest
from partition_cases import MOST, drawn, optimum
from volume import for_each, slow, some

from ddlopt.frontier.deployment.partition.latency_sets import search_kernels
from ddlopt.frontier.deployment.partition.latency_sets.kernels import with_each
from ddlopt.frontier.deployment.partition.latency_sets.method import LatencySets
from ddlopt.frontier.deployment.partition.latency_sets.parts import GraphParts, least_times, parts_of
from ddlopt.instances.generators import generate
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.partition.exact import Latency
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch


def tiny(count: int, first: int, most: int = MOST) -> list[PartitionInstance]:
    """Random instances without colours of several nodes, with up to three accelerators, some without a processor."""
    found: list[PartitionInstance] = []
    for seed in range(first, first + 40 * count):
        instance = drawn(seed, most, goal="latency")
        if instance is not None and len(found) < count:
            # Some in units a thousand times as small or as large.
            scale = (1.0, 1e-3, 1e3)[seed % 3]
            nodes = [_scaled({**node, "colour": None}, scale) for node in instance.model_dump()["nodes"]]
            plain = PartitionInstance.from_data({**instance.model_dump(), "nodes": nodes})
            if plain.devices ** len(plain.nodes) <= most:
                found.append(plain)
    return found


def _scaled(node: dict[str, Any], scale: float) -> dict[str, Any]:
    times = ("accelerator_s", "processor_s", "transfer_s")
    return {key: value * scale if key in times and value is not None else value for key, value in node.items()}


def of_tiny(first: int, most: int = MOST) -> PartitionInstance:
    """One of these."""
    return tiny(1, first, most)[0]


def least_of(parts: GraphParts, sets: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Least times without a clock."""
    found = least_times(parts, sets, lambda: False)
    assert found is not None
    return found


@for_each("first", some(range(20_000, 24_000, 40), 12))
def test_the_best_of_all_partitions_is_proven(first: int) -> None:
    instance = of_tiny(first)
    best = optimum(instance)
    result = LatencySets().solve(instance, Limits())
    if best is None:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-9)
    # Also where the search has to find it, and the opening is the worst there is.
    slowest = max(
        (evaluate_partition(instance, each).objective or 0.0, each.devices)
        for each in _all(instance)
        if evaluate_partition(instance, each).feasible
    )[1]
    again = LatencySets().solve(instance, Limits(), start=Partition(instance=instance.name, devices=slowest))
    assert again.objective == pytest.approx(best, rel=1e-9)


@for_each("first", [*(slow(first) for first in range(30_000, 31_200, 40))])
def test_so_it_is_for_up_to_eight_nodes(first: int) -> None:
    instance = of_tiny(first, 20 * MOST)
    best = optimum(instance)
    result = LatencySets().solve(instance, Limits())
    assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert result.objective == (None if best is None else pytest.approx(best, rel=1e-9))


@for_each("first", some(range(26_000, 28_000, 40), 8))
def test_a_part_takes_no_less_than_its_least_time(first: int) -> None:
    """With each number of sets, alone in the graph, by all of its partitions; exactly so with at most one set."""
    instance = of_tiny(first)
    if not instance.accelerators:
        return
    parts = parts_of(instance)
    assert parts is not None
    least_s, checked = least_of(parts, instance.accelerators + 2), 0
    for low, high in zip(parts.low.tolist(), parts.high.tolist(), strict=True):
        bits = int(parts.ideals.bits[high]) & ~int(parts.ideals.bits[low])
        inside = [int(node) for place, node in enumerate(parts.order) if bits >> place & 1]
        for sets in range(1, instance.accelerators + 1):
            alone = _alone(instance, inside, sets)
            best = None if alone is None else optimum(alone)
            if best is None:
                continue
            bound_s = least_s[sets, low, high]
            assert bound_s <= best * (1 + 1e-9)
            if sets == 1:
                assert bound_s == pytest.approx(best, rel=1e-9)
            checked += 1
    assert checked or not _feasible(instance)


def _alone(instance: PartitionInstance, inside: list[int], sets: int) -> PartitionInstance | None:
    place = {node: k for k, node in enumerate(inside)}
    data = instance.model_dump()
    edges = [(place[u], place[v]) for u, v in instance.edges if u in place and v in place]
    nodes = [data["nodes"][node] for node in inside]
    return PartitionInstance.from_data({**data, "nodes": nodes, "edges": edges, "accelerators": sets})


def _feasible(instance: PartitionInstance) -> bool:
    return optimum(instance) is not None


def test_bounds_with_a_set_hold_for_every_partition_that_has_it() -> None:
    met = 0
    for instance in tiny(6, 28_000):
        parts = parts_of(instance)
        if parts is None or not instance.accelerators or not len(parts.sets.bits):
            continue
        least_s = least_of(parts, instance.accelerators)
        found_s, loads_s = np.zeros(len(parts.sets.bits)), np.zeros(len(parts.sets.bits))
        with_each(parts.graph, parts.ideals, parts.sets, instance.accelerators, least_s, found_s, loads_s)
        known = dict(zip(parts.sets.bits.tolist(), found_s.tolist(), strict=True))
        place = {int(node): k for k, node in enumerate(parts.order)}
        for answer in _all(instance):
            latency = evaluate_partition(instance, answer)
            for device in range(instance.accelerators):
                bits = sum(1 << place[node] for node, own in enumerate(answer.devices) if own == device)
                if bits and latency.feasible and latency.objective is not None:
                    assert known[bits] <= float(latency.objective) * (1 + 1e-9)
                    met += 1
    assert met > 100


def _all(instance: PartitionInstance) -> list[Partition]:
    count = len(instance.nodes)
    choices: list[tuple[int, ...]] = [()]
    for _ in range(count):
        choices = [(*own, device) for own in choices for device in range(instance.devices)]
    return [Partition(instance=instance.name, devices=own) for own in choices]


def _branches(**fields: Any) -> PartitionInstance:
    """A chain that parts into two branches, which meet again: one set for both, or one each."""
    node = {"accelerator_s": 1.0, "processor_s": 20.0, "transfer_s": 0.01, "memory_bytes": 1.0}
    data = {
        "name": "branches",
        "nodes": [{"name": str(k), **node} for k in range(6)],
        "edges": [(0, 1), (0, 3), (1, 2), (3, 4), (2, 5), (4, 5)],
        "accelerators": 3,
        "processors": 1,
        "memory_bytes": 100,
        "goal": "latency",
    }
    return PartitionInstance.from_data({**data, **fields})


def test_parallel_branches_have_sets_of_their_own_where_that_is_quicker() -> None:
    assert LatencySets().solve(_branches(accelerators=2), Limits()).objective == pytest.approx(6.0)
    best = optimum(_branches())
    assert best is not None
    assert LatencySets().solve(_branches(), Limits()).objective == pytest.approx(best)


def test_between_two_sets_a_node_may_be_on_a_processor() -> None:
    nodes = [
        {"name": str(k), "accelerator_s": 10.0 if k == 1 else 1.0, "processor_s": 1.0 if k == 1 else 10.0}
        for k in range(3)
    ]
    data = {"name": "line", "nodes": nodes, "edges": [(0, 1), (1, 2)], "accelerators": 2, "processors": 1}
    instance = PartitionInstance.from_data({**data, "memory_bytes": 9, "goal": "latency"})
    assert LatencySets().solve(instance, Limits()).objective == pytest.approx(3.0)
    parts = parts_of(instance)
    assert parts is not None
    assert least_of(parts, 2)[2, 0, -1] == pytest.approx(3.0)


def test_the_last_set_need_not_have_what_is_in_time_on_a_processor() -> None:
    nodes = [{"name": str(k), "accelerator_s": (1e-3, 8e-3)[k], "processor_s": (9e-3, 1e-3)[k]} for k in range(2)]
    data = {"name": "line", "nodes": nodes, "edges": [(0, 1)], "accelerators": 1, "processors": 1}
    instance = PartitionInstance.from_data({**data, "memory_bytes": 9, "goal": "latency"})
    start = Partition(instance=instance.name, devices=(1, 1))
    assert LatencySets().solve(instance, Limits(), start=start).objective == pytest.approx(2e-3)


@pytest.mark.parametrize(
    ("sets", "before", "waits"),
    [
        # 0 -> 1 and 2 -> 3.
        ((0b1001, 0b0110), (0b0100, 0b0001), True),
        ((0b0011, 0b1100), (0b0000, 0b0000), False),
        # 0 -> 1, 2 -> 3, 4 -> 5: each set needs the next one.
        ((0b100001, 0b000110, 0b011000), (0b010000, 0b000001, 0b000100), True),
        ((0b000011, 0b001100, 0b110000), (0b000000, 0b000001, 0b000101), False),
    ],
)
def test_sets_that_need_each_other_in_a_circle(sets: tuple[int, ...], before: tuple[int, ...], waits: bool) -> None:
    nothing = np.zeros(len(sets))
    offers = search_kernels.Offers(np.array(sets, np.uint64), np.array(before, np.uint64), nothing, nothing)
    one, count = np.zeros(1, np.int64), np.arange(len(sets))
    tree = search_kernels.Tree(one, one, one, one, np.zeros((1, 1), np.int32), one, count, np.array([len(sets)]))
    assert search_kernels._wait_for_themselves.py_func(offers, tree) is waits


def test_a_larger_graph_with_branches_is_better_than_any_line_of_sets() -> None:
    """Lines of one topological order, which the search of the solvers has, miss two branches at the same time."""
    instance = generate("deployment", "layered", 4, nodes=20, accelerators=3, goal="latency")
    line = LatencySearch().solve(instance, Limits())
    best = LatencySets().solve(instance, Limits())
    assert best.status is Status.OPTIMAL
    assert line.objective is not None
    assert best.objective is not None
    assert best.objective <= line.objective
    assert Latency().solve(instance, Limits()).objective == pytest.approx(best.objective, rel=1e-9)


def test_sets_without_time_do_not_wait_for_each_other() -> None:
    nodes = [
        {"name": str(k), "accelerator_s": 0.0, "processor_s": 5.0, "transfer_s": 0.0, "memory_bytes": 1}
        for k in range(4)
    ]
    # Two of each kind would need each other: {0, 3} and {1, 2} with 0 -> 1 and 2 -> 3.
    data = {"name": "crossed", "nodes": nodes, "edges": [(0, 1), (2, 3)], "accelerators": 2, "processors": 1}
    instance = PartitionInstance.from_data({**data, "memory_bytes": 2, "goal": "latency"})
    result = LatencySets().solve(instance, Limits())
    assert result.objective == 0.0
    assert result.checked


def test_where_nothing_fits_it_is_said() -> None:
    nodes = [{"name": str(k), "accelerator_s": 1.0, "memory_bytes": 0.7} for k in range(3)]
    data = {"name": "full", "nodes": nodes, "accelerators": 2, "memory_bytes": 1, "goal": "latency"}
    result = LatencySets().solve(PartitionInstance.from_data(data), Limits())
    assert result.status is Status.INFEASIBLE


def test_what_it_refuses_and_that_it_stops() -> None:
    one = LatencySets()
    assert "for latency" in str(one.refuses(_branches(goal="throughput")))
    assert "several" in str(one.refuses(_branches(subgraphs=2)))
    together = [{**node, "colour": 1} for node in _branches().model_dump()["nodes"]]
    assert "colours" in str(one.refuses(_branches(nodes=together)))
    many = generate("deployment", "layered", 1, nodes=80, accelerators=2, goal="latency")
    assert "too many parts" in str(one.refuses(many))
    short = one.solve(_branches(), Limits(1e-9))
    assert short.status in (Status.FEASIBLE, Status.NO_SOLUTION, Status.OPTIMAL)
    given_up = LatencySets(most=0).solve(_branches(), Limits())
    assert given_up.objective is not None
    assert given_up.bound is not None
    assert given_up.bound <= given_up.objective


@pytest.mark.parametrize("first", [25_040, 25_080])
def test_names_of_nodes_change_nothing(first: int) -> None:
    instance = of_tiny(first)
    order = list(range(len(instance.nodes)))[::-1]
    place = {node: k for k, node in enumerate(order)}
    other = PartitionInstance.from_data(
        {
            **instance.model_dump(),
            "nodes": [instance.model_dump()["nodes"][node] for node in order],
            "edges": [(place[u], place[v]) for u, v in instance.edges],
        }
    )
    one, again = LatencySets().solve(instance, Limits()), LatencySets().solve(other, Limits())
    assert again.objective == (None if one.objective is None else pytest.approx(one.objective, rel=1e-9))
