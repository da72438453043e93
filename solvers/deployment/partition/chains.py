"""Contiguous partitions for throughput, by dynamic programming over ideals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.blocks import Blocks
from ddlopt.models.deployment.partition.ideals import kernels
from ddlopt.models.deployment.partition.ideals.ideals import costs_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING, let_pass_at_least
from ddlopt.solvers.heuristic import Clock

FAMILY = "deployment"

Ints = npt.NDArray[np.int64]
Order = Sequence[tuple[int, int]]

_PORTION = 2000
"""Ideals between looks at the clock."""


class Chain(NamedTuple):
    """A partition of blocks: device of each, its largest load in seconds, and the pairs of ideals looked at."""

    devices: tuple[int, ...]
    load_s: float
    pairs: int


def best_chain(
    instance: PartitionInstance,
    blocks: Blocks,
    bits: Ints,
    limit_s: float,
    clock: Clock | None = None,
    most_bytes: float | None = None,
) -> Chain | None:
    """The partition of least largest load among those below ``limit_s``; None if there is none.

    Parameters
    ----------
    most_bytes : float, optional
        What an accelerator holds; what every check lets pass by default.

    Raises
    ------
    NoSolutionError
        If the time is up.
    """
    costs = costs_of(blocks)
    sets = kernels.sums(bits, costs)
    # Subsets take no more time than what contains them, and come first where they take as much.
    order = np.argsort(sets.accelerator, kind="stable")
    k, cores = instance.accelerators, instance.processors
    best = np.full((len(bits), (k + 1) * (cores + 1)), np.inf)
    best[order[0]] = 0.0
    back = np.zeros(best.shape, dtype=np.int64)
    live, state = np.zeros(len(bits), dtype=np.int64), np.array([1, 1, 0, 0])
    spared = spared_s(blocks, limit_s)
    while state[0] < len(bits):
        if clock is not None and clock.expired:
            raise NoSolutionError(f"the time was up at {state[0]} of {len(bits)} ideals")
        until = min(len(bits), int(state[0]) + _PORTION)
        kernels.least_load(
            sets,
            costs.transfer,
            order,
            k,
            cores,
            let_pass_at_least(instance.memory_bytes) if most_bytes is None else most_bytes,
            limit_s,
            spared,
            best,
            back,
            live,
            state,
            until,
        )
    if not np.isfinite(best[-1, -1]):
        return None
    return Chain(_devices(instance, blocks, bits, back), float(best[-1, -1]), int(state[3]))


def no_limit_s(blocks: Blocks) -> float:
    """A load that no device exceeds."""
    times = [times[np.isfinite(times)].sum() for times in (blocks.accelerator_s, blocks.processor_s)]
    return float(sum(times) + blocks.transfer_s.sum()) * 2 + 1.0


def spared_s(blocks: Blocks, limit_s: float) -> float:
    """Accelerator seconds of what one processor can do in ``limit_s``, at most: a fractional knapsack."""
    accelerator, processor = blocks.accelerator_s.sum(axis=0), blocks.processor_s.sum(axis=0)
    fits = np.isfinite(processor) & np.isfinite(accelerator) & (accelerator > 0)
    accelerator, processor = accelerator[fits], processor[fits]
    free = processor <= 0
    spared, left = float(accelerator[free].sum()), limit_s
    accelerator, processor = accelerator[~free], processor[~free]
    for block in np.argsort(-accelerator / processor).tolist():
        part = min(1.0, left / processor[block])
        spared += part * accelerator[block]
        left -= part * processor[block]
        if left <= 0:
            break
    return spared * (1 + ROUNDING)


def _devices(instance: PartitionInstance, blocks: Blocks, bits: Ints, back: Ints) -> tuple[int, ...]:
    devices = np.zeros(blocks.count, dtype=np.int64)
    here, a, c = len(bits) - 1, instance.accelerators, instance.processors
    used = [0, 0]
    while here:
        before, kind = divmod(int(back[here, c * (instance.accelerators + 1) + a]), 2)
        device = instance.accelerators + used[1] if kind else used[0]
        used[kind] += 1
        changed = bits[here] ^ bits[before]
        for block in range(blocks.count):
            if (int(changed[block >> 6]) >> (block & 63)) & 1:
                devices[block] = device
        here, a, c = before, a - (1 - kind), c - kind
    return tuple(devices.tolist())
