"""Digraphs of given degrees in which, but for a few pairs, everybody is two arcs away at most: one, or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

Arc = tuple[int, int]


class Wanted(NamedTuple):
    """What is asked of a digraph on vertices from 0 on.

    Parameters
    ----------
    outward, inward : sequence of int
        Degrees.
    arcs : frozenset of pairs
        These are among them.
    relayed : sequence of int
        For each vertex those, as bits, that it reaches in two steps anyway.
    rings : sequence of sequences of int
        Vertices that a cycle joins.
    missing : int
        Most pairs that may be further apart than two arcs.
    """

    outward: Sequence[int]
    inward: Sequence[int]
    arcs: frozenset[Arc]
    relayed: Sequence[int]
    rings: Sequence[Sequence[int]]
    missing: int


@dataclass
class DigraphSearch:
    """Depth-first search, vertex by vertex, for as many steps as are given.

    Parameters
    ----------
    steps : int
        Choices of heads that are looked at, over all calls.
    """

    steps: int
    spent: int = field(default=0, init=False)

    @property
    def exhausted(self) -> bool:
        """Whether a search ended before its time."""
        return self.spent >= self.steps

    def find(self, wanted: Wanted) -> tuple[int, ...] | None:
        """Heads of each vertex as bits; None where there is no such digraph, or the steps are spent."""
        out, room = list(wanted.outward), list(wanted.inward)
        heads = [0] * len(out)
        for tail, head in wanted.arcs:
            out[tail] -= 1
            room[head] -= 1
            heads[tail] |= 1 << head
        if min(out) < 0 or min(room) < 0:
            return None
        open_ = {v for v, left in enumerate(out) if left}
        return tuple(heads) if self._extended(wanted, heads, out, room, open_) else None

    def _extended(self, wanted: Wanted, heads: list[int], out: list[int], room: list[int], open_: set[int]) -> bool:
        """Whether the digraph can be completed, which it then is; ``out`` and ``room`` are what degrees leave."""
        self.spent += 1
        if self.exhausted or _least_missing(wanted, heads, out, open_) > wanted.missing:
            return False
        if not open_:
            return all(has_ring(heads, ring) for ring in wanted.rings)
        tail = max(open_, key=lambda v: (_tails(heads, v, open_), (heads[v]).bit_count(), -v))
        before, rest = heads[tail], open_ - {tail}
        free = [v for v, left in enumerate(room) if left and v != tail and not before >> v & 1]
        for chosen in combinations(free, out[tail]):
            for v in chosen:
                room[v] -= 1
                heads[tail] |= 1 << v
            if self._extended(wanted, heads, out, room, rest):
                return True
            for v in chosen:
                room[v] += 1
            heads[tail] = before
        return False


def _tails(heads: Sequence[int], head: int, open_: Iterable[int]) -> int:
    """Vertices whose arcs are all known, one of them to ``head``."""
    return sum(1 for tail, bits in enumerate(heads) if bits >> head & 1 and tail not in open_)


def _least_missing(wanted: Wanted, heads: Sequence[int], out: Sequence[int], open_: Iterable[int]) -> int:
    """Pairs more than two arcs apart, at least: an arc that is not known yet reaches one vertex more."""
    n, found = len(heads), 0
    for tail in range(n):
        if tail in open_:
            continue
        reached, later = heads[tail] | wanted.relayed[tail] | 1 << tail, 0
        for middle in range(n):
            if heads[tail] >> middle & 1:
                reached |= heads[middle]
                later += out[middle] if middle in open_ else 0
        found += max(0, n - reached.bit_count() - later)
    return found


def has_ring(heads: Sequence[int], members: Sequence[int]) -> bool:
    """Whether the arcs have a cycle through exactly these vertices."""
    first = members[0]

    def closed(here: int, left: int) -> bool:
        if not left:
            return bool(heads[here] >> first & 1)
        return any(heads[here] & left & 1 << v and closed(v, left & ~(1 << v)) for v in members[1:])

    return closed(first, sum(1 << v for v in members[1:]))
