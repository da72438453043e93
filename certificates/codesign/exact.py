"""What a choice of strategies computes and sends, in rational numbers; read from the instance and from nothing else."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from ddlopt.models.codesign.instance import CodesignInstance, Layout
from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance

Groups = dict[tuple[int, ...], Fraction]
Pairs = dict[tuple[int, int], Fraction]
Sent = tuple[Groups, Pairs]
"""Gradient bytes of groups, and bytes of (source, target)."""

ROOM = 1 - Fraction(1, 2**40)
"""Part of all bytes that counts: the independent check adds them up in double precision, and may have a little less."""


class ExactFigures:
    """Times, memory and bytes of every strategy, and of every pair of strategies along an edge."""

    def __init__(self, instance: CodesignInstance) -> None:
        self.instance = instance
        self.sizes = [len(layer.strategies) for layer in instance.layers]
        self._moved: dict[tuple[int, int], Pairs] = {}

    def time(self, layer: int, a: int) -> Fraction:
        """Seconds on each server that runs the strategy."""
        of_layer, device = self.instance.layers[layer], self.instance.device
        chosen = of_layer.strategies[a]
        if chosen.measured_s is not None:
            return Fraction(chosen.measured_s) + Fraction(chosen.encoding_s)
        rate = device.convolution_flops_per_s if of_layer.convolution else device.flops_per_s
        moved = Fraction(chosen.moved_bytes) / Fraction(device.memory_bytes_per_s)
        return max(Fraction(chosen.flops) / Fraction(rate), moved) + Fraction(chosen.encoding_s)

    def servers(self, layer: int, a: int) -> tuple[int, ...]:
        """Those that run the strategy."""
        return self.instance.layouts[self.instance.layers[layer].strategies[a].writes].servers

    def own(self, layer: int, a: int) -> Sent:
        """What the strategy reduces and sends itself."""
        groups: Groups = {}
        pairs: Pairs = {}
        chosen = self.instance.layers[layer].strategies[a]
        for each in chosen.reductions:
            for members in self.instance.group_sets[each.groups]:
                groups[members] = groups.get(members, Fraction(0)) + Fraction(each.bytes)
        for source, target, amount in chosen.traffic:
            pairs[source, target] = pairs.get((source, target), Fraction(0)) + Fraction(amount)
        return groups, pairs

    def along(self, edge: int, a: int, b: int) -> Sent:
        """What is moved along an edge whose ends take strategies a and b: forward, and the gradient back."""
        source, target = self.instance.edges[edge]
        written = self.instance.layers[source].strategies[a].writes
        read = self.instance.layers[target].strategies[b].reads
        assert read is not None  # the instance has seen to it
        size = Fraction(self.instance.layers[source].output_bytes)
        return {}, {pair: size * part for pair, part in self._both_ways(written, read).items()}

    def _both_ways(self, written: int, read: int) -> Pairs:
        if (written, read) not in self._moved:
            parts: Pairs = {}
            for source, target, part in _overlaps(self.instance.layouts[written], self.instance.layouts[read]):
                for pair in ((source, target), (target, source)):
                    parts[pair] = parts.get(pair, Fraction(0)) + part
            self._moved[written, read] = parts
        return self._moved[written, read]

    def sent(self, choices: Sequence[int]) -> Sent:
        """What the layers send together, all that is more than nothing."""
        parts = [self.own(layer, a) for layer, a in enumerate(choices)]
        parts += [self.along(e, choices[i], choices[j]) for e, (i, j) in enumerate(self.instance.edges)]
        groups: Groups = {}
        pairs: Pairs = {}
        for more_groups, more_pairs in parts:
            for members, amount in more_groups.items():
                groups[members] = groups.get(members, Fraction(0)) + amount
            for pair, amount in more_pairs.items():
                pairs[pair] = pairs.get(pair, Fraction(0)) + amount
        return groups, {pair: amount for pair, amount in pairs.items() if amount}

    def compute(self, choices: Sequence[int]) -> Fraction:
        """Seconds of the busiest server, or of the longest path."""
        times = [self.time(layer, a) for layer, a in enumerate(choices)]
        busy, done = [Fraction(0)] * self.instance.servers, dict[int, Fraction]()
        for layer in self.instance.order:
            for server in self.servers(layer, choices[layer]):
                busy[server] += times[layer]
            begin = max((done[i] for i, j in self.instance.edges if j == layer), default=Fraction(0))
            done[layer] = begin + times[layer]
        return max(*busy, *done.values())

    @cached_property
    def rate(self) -> Fraction:
        """Bytes that a link carries in a second, with room for the check's rounding."""
        return Fraction(self.instance.link_bandwidth_bytes_per_s) / ROOM

    def loads(self, sent: Sent) -> list[Fraction]:
        """Seconds that some link is busy at least: by what each server sends, what it receives, and hops of all bytes.

        Entries of parts add up to no more than those of their sum: of the last, as no links are better for two traffics
        together than the best for each.
        """
        n, d, duplex = self.instance.servers, self.instance.degree, self.instance.optics == "duplex"
        groups, pairs = sent
        out, into = [Fraction(0)] * n, [Fraction(0)] * n
        hops = Fraction(0)
        for members, amount in groups.items():
            hop = 2 * (len(members) - 1) * amount / len(members)
            hops += hop * len(members)
            for server in members:
                out[server] += hop
                into[server] += hop
        for (source, target), amount in pairs.items():
            out[source] += amount
            into[target] += amount
        levels = list(level_sizes(n - 1, d, duplex))
        hops += max(_hops(pairs, n, levels, end) for end in (0, 1))
        links = d * (2 * (n // 2) if duplex else n)
        return [*(amount / (d * self.rate) for amount in (*out, *into)), hops / (links * self.rate)]

    def job(self, sent: Sent) -> TopologyInstance | None:
        """These bytes, none more, as a topology problem whose objective is communication alone; None for none."""
        n = self.instance.servers
        traffic = np.zeros((n, n))
        for (source, target), amount in sent[1].items():
            traffic[source, target] = _below(amount)
        reduced = [(members, _below(amount)) for members, amount in sent[0].items()]
        groups = sorted((each for each in reduced if each[1] > 0), key=lambda each: (-len(each[0]), each[0]))
        if not groups and not traffic.any():
            return None
        return TopologyInstance(
            name="strategies",
            **self.instance.fabric,
            allreduce_groups=tuple(AllReduceGroup(members=who, gradient_bytes=size) for who, size in groups),
            traffic_bytes=traffic,
        )


def part_of(larger: Sent, smaller: Sent) -> Fraction:
    """The most of ``smaller`` that ``larger`` has of everything."""
    none = Fraction(0)
    ratios = [larger[0].get(members, none) / amount for members, amount in smaller[0].items()]
    ratios += [larger[1].get(pair, none) / amount for pair, amount in smaller[1].items()]
    return min(ratios, default=none)


def _overlaps(written: Layout, read: Layout) -> Iterator[tuple[int, int, Fraction]]:
    """(server that wrote, server that reads, part of the activation) of what lies in a block of either, none stays."""
    for place, source in enumerate(written.servers):
        for other, target in enumerate(read.servers):
            if source != target:
                part = _common(place // written.channel_parts, written.batch_parts,
                               other // read.channel_parts, read.batch_parts)  # fmt: skip
                part *= _common(place % written.channel_parts, written.channel_parts,
                                other % read.channel_parts, read.channel_parts)  # fmt: skip
                if part:
                    yield source, target, part


def _common(i: int, parts: int, j: int, others: int) -> Fraction:
    """What the i-th part of a unit length has in common with the j-th of another cut."""
    end = min(Fraction(i + 1, parts), Fraction(j + 1, others))
    return max(Fraction(0), end - max(Fraction(i, parts), Fraction(j, others)))


def _hops(pairs: Pairs, n: int, levels: list[int], end: int) -> Fraction:
    """Bytes times hops at least, if each server's largest pieces go to (end 0) or come from (1) the nearest others."""
    total = Fraction(0)
    for server in range(n):
        pieces = sorted((amount for pair, amount in pairs.items() if pair[end] == server), reverse=True)
        first = 0
        for hop, size in enumerate(levels):
            total += (hop + 1) * sum(pieces[first : first + size], Fraction(0))
            first += size
    return total


def _below(amount: Fraction) -> float:
    """The largest double-precision number that is no more."""
    near = float(amount)
    return near if Fraction(near) <= amount else math.nextafter(near, 0.0)
