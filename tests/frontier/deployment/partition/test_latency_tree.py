"""Branch and bound for latency against all partitions, and what has to be the same under other names."""

import random
from typing import Any

import pytest
from partition_cases import MOST, optimum, several
from volume import for_each, slow, some

from ddlopt.frontier.deployment.partition import latency_tree_kernels as kernels
from ddlopt.frontier.deployment.partition.latency_tree import LatencyTree
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.partition.exact import Latency
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch

KINDS = [(subgraphs, place) for place in range(50) for subgraphs in (1, 2, 3, 4)]


def independent(**fields: Any) -> PartitionInstance:
    """Two nodes that do not need each other, and one accelerator, which each would like to have."""
    nodes = [
        {"name": "one", "accelerator_s": 1.2, "processor_s": 9.0, "transfer_s": 0.3},
        {"name": "other", "accelerator_s": 1.96, "processor_s": 4.86, "transfer_s": 0.1},
    ]
    data = {"name": "apart", "nodes": nodes, "accelerators": 1, "processors": 1, "memory_bytes": 1, "goal": "latency"}
    return PartitionInstance.from_data({**data, **fields})


def solved(instance: PartitionInstance) -> float | None:
    """The optimum, which is proven, by the default method; None if it is proven that there is none."""
    result = Latency().solve(instance, Limits())
    if result.status is Status.INFEASIBLE:
        return None
    assert result.status is Status.OPTIMAL
    assert result.scope is None
    assert result.bound is not None
    assert result.objective is not None
    assert result.objective == pytest.approx(result.bound, rel=1e-6)
    return result.objective


@for_each("subgraphs, place", some(KINDS, 12))
def test_the_best_of_all_partitions_is_proven(subgraphs: int, place: int) -> None:
    (instance,) = several(1, 5000 + 40 * place, goal="latency", subgraphs=subgraphs)
    best = optimum(instance)
    assert solved(instance) == (None if best is None else pytest.approx(best, rel=1e-9))


@for_each("seed, subgraphs", [(1, 2), *(slow(seed, 1 + seed % 3) for seed in range(2, 24))])
def test_so_it_is_for_up_to_eight_nodes(seed: int, subgraphs: int) -> None:
    (instance,) = several(1, 9000 + 40 * seed, most=10 * MOST, goal="latency", subgraphs=subgraphs)
    best = optimum(instance)
    assert solved(instance) == (None if best is None else pytest.approx(best, rel=1e-9))


def test_sets_of_one_accelerator_follow_each_other() -> None:
    assert solved(independent(subgraphs=2)) == pytest.approx(1.2 + 1.96)
    assert solved(independent()) == pytest.approx(1.2 + 1.96)
    # A processor waits for the second one alone if it is a set by itself, and else for both.
    one = {"name": "long", "processor_s": 3.0}
    longer = independent().model_copy(update={"edges": ((1, 2),)})
    data = {**longer.model_dump(), "nodes": [*longer.model_dump()["nodes"], one]}
    both = solved(PartitionInstance.from_data({**data, "subgraphs": 2}))
    assert both == pytest.approx(1.96 + 0.1 + 3.0)
    alone = solved(PartitionInstance.from_data({**data, "subgraphs": 1}))
    assert alone == pytest.approx(1.2 + 1.96 + 0.1 + 3.0)


@pytest.mark.parametrize("seed", range(4))
def test_names_of_nodes_and_a_longer_row_change_nothing(seed: int) -> None:
    (instance,) = several(1, 6000 + 17 * seed, goal="latency", subgraphs=2)
    place = list(range(len(instance.nodes)))
    random.Random(seed).shuffle(place)
    nodes = [instance.nodes[place.index(k)] for k in range(len(place))]
    edges = tuple((place[u], place[v]) for u, v in instance.edges)
    other = instance.model_copy(update={"nodes": tuple(nodes), "edges": edges})
    other = PartitionInstance.from_data(other.model_dump())
    best, again = solved(instance), solved(other)
    assert again == (None if best is None else pytest.approx(best, rel=1e-9))
    more = PartitionInstance.from_data({**instance.model_dump(), "subgraphs": 3})
    if best is not None:
        assert (solved(more) or 0) <= best * (1 + 1e-9)


def test_bounds_of_partial_partitions_hold() -> None:
    """Of every partial partition on the way to a given one, the bound is at most its latency."""
    met = 0
    for instance in several(30, 7000, goal="latency", subgraphs=2):
        found = LatencyTree().solve(instance, Limits())
        if found.solution is None:
            continue
        graph, tree, room = LatencyTree().prepared(instance)
        numbers = found.solution.subgraphs or (0,) * len(instance.nodes)
        count, unit, rows = len(instance.nodes), {}, {d: [] for d in range(instance.accelerators)}
        for depth, node in enumerate(graph.order.tolist()):
            device, number = found.solution.devices[node], numbers[node]
            code = unit.get((device, number), -1)
            if device == instance.accelerators:
                code = count
            elif code < 0:
                unit[device, number] = node
                rows[device] = sorted([*rows[device], number])
                code = count + 1 + device * (count + 1) + rows[device].index(number)
            kernels._place.py_func(node, code, tree, count)
            bound_s = kernels._least.py_func(graph, tree, room, depth + 1, 1e9)
            assert bound_s <= found.objective * (1 + 1e-12)
        assert bound_s == pytest.approx(float(evaluate_partition(instance, found.solution).objective))
        met += 1
    assert met > 10


def test_it_stops_and_refuses() -> None:
    instance = several(1, 5200, goal="latency", subgraphs=3)[0]
    assert "for latency" in str(LatencyTree().refuses(independent(goal="throughput")))
    full = independent(memory_bytes=1, processors=0)
    full = PartitionInstance.from_data(
        {**full.model_dump(), "nodes": [{**node, "memory_bytes": 0.7} for node in full.model_dump()["nodes"]]}
    )
    assert LatencyTree().solve(full, Limits()).status is Status.INFEASIBLE
    given_up = LatencyTree(most=0).solve(instance, Limits())
    assert given_up.objective == LatencySearch().solve(instance, Limits()).objective
