"""What a device may have, in whole numbers, and the cases into which partitions are divided."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from ddlopt.certificates.deployment.partition.device_sets.states import Output, Walk, walk_of
from ddlopt.models.deployment.partition.instance import PartitionInstance, refusal
from ddlopt.models.errors import RefutedError
from ddlopt.models.tolerances import let_pass

ONE = 2**40
"""What stands for the limit of loads, and for the memory of an accelerator."""
MOST_STATES = 20_000
"""Of a place of a walk."""


def refuses_sets(instance: Any) -> str | None:
    """Why partitions are not one set for each device with a load of its own; None if they are."""
    reason = refusal(instance, "throughput")
    if reason is None and (instance.contiguous or instance.separate_passes):
        return "it knows what one device may have, without an order of devices and of both passes together"
    return reason


class Figures(NamedTuple):
    """Of n blocks in units of 1 / ``ONE`` of the limit and of memory, each rounded down; None where one cannot be.

    So a set whose load is below the limit, and that fits, has at most ``ONE`` of either here, too.
    """

    accelerator: tuple[int | None, ...]
    processor: tuple[int | None, ...]
    memory: tuple[int, ...]
    outputs: tuple[Output, ...]
    accelerators: int
    processors: int


def figures_of(instance: PartitionInstance, members: Sequence[Sequence[int]], limit: Fraction) -> Figures:
    """Of blocks by their nodes.

    Parameters
    ----------
    limit : Fraction
        Seconds, more than 0.
    """
    nodes, block_of = instance.nodes, {node: block for block, own in enumerate(members) for node in own}

    def rounded(value: Fraction, whole: Fraction) -> int:
        return min(2 * ONE, int(value * ONE / whole))

    def times(figures: Sequence[float | None], devices: int) -> tuple[int | None, ...]:
        found: list[int | None] = []
        for own in members:
            each = [figures[node] for node in own]
            known = [Fraction(value) for value in each if value is not None]
            total = rounded(sum(known, Fraction(0)), limit)
            found.append(total if devices and len(known) == len(each) and total <= ONE else None)
        return tuple(found)

    outputs: dict[tuple[int, ...], Fraction] = {}
    for maker, users in enumerate(instance.consumers):
        pins = tuple(sorted({block_of[each] for each in (maker, *users)}))
        if len(pins) > 1 and nodes[maker].transfer_s:
            outputs[pins] = outputs.get(pins, Fraction(0)) + Fraction(nodes[maker].transfer_s)
    whole = let_pass(Fraction(instance.memory_bytes))
    memory = (sum((Fraction(nodes[node].memory_bytes) for node in own), Fraction(0)) for own in members)
    return Figures(
        times([node.accelerator_s for node in nodes], instance.accelerators),
        times([node.processor_s for node in nodes], instance.processors),
        tuple(rounded(each, whole) for each in memory),
        tuple((pins, rounded(time_s, limit)) for pins, time_s in outputs.items()),
        instance.accelerators,
        instance.processors,
    )


@dataclass(frozen=True)
class Case:
    """Partitions in which some pairs of blocks are together, some apart, and some blocks on one kind of device.

    Parameters
    ----------
    group : tuple of int
        The first of the blocks that each is together with.
    apart : frozenset of (int, int)
        Of first blocks, ascending.
    on_processor, on_accelerator : frozenset of int
        First blocks.
    """

    group: tuple[int, ...]
    apart: frozenset[tuple[int, int]] = frozenset()
    on_processor: frozenset[int] = frozenset()
    on_accelerator: frozenset[int] = frozenset()

    @property
    def groups(self) -> list[int]:
        """The first block of each, ascending."""
        return sorted(set(self.group))

    def parts(self, node: Sequence[Any]) -> list["Case"]:
        """Into ``["pair", a, b]``, apart and together, or ``["kind", a]``, on an accelerator and on a processor.

        Raises
        ------
        RefutedError
            If that is decided.
        """
        if any(not 0 <= block < len(self.group) for block in node[1:]):
            raise RefutedError(f"a case is of blocks {list(node[1:])}, but there are {len(self.group)}")
        one, *rest = sorted({self.group[block] for block in node[1:]})
        if node[0] == "kind":
            if one in self.on_processor | self.on_accelerator:
                raise RefutedError(f"the kind of device of block {one} is decided")
            return [
                replace(self, on_accelerator=self.on_accelerator | {one}),
                replace(self, on_processor=self.on_processor | {one}),
            ]
        if not rest or (one, rest[0]) in self.apart:
            raise RefutedError(f"whether blocks {node[1]} and {node[2]} are together is decided")
        together = self._together(one, rest[0])
        return [replace(self, apart=self.apart | {(one, rest[0])}), *([] if together is None else [together])]

    def _together(self, one: int, other: int) -> "Case | None":
        """None if they are on different kinds of device."""

        def first(block: int) -> int:
            return one if block == other else block

        processor = frozenset(map(first, self.on_processor))
        accelerator = frozenset(map(first, self.on_accelerator))
        if processor & accelerator:
            return None
        apart = frozenset((min(a, b), max(a, b)) for a, b in ((first(x), first(y)) for x, y in self.apart))
        return Case(tuple(map(first, self.group)), apart, processor, accelerator)


class DeviceSets(NamedTuple):
    """The sets of groups that a device of one kind may have, in the order of a walk.

    Parameters
    ----------
    walk : Walk
        Along places of groups.
    time : list of int or None
        By place in the walk; None where no such device has the group.
    memory : list of int
    counted : int
        1 if loads are counted, 0 for processors, whose loads are below the limit and cost nothing.
    """

    walk: Walk
    time: list[int | None]
    memory: list[int]
    counted: int


def device_sets(figures: Figures, case: Case, processors: bool) -> DeviceSets | None:
    """Of accelerators or of processors; None if there are too many states."""
    groups = case.groups
    number = {first: place for place, first in enumerate(groups)}
    place_of = [number[first] for first in case.group]
    never = case.on_accelerator if processors else case.on_processor
    outputs: dict[tuple[int, ...], int] = {}
    for pins, time in () if processors else figures.outputs:
        own = tuple(sorted({place_of[pin] for pin in pins}))
        if len(own) > 1:
            outputs[own] = outputs.get(own, 0) + time
    apart = [(number[a], number[b]) for a, b in sorted(case.apart) if not {a, b} & never]
    walk = walk_of(len(groups), list(outputs.items()), apart, MOST_STATES)
    if walk is None:
        return None
    times: list[int | None] = [None if first in never else 0 for first in groups]
    memory = [0] * len(groups)
    for block, place in enumerate(place_of):
        so_far, own_time = times[place], (figures.processor if processors else figures.accelerator)[block]
        times[place] = None if so_far is None or own_time is None else so_far + own_time
        memory[place] += 0 if processors else figures.memory[block]
    along = walk.line
    return DeviceSets(walk, [times[place] for place in along], [memory[place] for place in along], 1 - processors)
