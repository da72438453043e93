"""Blocks without weight that may go with a neighbour in some best partition."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.blocks import Blocks, blocks_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.tolerances import let_pass_at_least


def contracted(instance: PartitionInstance) -> Blocks:
    """The blocks of an instance, those without weight merged with a neighbour where that costs nothing.

    Let block b take no time anywhere and no memory (or let memory suffice for all blocks on one accelerator), let every
    output with a pin in b have one in m too, let b run wherever m does, and let m be the only block that b is ordered
    with, if any. In a feasible partition move b to the device of m. That device gets no new output, as those of b are
    there already, and may get rid of some; the device that b leaves gets none either. An order of devices still fits.
    So some best partition has b and m together.
    """
    blocks = blocks_of(instance)
    total = math.fsum(blocks.memory_bytes)
    there = ((blocks.accelerator_s, instance.accelerators), (blocks.processor_s, instance.processors))
    kinds = [times for times, devices in there if devices]
    free = np.all([~(np.isfinite(times) & (times > 0)).any(axis=0) for times in kinds], axis=0)
    free &= (blocks.memory_bytes == 0) | (total <= let_pass_at_least(instance.memory_bytes))
    target = list(range(blocks.count))
    pins = [set(each) for each in blocks.pins]
    order = set(blocks.order)
    waiting = np.flatnonzero(free).tolist()
    while waiting:
        block = waiting.pop()
        partner = _partner(block, pins, order, kinds)
        if partner is None:
            continue
        target = [partner if each == block else each for each in target]
        beside = {each for one in pins if partner in one or block in one for each in one}
        beside |= {each for edge in order if partner in edge for each in edge}
        pins = [{partner if each == block else each for each in one} for one in pins]
        pins = [one if len(one) > 1 else set() for one in pins]
        order = {edge for edge in order if block not in edge}
        free[block] = False
        waiting += [each for each in beside - {block} if free[each] and each not in waiting]
    return merged(blocks, target, order)


def _partner(
    block: int, pins: list[set[int]], order: set[tuple[int, int]], kinds: list[npt.NDArray[np.float64]]
) -> int | None:
    shared = [one for one in pins if block in one]
    ordered = {each for edge in order if block in edge for each in edge} - {block}
    if len(ordered) > 1 or not (shared or ordered):
        return None
    candidates = set.intersection(*shared) - {block} if shared else ordered
    candidates &= ordered or candidates
    for other in sorted(candidates):
        if all(not np.isfinite(times[0, other]) or np.isfinite(times[0, block]) for times in kinds):
            return other
    return None


def merged(blocks: Blocks, target: Sequence[int], order: Iterable[tuple[int, int]]) -> Blocks:
    """The blocks where each goes together with its ``target``; ``order`` is of those that are targets."""
    kept = sorted(set(target))
    number = {block: place for place, block in enumerate(kept)}
    place = np.array([number[each] for each in target], dtype=np.int64)
    found: dict[tuple[tuple[int, ...], int], float] = {}
    for pins, time_s, of_pass in zip(blocks.pins, blocks.transfer_s.tolist(), blocks.of_pass.tolist(), strict=True):
        own = tuple(sorted({int(place[pin]) for pin in pins}))
        if len(own) > 1:
            found[own, of_pass] = found.get((own, of_pass), 0.0) + time_s

    def added(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        total = np.zeros(len(kept))
        np.add.at(total, place, values)
        return total

    members: list[list[int]] = [[] for _ in kept]
    for block, nodes in enumerate(blocks.members):
        members[place[block]] += nodes
    # The kept blocks stay in their order, which still suits: an edge that is left joins two of them.
    return replace(
        blocks,
        members=tuple(tuple(sorted(nodes)) for nodes in members),
        accelerator_s=np.array([added(times) for times in blocks.accelerator_s]),
        processor_s=np.array([added(times) for times in blocks.processor_s]),
        memory_bytes=added(blocks.memory_bytes),
        pins=tuple(pins for pins, _ in found),
        transfer_s=np.array(list(found.values()), dtype=np.float64),
        of_pass=np.array([of_pass for _, of_pass in found], dtype=np.int64),
        order=tuple(sorted((number[one], number[other]) for one, other in order)),
    )
