"""Branch and bound for latency: every node into a unit, and every unit into its place on an accelerator."""

import math
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.partition.latency_tree_kernels import BETTER, DONE, PAUSED, Graph, Room, Tree, search
from ddlopt.frontier.deployment.partition.opening import opening
from ddlopt.models.deployment.partition.ideals.ideals import rows_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, let_pass_at_most
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.linear import objective_of
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_PORTION = 20_000
"""Partial partitions between looks at the clock."""


@dataclass(frozen=True)
class LatencyTree(CertifiedMethod, uses=("start",)):
    r"""All partitions for latency in depth first order, without those that cannot be better than the best one known.

    Nodes are placed one after the other in a topological order: into a set that runs as one on some accelerator, into a
    new set at any place among those of an accelerator, or on a processor. Sets need not be convex nor follow the order:
    only that none waits for itself is asked. Accelerators without work are interchangeable: only the first is tried, so
    that every partition is met once.

    *Bound.* With some nodes placed, a set takes at least the time of its nodes and of the transfers that are sure: of
    outputs with a pin in it and one that is placed elsewhere. With these times sets end at the longest paths through
    what they fetch and what runs before them on their accelerator. A node that is not placed ends after all that it
    needs, by its least time at least, and the longest path of least times comes after it: what joins a set makes that
    longer by as much. Where a node on a processor would be done too late, it must be on an accelerator; with these,
    the k accelerators have work for no more than k times the latency of the best partition known.

    It ends with a proof: the bound is the latency found.

    Parameters
    ----------
    most : int, optional
        Partial partitions to look at; then it gives up.
    """

    most: int | None = None

    name: ClassVar[str] = "latency-tree"
    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.deployment.partition.latency_tree_kernels",
        *LatencySearch.kernels,
    )

    def refuses(self, instance: Any) -> str | None:
        """Throughput."""
        return refusal(instance, "latency")

    def find(self, instance: PartitionInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or the best partition found until the time is up.

        Raises
        ------
        InfeasibleError
            If there is no partition: the search ended before its time, and leaves out partial partitions alone whose
            nodes already need more memory than there is, or that others stand for.
        """
        best, value_s = opening(instance, seed, clock, start, LatencySearch())
        below_s = math.inf if value_s is None else value_s
        graph, tree, room = self.prepared(instance)
        looked, code = 0, PAUSED
        while code != DONE and not clock.expired and (self.most is None or looked < self.most):
            code = search(graph, tree, room, below_s * (1 - IMPROVEMENT_TOL), _PORTION)
            looked += _PORTION if code == PAUSED else 0
            if code == BETTER:
                found = _partition(instance, tree)
                found_s = objective_of(instance, found)
                # The search adds up in floating point; where the check sees more than a device holds, it goes on.
                if found_s is not None and found_s < below_s:
                    best, below_s = found, found_s
                    clock.report(below_s)
        proven = code == DONE
        if best is None and proven:
            raise InfeasibleError(f"'{instance.name}' has no partition that fits, whatever is tried")
        if best is None:
            raise NoSolutionError(f"no partition that fits among {looked} partial ones")
        bound = below_s * (1 - IMPROVEMENT_TOL) if proven else None
        return MethodOutput(best, {"looked_at": float(looked)}, bound=bound)

    def prepared(self, instance: PartitionInstance) -> tuple[Graph, Tree, Room]:
        """What the kernels take, with nothing placed."""
        count = len(instance.nodes)
        times = [np.zeros(count) for _ in range(3)]
        room = Room(times[0], times[1], np.zeros(count, np.int64), times[2], np.zeros(instance.accelerators))
        return _graph(instance), _tree(instance), room


def _graph(instance: PartitionInstance) -> Graph:
    nodes, count = instance.nodes, len(instance.nodes)
    edges = [(user, maker) for maker, users in enumerate(instance.consumers) for user in users]
    needs: dict[int, list[int]] = {node: [] for node in range(count)}
    for user, maker in edges:
        needs[user].append(maker)
    order = list(TopologicalSorter(needs).static_order())
    pins = [(maker, pin) for maker, users in enumerate(instance.consumers) for pin in (maker, *users)]

    def times(name: str, there: bool) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        own = [getattr(node, name) if there else None for node in nodes]
        return np.array([math.inf if time_s is None else time_s for time_s in own])

    accelerator_s, processor_s = (
        times("accelerator_s", instance.accelerators > 0),
        times("processor_s", instance.processors > 0),
    )
    least_s, after_s = np.minimum(accelerator_s, processor_s), np.zeros(count)
    for node in reversed(order):
        after_s[node] = max((least_s[user] + after_s[user] for user in instance.consumers[node]), default=0.0)
    colour = np.arange(count)
    for own in instance.colours:
        colour[list(own)] = own[0]
    return Graph(
        np.array(order),
        *rows_of(count, edges),
        *rows_of(count, pins),
        accelerator_s,
        processor_s,
        np.array([node.transfer_s for node in nodes]),
        np.array([node.memory_bytes for node in nodes]),
        colour,
        after_s,
        instance.accelerators,
        instance.subgraphs,
        let_pass_at_most(instance.memory_bytes),
    )


def _tree(instance: PartitionInstance) -> Tree:
    count, accelerators = len(instance.nodes), instance.accelerators
    choices = 2 * count + accelerators + 2
    return Tree(
        np.zeros(1, np.int64),
        np.full(count, -1),
        np.full(count, -1),
        np.zeros((accelerators, count), np.int64),
        np.zeros(accelerators, np.int64),
        np.zeros((count, choices), np.int64),
        np.zeros((count, choices)),
        np.zeros(count, np.int64),
        np.full(count, -1),
    )


def _partition(instance: PartitionInstance, tree: Tree) -> Partition:
    devices, subgraphs = [], []
    for unit in tree.unit.tolist():
        device = int(tree.device[unit])
        devices.append(instance.accelerators if device < 0 else device)
        subgraphs.append(0 if device < 0 else tree.row[device].tolist().index(unit))
    return Partition(
        instance=instance.name, devices=tuple(devices), subgraphs=tuple(subgraphs) if any(subgraphs) else ()
    )
