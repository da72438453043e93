"""Heuristics for latency: the paper's greedy, and the best sequence of sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Solution
from ddlopt.models.deployment.partition.blocks import Blocks
from ddlopt.models.deployment.partition.ideals import kernels
from ddlopt.models.deployment.partition.ideals.ideals import costs_of, ideals_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.deployment.partition.latency import ordered
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import let_pass_at_least
from ddlopt.solvers.deployment.partition.linear import along, lines, objective_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    most_ideals: int = 6000
    """The dynamic program takes their square; on larger graphs lines are used instead."""
    portion: int = 200
    """Ideals between looks at the clock."""
    lines: int = 8
    """Orders that are tried, each a dynamic program."""


_EFFORT = Effort()


@dataclass(frozen=True)
class LatencyGreedy(Heuristic, uses=()):
    """The paper's greedy: accelerators one after the other take blocks in topological order while memory lasts.

    What does not fit an accelerator by itself, cannot run on one or comes after the last goes to processors.

    References
    ----------
    J. Tarnawski et al., NeurIPS 2020, appendix, and the released code (latency-greedy).
    """

    name: ClassVar[str] = "latency-greedy"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.deployment.partition.ideals.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Throughput."""
        return refusal(instance, "latency")

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass over the blocks."""
        blocks = ordered(instance)
        devices, device, used, most = [], 0, 0.0, let_pass_at_least(instance.memory_bytes)
        for block in range(blocks.count):
            need = float(blocks.memory_bytes[block])
            runs = np.isfinite(blocks.accelerator_s[0, block]) and need <= most
            if runs and device < instance.accelerators and used + need > most:
                device, used = device + 1, 0.0
            if not runs or device >= instance.accelerators:
                devices.append(instance.accelerators)
                # What follows on a processor may not join what came before it.
                if used and device < instance.accelerators:
                    device, used = device + 1, 0.0
                continue
            devices.append(device)
            used += need
        solution = Partition(instance=instance.name, devices=blocks.devices_of_nodes(devices))
        if objective_of(instance, solution) is None:
            raise NoSolutionError("the accelerators are full, and some node that is left cannot run on a processor")
        return solution, {}


@dataclass(frozen=True)
class LatencySearch(Heuristic, uses=("seed", "start")):
    r"""The best sequence of sets, as if nothing ran beside anything else.

    With F(I, a) the least time of an ideal I on a accelerators, one after the other,

    .. math::
        F(J, a) = \min_{I \subset J}\, \min\bigl\{F(I, a - 1) + \text{load}(J \setminus I),\
        F(I, a) + q(J \setminus I)\bigr\},

    the second where J has one block more. The time of such a partition is at most F, and less where sets run beside
    each other. Over all ideals, if they are not too many, and over topological orders.
    """

    name: ClassVar[str] = "latency-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.deployment.partition.ideals.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Throughput."""
        return refusal(instance, "latency")

    def answer(self, instance: PartitionInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of all sequences, and of the greedy."""
        found: tuple[float, Partition] | None = None

        def offer(solution: Partition | None) -> None:
            nonlocal found
            value = None if solution is None else objective_of(instance, solution)
            if solution is not None and value is not None and (found is None or value < found[0]):
                found = value, solution
                clock.report(value)

        try:
            greedy, _ = LatencyGreedy().answer(instance, seed, clock, start)
            offer(greedy if isinstance(greedy, Partition) else None)
        except NoSolutionError:
            pass
        offer(start if isinstance(start, Partition) else None)
        blocks = ordered(instance)
        for number, line in enumerate(lines(blocks, np.random.default_rng(seed))):
            if number == _EFFORT.lines or (found is not None and clock.expired):
                break
            own = along(blocks, line)
            bits = ideals_of(own.count, [(block, block + 1) for block in range(own.count - 1)], own.count + 1)
            assert bits is not None
            offer(_sequence(instance, own, bits, clock))
        bits = ideals_of(blocks.count, blocks.order, _EFFORT.most_ideals)
        if bits is not None and not clock.expired:
            offer(_sequence(instance, blocks, bits, clock))
        if found is None:
            raise NoSolutionError("no sequence of sets fits the accelerators")
        return found[1], {}


def _sequence(
    instance: PartitionInstance, blocks: Blocks, bits: npt.NDArray[np.int64], clock: Clock
) -> Partition | None:
    """The best sequence of sets along some ideals; None if there is none, or the time is up."""
    costs = costs_of(blocks)
    sets = kernels.sums(bits, costs)
    k, most = instance.accelerators, let_pass_at_least(instance.memory_bytes)
    best, back = np.full((len(bits), k + 1), np.inf), np.zeros((len(bits), k + 1), dtype=np.int64)
    best[0] = 0.0
    block_s = blocks.processor_s[0] if instance.processors else np.full(blocks.count, np.inf)
    for place in range(1, len(bits), _EFFORT.portion):
        if clock.expired:
            return None
        until = min(len(bits), place + _EFFORT.portion)
        kernels.least_sum(sets, costs.transfer, k, most, block_s, best, back, place, until)
    here, a = len(bits) - 1, int(np.argmin(best[-1]))
    if not np.isfinite(best[here, a]):
        return None
    devices = np.full(blocks.count, k)
    while here:
        before, kind = divmod(int(back[here, a]), 2)
        changed = bits[here] & ~bits[before]
        if not kind:
            a -= 1
            for block in range(blocks.count):
                if (int(changed[block >> 6]) >> (block & 63)) & 1:
                    devices[block] = a
        here = before
    return Partition(instance=instance.name, devices=blocks.devices_of_nodes(devices.tolist()))
