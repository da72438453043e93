"""The least largest load of contiguous partitions in whole numbers: a dynamic program over ideals of the nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from typing import Any

import networkx as nx

from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.tolerances import let_pass_at_most

_MOST_IDEALS = 3_000
"""Pairs of them are looked at: some seconds in plain Python."""
_CAPS = (1.02, 1.1, 1.3, 2.0, 4.0, 16.0, inf)
"""Times the load of nodes spread evenly: the least load is sought below the first of these that allows any partition,
as few pairs of ideals lie below a low one."""


def exact_partition_bound(instance: PartitionInstance) -> Fraction:
    """Seconds that the largest load of no contiguous partition is below: the least there is.

    An order of the devices in which no edge leads back makes them differences of growing ideals: sets that hold with a
    node all that it needs. So the least largest load is that of a way through the ideals, at most as many steps of it
    on accelerators and on processors as there are of either.

    Raises
    ------
    NotApplicableError
        If partitions need not be contiguous, passes count apart, latency is asked for, or there are too many ideals.
    InfeasibleError
        If there is no partition: no chain of ideals, which every contiguous partition is, has pieces that all fit.
    """
    if instance.goal != "throughput" or not instance.contiguous or instance.separate_passes:
        raise NotApplicableError("loads are recomputed in whole numbers for contiguous partitions only")
    pieces = _pieces(instance)
    ideals = _ideals(pieces)
    for cap in _CAPS:
        found = _least_load(instance, pieces, ideals, cap)
        if found is not None:
            return Fraction(found, pieces.unit)
    raise InfeasibleError(f"'{instance.name}': no contiguous partition fits the devices")


@dataclass(frozen=True)
class _Pieces:
    """Nodes that are on one device in every contiguous partition; sets of them are bits of a number.

    Parameters
    ----------
    accelerator, processor : list of int or None
        Time in units of ``1 / unit`` seconds; None where a piece cannot run.
    memory : list of Fraction
    before : list of int
        The pieces that must be on the same or an earlier device.
    outputs : list of (int, int)
        The pieces that have or need an output, and what its transfer takes.
    """

    unit: int
    accelerator: list[int | None]
    processor: list[int | None]
    memory: list[Fraction]
    before: list[int]
    outputs: list[tuple[int, int]]


def _pieces(instance: PartitionInstance) -> _Pieces:
    nodes = instance.nodes
    colour = {node: number for number, members in enumerate(instance.colours) for node in members}
    forward = {colour[place] for place, node in enumerate(nodes) if not node.backward}
    graph = nx.DiGraph()
    graph.add_nodes_from(colour.values())
    for maker, user in instance.edges:
        one, other = colour[maker], colour[user]
        if nodes[maker].backward == nodes[user].backward and one != other:
            if not nodes[maker].backward:
                graph.add_edge(one, other)
            elif not {one, other} <= forward:
                graph.add_edge(other, one)
    merged = nx.condensation(graph)
    place = {own: piece for piece in merged for own in merged.nodes[piece]["members"]}
    piece_of = [place[colour[node]] for node in range(len(nodes))]
    figures = [each for node in nodes for each in (node.accelerator_s, node.processor_s, node.transfer_s)]
    unit = lcm(*(Fraction(each).denominator for each in figures if each is not None))

    def total(times: list[float | None]) -> list[int | None]:
        found: list[int | None] = [0] * len(merged)
        for piece, time_s in zip(piece_of, times, strict=True):
            so_far = found[piece]
            found[piece] = None if time_s is None or so_far is None else so_far + int(Fraction(time_s) * unit)
        return found

    memory = [Fraction(0)] * len(merged)
    for piece, node in zip(piece_of, nodes, strict=True):
        memory[piece] += Fraction(node.memory_bytes)
    outputs = []
    for maker, users in enumerate(instance.consumers):
        pins = 0
        for end in (maker, *users):
            pins |= 1 << piece_of[end]
        outputs.append((pins, int(Fraction(nodes[maker].transfer_s) * unit)))
    before = [sum(1 << earlier for earlier in merged.predecessors(piece)) for piece in range(len(merged))]
    return _Pieces(
        unit,
        total([node.accelerator_s if instance.accelerators else None for node in nodes]),
        total([node.processor_s if instance.processors else None for node in nodes]),
        memory,
        before,
        [(pins, time) for pins, time in outputs if time and pins.bit_count() > 1],
    )


def _ideals(pieces: _Pieces) -> list[int]:
    """All of them, smaller ones first."""
    found, layer = [0], {0}
    while layer:
        layer = {
            ideal | 1 << piece
            for ideal in layer
            for piece, before in enumerate(pieces.before)
            if not ideal >> piece & 1 and before & ~ideal == 0
        }
        found += sorted(layer)
        if len(found) > _MOST_IDEALS:
            raise NotApplicableError(f"the order of the nodes has more than {_MOST_IDEALS} ideals")
    return found


def _least_load(instance: PartitionInstance, pieces: _Pieces, ideals: list[int], cap: float) -> int | None:
    """The least largest load, if it is at most ``cap`` times that of nodes spread evenly over the devices."""
    pairs = zip(pieces.accelerator, pieces.processor, strict=True)
    least = sum(min((each for each in pair if each is not None), default=0) for pair in pairs)
    loads = _Loads(instance, pieces, ideals, None if cap == inf else int(Fraction(cap) * least / instance.devices))
    devices = instance.accelerators, instance.processors
    best: list[dict[tuple[int, int], int]] = [{} for _ in ideals]
    best[0][0, 0] = 0
    for place, reached in enumerate(best):
        for following, *steps in loads.from_ideal(place) if reached else ():
            for used, load in reached.items():
                for kind, step in enumerate(steps):
                    then = (used[0] + (kind == 0), used[1] + (kind == 1))
                    if step is not None and then[kind] <= devices[kind]:
                        worst = max(load, step)
                        best[following][then] = min(worst, best[following].get(then, worst))
    return min(best[-1].values(), default=None)


class _Loads:
    """Loads of differences of ideals: sums over ideals are taken once."""

    def __init__(self, instance: PartitionInstance, pieces: _Pieces, ideals: list[int], most: int | None) -> None:
        self.ideals, self.outputs, self.most = ideals, pieces.outputs, most
        self.memory_bytes = let_pass_at_most(Fraction(instance.memory_bytes))
        self.totals = [_totals(times, ideals) for times in (pieces.accelerator, pieces.processor)]
        self.never = [_bits(times) for times in (pieces.accelerator, pieces.processor)]
        self.memory = _totals(pieces.memory, ideals)

    def from_ideal(self, place: int) -> Iterator[tuple[int, int | None, int | None]]:
        """Places of larger ideals with the loads of what they have more, on an accelerator and on a processor.

        None stands for a load that is too large, or for a device that does not have it.
        """
        ideal = self.ideals[place]
        for following in range(place + 1, len(self.ideals)):
            larger = self.ideals[following]
            if ideal & ~larger:
                continue
            own = larger & ~ideal
            on_accelerator, on_processor = (self._worked(kind, place, following, own) for kind in (0, 1))
            if on_accelerator is not None:
                moved = sum(time for pins, time in self.outputs if pins & own and pins & ~own)
                fits = self.memory[following] - self.memory[place] <= self.memory_bytes
                on_accelerator = self._capped(on_accelerator + moved) if fits else None
            if on_accelerator is not None or on_processor is not None:
                yield following, on_accelerator, on_processor

    def _worked(self, kind: int, place: int, following: int, own: int) -> int | None:
        if own & self.never[kind]:
            return None
        return self._capped(self.totals[kind][following] - self.totals[kind][place])

    def _capped(self, load: int) -> int | None:
        return None if self.most is not None and load > self.most else load


def _totals(values: Sequence[Any], ideals: list[int]) -> list[Any]:
    return [sum(value for piece, value in enumerate(values) if value and ideal >> piece & 1) for ideal in ideals]


def _bits(times: Sequence[int | None]) -> int:
    """The pieces that have no time."""
    return sum(1 << piece for piece, time in enumerate(times) if time is None)
