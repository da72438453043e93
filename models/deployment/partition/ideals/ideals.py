"""Ideals of the order of blocks: sets that hold with each block all that come before it."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.blocks import Blocks
from ddlopt.models.deployment.partition.ideals import kernels

Ints = npt.NDArray[np.int64]


def ideals_of(count: int, order: Iterable[tuple[int, int]], most: int) -> Ints | None:
    """Bits of the ideals of ``count`` blocks; None, if there are more than ``most``."""
    bits = kernels.ideals(count, *rows_of(count, [(after, before) for before, after in order]), most)
    return None if len(bits) > most else bits


def costs_of(blocks: Blocks) -> kernels.Costs:
    """The blocks as kernels take them; passes are added up."""
    start, output = rows_of(blocks.count, [(block, h) for h, pins in enumerate(blocks.pins) for block in pins])
    return kernels.Costs(
        blocks.accelerator_s.sum(axis=0),
        blocks.processor_s.sum(axis=0),
        blocks.memory_bytes,
        start,
        output,
        blocks.transfer_s,
        np.array([len(pins) for pins in blocks.pins], dtype=np.int64),
    )


def rows_of(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The second of each pair by its first: starts (count + 1,) and values."""
    ordered = sorted(pairs)
    start = np.searchsorted([one for one, _ in ordered], np.arange(count + 1)).astype(np.int64)
    return start, np.array([other for _, other in ordered], dtype=np.int64)
