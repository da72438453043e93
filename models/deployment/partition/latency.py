"""Blocks of latency instances, and longest paths."""

import networkx as nx

from ddlopt.models.deployment.partition.blocks import Blocks, blocks_of
from ddlopt.models.deployment.partition.instance import PartitionInstance


def ordered(instance: PartitionInstance) -> Blocks:
    """Blocks of a latency instance, in an order that its edges allow."""
    return blocks_of(instance.changed(goal="throughput", contiguous=True, subgraphs=1))


def critical_path_s(instance: PartitionInstance) -> float:
    """The longest path if every node is where it takes the least time, and nothing is transferred."""
    times = [_least(instance, node) for node in range(len(instance.nodes))]
    return longest_path(instance, times)


def longest_path(instance: PartitionInstance, times_s: list[float]) -> float:
    """Of all paths, the largest sum of times of its nodes."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(times_s)))
    graph.add_edges_from(instance.edges)
    done: dict[int, float] = {}
    for node in nx.topological_sort(graph):
        done[node] = times_s[node] + max((done[each] for each in graph.predecessors(node)), default=0.0)
    return max(done.values())


def _least(instance: PartitionInstance, node: int) -> float:
    data = instance.nodes[node]
    times = []
    if data.accelerator_s is not None and instance.accelerators:
        times.append(data.accelerator_s)
    if data.processor_s is not None and instance.processors:
        times.append(data.processor_s)
    return min(times)
