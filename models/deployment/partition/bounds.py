"""Bounds for the problem ``partition`` that need no solver."""

import math

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.blocks import Blocks, blocks_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.deployment.partition.latency import critical_path_s
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING, TINY, let_pass_at_most


def partition_bound(instance: PartitionInstance) -> float:
    """A lower bound on the largest load or on the latency, in seconds.

    *Throughput*: the largest of the heaviest block where it runs fastest; the least work of all over all devices; what
    is left for accelerators if every processor takes off as much as a fractional knapsack of the bound holds (the
    least time for which that is no contradiction, by bisection); and, of blocks that processors cannot take, k m + 1
    on k accelerators. *Latency*: the longest path if every node is where it takes the least time.

    Raises
    ------
    InfeasibleError
        If a block, or all that processors cannot take, needs more memory than there is: a block is on one device in
        every partition, and what cannot be on processors is on accelerators.
    """
    blocks = blocks_of(instance)
    _refuse_what_does_not_fit(instance, blocks)
    if instance.goal == "latency":
        return critical_path_s(instance) * (1 - ROUNDING)
    accelerator_s = blocks.accelerator_s.sum(axis=0) if instance.accelerators else np.full(blocks.count, np.inf)
    processor_s = blocks.processor_s.sum(axis=0) if instance.processors else np.full(blocks.count, np.inf)
    least_s = np.minimum(accelerator_s, processor_s)
    low_s = max(float(least_s.max()), float(least_s.sum()) / instance.devices)
    low_s = max(low_s, _balanced_s(instance, accelerator_s, processor_s, low_s))
    # What takes a processor longer than the bound may still be there in partitions that are worse than it.
    must = ~np.isfinite(processor_s)
    crowd_s = least_crowd_s(np.where(must, accelerator_s, 0.0), instance.accelerators) if instance.accelerators else 0.0
    return max(low_s, crowd_s) * (1 - ROUNDING)


def least_crowd_s(times_s: npt.NDArray[np.float64], accelerators: int) -> float:
    """What some accelerator takes at least by the pigeonhole principle.

    Of the k m + 1 largest of all blocks one of k accelerators has m + 1; that takes no less than the m + 1 smallest.

    Parameters
    ----------
    times_s : (n,) array
        Of the blocks that must be on one of the ``accelerators``; 0 for others.
    """
    sorted_s = np.sort(times_s)[::-1]
    counts = range(1, (int(np.count_nonzero(times_s)) - 1) // max(1, accelerators) + 1)
    return max((float(sorted_s[accelerators * m - m : accelerators * m + 1].sum()) for m in counts), default=0.0)


def _balanced_s(
    instance: PartitionInstance,
    accelerator_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    processor_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    low_s: float,
) -> float:
    """The least T for which processors, T each, may take so much that the accelerators need no more than T each."""
    if not instance.accelerators:
        return 0.0
    must_stay = ~np.isfinite(accelerator_s)
    free = np.where(must_stay, 0.0, accelerator_s)
    if not instance.processors:
        return float(free.sum()) / instance.accelerators
    capacity_used = float(processor_s[must_stay].sum())
    movable = np.isfinite(processor_s) & ~must_stay & (accelerator_s > 0)
    gain, cost = accelerator_s[movable], np.maximum(processor_s[movable], TINY)
    order = np.argsort(-gain / cost, kind="stable")
    gains, costs = np.concatenate(([0.0], np.cumsum(gain[order]))), np.concatenate(([0.0], np.cumsum(cost[order])))

    def contradicts(time_s: float) -> bool:
        left = instance.processors * time_s - capacity_used
        if left < 0:
            return True
        return float(free.sum()) - float(np.interp(left, costs, gains)) > instance.accelerators * time_s

    high_s = max(low_s, float(free.sum()) / instance.accelerators, capacity_used / instance.processors)
    if not contradicts(low_s):
        return 0.0
    for _ in range(60):
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (middle_s, high_s) if contradicts(middle_s) else (low_s, middle_s)
    return low_s


def _refuse_what_does_not_fit(instance: PartitionInstance, blocks: Blocks) -> None:
    accelerator = np.isfinite(blocks.accelerator_s).all(axis=0) & bool(instance.accelerators)
    accelerator &= blocks.memory_bytes <= let_pass_at_most(instance.memory_bytes)
    processor = np.isfinite(blocks.processor_s).all(axis=0) & bool(instance.processors)
    if instance.goal == "throughput" or len(instance.colours) == blocks.count:
        for block in np.flatnonzero(~accelerator & ~processor).tolist():
            nodes = blocks.members[block]
            more = f" and {len(nodes) - 1} more, which must be together," if len(nodes) > 1 else ""
            raise InfeasibleError(
                f"'{instance.name}': node '{instance.nodes[nodes[0]].name}'{more} runs on no device: it needs "
                f"{blocks.memory_bytes[block]:.15g} bytes of an accelerator, which has {instance.memory_bytes:.15g}, "
                "or nodes of it cannot run on one kind of device"
            )
    need = math.fsum(blocks.memory_bytes[~processor])
    if need > let_pass_at_most(instance.memory_bytes * instance.accelerators):
        raise InfeasibleError(
            f"'{instance.name}': nodes that cannot run on processors need {need:.15g} bytes, but "
            f"{instance.accelerators} accelerators have {instance.memory_bytes:.15g} each"
        )
