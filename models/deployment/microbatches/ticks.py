"""Times and memory of an instance as whole numbers, so that ties are ties: *ticks* and *cells*.

Micro-batches are identical, so that the order of a device is a word of *kinds*: which pass of which chunk is next, the
first micro-batch that has not had it. Nothing is lost by that. Take any schedule, and for each kind give its passes to
micro-batches in the order in which they start: where every pass of one kind followed one of another by some time, the
j-th of the sorted ones does too (of the j first of the later kind each has a partner that began by then), and memory
and devices count kinds only.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder, Pass, kinds_of
from ddlopt.models.tolerances import ROUNDING, let_pass_at_most

F, B, W = 0, 1, 2
"""Forward pass, backward pass, and that for weights, where it is one of its own."""
Kind = tuple[int, int]
"""Chunk, and F, B or W."""
Words = tuple[tuple[Kind, ...], ...]
"""The kinds of every device's passes, in their order."""
_DIGITS = 12
"""Of decimals in which times are taken to be written, where as binary numbers they have no unit in common."""


@dataclass(frozen=True)
class Ticks:
    """An instance in whole numbers.

    Parameters
    ----------
    instance : MicroBatchInstance
    unit_s : Fraction
        A tick. Times that are no multiples are rounded down, and then nothing of the ticks is more than the truth: each
        schedule is one for the shorter times as well.
    """

    instance: MicroBatchInstance
    unit_s: Fraction

    @cached_property
    def exact(self) -> bool:
        """Whether all times are multiples of a tick."""
        return all((each / self.unit_s).denominator == 1 for each in times_s(self.instance))

    def of(self, seconds: float) -> int:
        """Whole ticks in a time."""
        return math.floor(Fraction(seconds) / self.unit_s)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """All kinds of passes, chunk by chunk."""
        return tuple(
            (chunk, kind)
            for chunk in range(len(self.instance.chunks))
            for kind in range(len(kinds_of(self.instance, chunk)))
        )

    @cached_property
    def time(self) -> dict[Kind, int]:
        """Ticks of a pass."""
        found = {}
        for chunk, kind in self.kinds:
            own = self.instance.chunks[chunk]
            found[chunk, kind] = self.of((own.forward_s, own.backward_s, own.weights_s or 0.0)[kind])
        return found

    @cached_property
    def device(self) -> tuple[int, ...]:
        """Of every chunk."""
        return tuple(chunk.device for chunk in self.instance.chunks)

    @cached_property
    def on(self) -> tuple[tuple[Kind, ...], ...]:
        """Kinds of every device."""
        return tuple(
            tuple(each for each in self.kinds if self.device[each[0]] == device)
            for device in range(self.instance.devices)
        )

    @cached_property
    def waits(self) -> dict[Kind, tuple[tuple[Kind, int], ...]]:
        """For every kind those whose pass of the same micro-batch comes before, and the transfer between them."""
        found: dict[Kind, list[tuple[Kind, int]]] = {each: [] for each in self.kinds}
        for chain in self.instance.chains:
            for maker, user in pairwise(chain):
                forward, backward = self.instance.transfers[maker, user]
                found[user, F].append(((maker, F), self.of(forward)))
                found[maker, B].append(((user, B), self.of(backward)))
            found[chain[-1], B].append(((chain[-1], F), 0))
        for chunk, kind in self.kinds:
            if kind == W:
                found[chunk, W].append(((chunk, B), 0))
        return {each: tuple(before) for each, before in found.items()}

    @cached_property
    def head(self) -> dict[Kind, int]:
        """Ticks before a pass can begin, from the beginning of its chain."""
        found: dict[Kind, int] = {}

        def at(kind: Kind) -> int:
            if kind not in found:
                found[kind] = max((at(one) + self.time[one] + lag for one, lag in self.waits[kind]), default=0)
            return found[kind]

        # From the first chunk of a chain on, and then back: no long recursion.
        for chain in self.instance.chains:
            for chunk in chain:
                at((chunk, F))
            for chunk in reversed(chain):
                at((chunk, B))
        for kind in self.kinds:
            at(kind)
        return found

    @cached_property
    def tail(self) -> dict[Kind, int]:
        """Ticks after a pass has ended to the end of its micro-batch, on any device."""
        found = dict.fromkeys(self.kinds, 0)
        for kind in sorted(self.kinds, key=lambda each: (self.head[each], each[1], self.depth[each]), reverse=True):
            for one, lag in self.waits[kind]:
                found[one] = max(found[one], lag + self.time[kind] + found[kind])
        return found

    @cached_property
    def depth(self) -> dict[Kind, int]:
        """Place in the life of a micro-batch: later passes have larger ones, also where times are 0."""
        found = {}
        for chain in self.instance.chains:
            for place, chunk in enumerate(chain):
                found[chunk, F] = place
                found[chunk, B] = 2 * len(chain) - 1 - place
                found[chunk, W] = 2 * len(chain) + place
        return found

    @cached_property
    def work(self) -> tuple[int, ...]:
        """Ticks in which each device is busy."""
        return tuple(self.instance.micro_batches * sum(self.time[each] for each in own) for own in self.on)

    @cached_property
    def cells(self) -> dict[Kind, int]:
        """Memory that a pass takes when it begins (F), or gives back when it ends, in cells."""
        found = {}
        for chunk, kind in self.kinds:
            own = self.instance.chunks[chunk]
            held, freed = Fraction(own.held_bytes), Fraction(own.freed_bytes)
            whole = own.weights_s is None
            size = (held, held if whole else freed, held - freed)[kind]
            found[chunk, kind] = int(size * self._cells)
        return found

    @cached_property
    def _cells(self) -> int:
        """In a byte."""
        sizes = [Fraction(each) for chunk in self.instance.chunks for each in (chunk.held_bytes, chunk.freed_bytes)]
        return math.lcm(*(each.denominator for each in sizes))

    @cached_property
    def room(self) -> tuple[int, ...]:
        """Cells of every device."""
        return tuple(math.floor(Fraction(each) * self._cells) for each in self.instance.memory_bytes)

    @cached_property
    def loose_room(self) -> tuple[int, ...]:
        """The same with the rounding that the check in floating point lets pass: for bounds."""
        return tuple(math.floor(let_pass_at_most(Fraction(each)) * self._cells) for each in self.instance.memory_bytes)

    @cached_property
    def beyond_s(self) -> Fraction:
        """What the objective has besides the makespan: the longest optimizer, with a barrier."""
        if self.instance.objective != "barrier":
            return Fraction(0)
        return max(Fraction(each) for each in self.instance.optimizer_s)

    def seconds(self, ticks: Fraction | int) -> Fraction:
        """An objective, of the makespan or span in ticks."""
        return ticks * self.unit_s + self.beyond_s


def times_s(instance: MicroBatchInstance) -> list[Fraction]:
    """All times of an instance but the optimizer's."""
    own = [(each.forward_s, each.backward_s, each.weights_s or 0.0) for each in instance.chunks]
    between = [(edge.forward_s, edge.backward_s) for edge in instance.edges]
    return [Fraction(each) for some in (*own, *between) for each in some]


def exact_ticks(instance: MicroBatchInstance) -> Ticks:
    """With the largest unit of which all times are multiples."""
    return Ticks(instance, _common(times_s(instance)))


def near_ticks(instance: MicroBatchInstance) -> Ticks:
    """Likewise of times as decimals of twelve digits, the unit shortened so that rounding down finds these multiples.

    Nothing longer than 1e-12 is lost by that.
    """
    times = [each for each in times_s(instance) if each]
    longest = max(times, default=Fraction(1))
    step = Fraction(10) ** (math.floor(math.log10(longest)) - _DIGITS + 1)
    unit = _common([round(each / step) * step for each in times])
    return Ticks(instance, unit * (1 - Fraction(ROUNDING)))


def _common(times: Iterable[Fraction]) -> Fraction:
    positive = [each for each in times if each]
    if not positive:
        return Fraction(1)
    scale = math.lcm(*(each.denominator for each in positive))
    return Fraction(math.gcd(*(int(each * scale) for each in positive)), scale)


def words_of(ticks: Ticks, solution: MicroBatchOrder) -> Words:
    """The kinds of a checked order's passes."""
    from ddlopt.models.deployment.microbatches.solution import pass_of

    found = []
    for order in solution.orders:
        word = []
        for name in order:
            which = pass_of(name)
            assert which is not None
            word.append((which.chunk, kinds_of(ticks.instance, which.chunk).index(which.kind)))
        found.append(tuple(word))
    return tuple(found)


def order_of(ticks: Ticks, words: Iterable[Iterable[Kind]]) -> MicroBatchOrder:
    """Passes by name; of each kind the micro-batches come in their order."""
    instance, orders = ticks.instance, []
    for word in words:
        count: dict[Kind, int] = {}
        names = []
        for chunk, kind in word:
            micro_batch = count.get((chunk, kind), 0)
            count[chunk, kind] = micro_batch + 1
            names.append(str(Pass(chunk, kinds_of(instance, chunk)[kind], micro_batch)))
        orders.append(tuple(names))
    return MicroBatchOrder(instance=instance.name, orders=tuple(orders))
