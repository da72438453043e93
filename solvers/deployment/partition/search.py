"""Heuristics for throughput that move blocks between devices."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Solution
from ddlopt.models.deployment.partition.blocks import Blocks
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.ideals.ideals import costs_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import let_pass_at_least
from ddlopt.solvers.deployment.partition import kernels
from ddlopt.solvers.deployment.partition.linear import Linear, objective_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

_TOLERANCE_S = 1e-8
"""Of the released local search: a hundred-thousandth of a millisecond."""
_ROUNDS = 40
"""Kicks between looks at the clock."""


def _free_refusal(instance: Any) -> str | None:
    reason = refusal(instance, "throughput")
    if reason is None and instance.contiguous:
        return "it puts blocks anywhere, which a contiguous instance forbids; use linear or ideals"
    return reason


def _accelerator_refusal(instance: Any) -> str | None:
    reason = _free_refusal(instance)
    return "it uses accelerators only" if reason is None and not instance.accelerators else reason


@dataclass(frozen=True)
class HeaviestFirst(Heuristic, uses=()):
    """Block by block, the heaviest first, where the largest load grows least (our baseline)."""

    name: ClassVar[str] = "heaviest-first"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.partition.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous instances."""
        return _free_refusal(instance)

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass over the blocks."""
        blocks = contracted(instance)
        devices = kernels.heaviest_first(work_of(instance, blocks), _heaviest(blocks), instance.devices)
        if (devices < 0).any():
            raise NoSolutionError("a block fits nowhere after those that are heavier")
        return _partition(instance, blocks, devices), {}


@dataclass(frozen=True)
class LocalSearch(Heuristic, uses=("seed",)):
    """The paper's local search: from random accelerators, always the change of one block that is best.

    It ends where no change lowers the largest load. Processors stay idle, as in the paper; memory, which the released
    code does not look at, is kept where the beginning keeps it.

    Parameters
    ----------
    restarts : int
        As in the paper.

    References
    ----------
    J. Tarnawski et al., NeurIPS 2020, and the released code (option ``-localSearch``).
    """

    restarts: int = 10

    name: ClassVar[str] = "local-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.partition.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous instances; no accelerators."""
        return _accelerator_refusal(instance)

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of all restarts."""
        blocks, rng = contracted(instance), np.random.default_rng(seed)
        work, found = work_of(instance, blocks), None
        for _ in range(self.restarts):
            first = rng.integers(instance.accelerators, size=blocks.count)
            devices, _ = kernels.steepest(work, first, instance.devices, _TOLERANCE_S)
            solution = _partition(instance, blocks, devices)
            value = objective_of(instance, solution)
            if value is not None and (found is None or value < found[0]):
                found = value, solution
                clock.report(value)
            if clock.expired:
                break
        if found is None:
            raise NoSolutionError("every restart ended with too much memory, or with blocks where they cannot run")
        return found[1], {}


@dataclass(frozen=True)
class GraphCut(Heuristic, uses=("seed",)):
    """Accelerators have the parts of a balanced cut of the graph by METIS; processors stay idle.

    An output is an edge from its maker to each block that needs it, with its time shared out among them. The paper does
    the same with Scotch.

    Parameters
    ----------
    imbalance : float
        By which the largest part may exceed the average.
    """

    imbalance: float = 0.05

    name: ClassVar[str] = "graph-cut"

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous instances; no accelerators."""
        return _accelerator_refusal(instance)

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One cut."""
        blocks = contracted(instance)
        return _partition(instance, blocks, cut_graph(instance, blocks, self.imbalance, seed)), {}


@dataclass(frozen=True)
class PartitionSearch(Heuristic, uses=("seed", "start")):
    """Our search: from lines and the heaviest first, moves and swaps that relieve the busiest device, and kicks.

    A move or swap counts by the largest load and a little of the squares of all loads. Where none helps, a few blocks
    of the best partition are put elsewhere at random, and the search goes on.

    Parameters
    ----------
    rounds : int
        Kicks, where the time limit allows.
    """

    rounds: int = 400

    name: ClassVar[str] = "partition-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.partition.kernels", *Linear.kernels)

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous instances."""
        return _free_refusal(instance)

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of the starts, after the kicks."""
        blocks = contracted(instance)
        work, order, rng = work_of(instance, blocks), _heaviest(blocks), np.random.default_rng(seed)
        starts = [kernels.heaviest_first(work, order, instance.devices)]
        try:
            solution, _ = Linear().answer(instance, seed, clock, None)
            assert isinstance(solution, Partition)
            starts.append(blocks.devices_of_blocks(solution.devices))
        except NoSolutionError:
            pass
        if isinstance(start, Partition):
            starts.append(blocks.devices_of_blocks(start.devices))
        scale = float(np.where(np.isfinite(work.time[0]), work.time[0], 0.0).sum()) / instance.devices or 1.0
        best: tuple[float, npt.NDArray[np.int64]] | None = None
        for first in starts:
            if (first < 0).any():
                continue
            devices, value = kernels.kicked(work, first, instance.devices, scale, rng.random((0, 9)))
            if best is None or value < best[0]:
                best = value, devices
        if best is None:
            raise NoSolutionError("no partition to begin with was found")
        clock.report(best[0])
        done = 0
        while done < self.rounds and not clock.expired:
            devices, value = kernels.kicked(work, best[1], instance.devices, scale, rng.random((_ROUNDS, 9)))
            if value < best[0]:
                best = value, devices
                clock.report(value)
            done += _ROUNDS
        return _partition(instance, blocks, best[1]), {"kicks": float(done)}


def work_of(instance: PartitionInstance, blocks: Blocks) -> kernels.Work:
    """The blocks as kernels take them."""
    costs = costs_of(blocks)
    return kernels.Work(
        np.stack([blocks.accelerator_s, blocks.processor_s]),
        blocks.memory_bytes,
        costs.output_start,
        costs.output,
        blocks.transfer_s,
        blocks.of_pass,
        costs.pins,
        instance.accelerators,
        let_pass_at_least(instance.memory_bytes),
    )


def cut_graph(instance: PartitionInstance, blocks: Blocks, imbalance: float, seed: int) -> npt.NDArray[np.int64]:
    """Accelerator of each block; see :class:`GraphCut`."""
    # Here, as a library comes with it that nothing else needs.
    from ddlopt.models.deployment.graph_cut import partition

    edges = [(pins[0], other) for pins in blocks.pins for other in pins[1:]]
    weights = [
        time_s / (len(pins) - 1)
        for pins, time_s in zip(blocks.pins, blocks.transfer_s.tolist(), strict=True)
        for _ in pins[1:]
    ]
    times = blocks.accelerator_s.sum(axis=0)
    node_weights = np.where(np.isfinite(times), times, 0.0).tolist()
    return partition(node_weights, edges, weights, instance.accelerators, imbalance, seed)


def _heaviest(blocks: Blocks) -> npt.NDArray[np.int64]:
    times = np.minimum(blocks.accelerator_s.sum(axis=0), blocks.processor_s.sum(axis=0))
    return np.argsort(-times, kind="stable")


def _partition(instance: PartitionInstance, blocks: Blocks, devices: npt.NDArray[np.int64]) -> Partition:
    solution = Partition(instance=instance.name, devices=blocks.devices_of_nodes(devices.tolist()))
    if objective_of(instance, solution) is None:
        raise NoSolutionError("the partition asks for too much memory, or for nodes where they cannot run")
    return solution
