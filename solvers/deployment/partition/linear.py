"""Partitions along a line of blocks: the best cuts of it, by dynamic programming."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import networkx as nx
import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.deployment.partition.blocks import Blocks, as_contiguous
from ddlopt.models.deployment.partition.contraction import contracted, merged
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.ideals.ideals import ideals_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.deployment.partition.chains import best_chain, no_limit_s
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

# Orders that are tried, each a dynamic program.
_LINES = 6


@dataclass(frozen=True)
class Linear(Heuristic, uses=("seed",)):
    """The best contiguous pieces of topological orders, for throughput.

    The dynamic program over ideals on an order that is a line, where ideals are its beginnings. Lines are the order of
    the blocks, depth first, and others with ties broken at random.

    Parameters
    ----------
    lines : int
    """

    lines: int = _LINES

    name: ClassVar[str] = "linear"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.deployment.partition.ideals.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Latency."""
        return refusal(instance, "throughput")

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of all lines."""
        found = None
        blocks = contracted(as_contiguous(instance))
        for number, line in enumerate(lines(blocks, np.random.default_rng(seed))):
            if number >= self.lines or (found is not None and clock.expired):
                break
            solution = cut_line(instance, along(blocks, line))
            if solution is None:
                continue
            value = objective_of(instance, solution)
            if value is not None and (found is None or value < found[0] * (1 - IMPROVEMENT_TOL)):
                found = value, solution
                clock.report(value)
        if found is None:
            raise NoSolutionError("no line of the blocks can be cut into pieces that the devices take")
        return found[1], {}


@dataclass(frozen=True)
class PipeDream(Heuristic, uses=("seed",)):
    """PipeDream's partition as Tarnawski et al. compare with it: branches are not taken apart.

    Blocks from which edges of one biconnected component start are merged, what is left is put into a line, depth first,
    and that is cut in the best way. Edges of blocks without work, such as masks that go to every layer, do not hold
    components together; the released code has a list of such nodes by number for two graphs, and none for others.
    PipeDream itself also replicates pieces, which this problem does not have.

    References
    ----------
    D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019; J. Tarnawski et al.,
    NeurIPS 2020, and the released code (option ``-pipeDream``).
    """

    name: ClassVar[str] = "pipedream"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.deployment.partition.ideals.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Latency."""
        return refusal(instance, "throughput")

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best cuts of the line of components."""
        blocks = contracted(as_contiguous(instance))
        busy = (blocks.accelerator_s > 0).max(axis=0)
        graph = nx.Graph([edge for edge in blocks.order if busy[edge[0]]])
        together = nx.Graph()
        together.add_nodes_from(range(blocks.count))
        edges = set(blocks.order)
        for component in nx.biconnected_component_edges(graph):
            tails = [one if (one, other) in edges else other for one, other in component]
            together.add_edges_from((tails[0], tail) for tail in tails[1:])
        target = list(range(blocks.count))
        for group in nx.connected_components(together):
            for each in group:
                target[each] = min(group)
        # Merged blocks may wait for each other; such have to be one.
        condensed = nx.condensation(_quotient(blocks, target))
        for each in condensed:
            members = condensed.nodes[each]["members"]
            target = [min(members) if block in members else block for block in target]
        pieces = merged(blocks, target, _quotient(blocks, target).edges)
        solution = cut_line(instance, along(pieces, next(lines(pieces, np.random.default_rng(seed)))))
        if solution is None:
            raise NoSolutionError("the line of components cannot be cut into pieces that the devices take")
        return solution, {"components": float(pieces.count)}


def cut_line(instance: PartitionInstance, blocks: Blocks, limit_s: float | None = None) -> Partition | None:
    """The best cuts of the line of blocks, better than ``limit_s``; None if there are none."""
    order = [(block, block + 1) for block in range(blocks.count - 1)]
    bits = ideals_of(blocks.count, order, blocks.count + 1)
    assert bits is not None
    chain = best_chain(instance, blocks, bits, no_limit_s(blocks) if limit_s is None else limit_s)
    if chain is None:
        return None
    return Partition(instance=instance.name, devices=blocks.devices_of_nodes(chain.devices))


def objective_of(instance: PartitionInstance, solution: Partition) -> float | None:
    """Seconds; None if the partition is not feasible."""
    evaluation = evaluate_partition(instance, solution)
    return float(evaluation.objective) if evaluation.feasible and evaluation.objective is not None else None


def _quotient(blocks: Blocks, target: list[int]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(set(target))
    graph.add_edges_from((target[one], target[other]) for one, other in blocks.order if target[one] != target[other])
    return graph


def lines(blocks: Blocks, rng: np.random.Generator) -> Iterator[list[int]]:
    """Topological orders: that of the blocks, breadth first, and then depth first at random."""
    yield list(range(blocks.count))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(blocks.count))
    graph.add_edges_from(blocks.order)
    yield list(nx.topological_sort(graph))
    while True:
        waiting = {each: graph.in_degree(each) for each in graph}
        stack, line = [each for each in graph if not waiting[each]], []
        while stack:
            # Mostly what has become ready last.
            back = min(len(stack), 1 + int(rng.geometric(0.7)))
            each = stack.pop(-int(rng.integers(1, back + 1)))
            line.append(each)
            for after in graph.successors(each):
                waiting[after] -= 1
                if not waiting[after]:
                    stack.append(after)
        yield line


def along(blocks: Blocks, line: list[int]) -> Blocks:
    """The blocks renumbered in the order of a line, without an order of their own."""
    place = {block: number for number, block in enumerate(line)}
    return Blocks(
        tuple(blocks.members[block] for block in line),
        blocks.accelerator_s[:, line],
        blocks.processor_s[:, line],
        blocks.memory_bytes[line],
        tuple(tuple(sorted(place[pin] for pin in pins)) for pins in blocks.pins),
        blocks.transfer_s,
        blocks.of_pass,
        (),
    )
