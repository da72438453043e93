"""A walk along the blocks in which every set of them is one way, and what it moves is known from few states."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_OUTSIDE, _INSIDE, _BOTH = 0, 1, 2
"""Where the pins so far are."""

Output = tuple[tuple[int, ...], int]
"""Pins, and what it takes if a set has some of them but not all."""


class Walk(NamedTuple):
    """Blocks are decided on one after the other: without it, or with it.

    Parameters
    ----------
    line : tuple of int
        The n blocks in this order.
    after : list of list of (int, int)
        By place and state: the state without the block and with it, -1 where it may not be; the first state is 0.
    moved : list of list of (int, int)
        What the outputs take for which this decides that they move.
    """

    line: tuple[int, ...]
    after: list[list[tuple[int, int]]]
    moved: list[list[tuple[int, int]]]


def walk_of(count: int, outputs: Sequence[Output], apart: Iterable[tuple[int, int]], most: int) -> Walk | None:
    """The walk along ``count`` blocks; None if a place has more than ``most`` states.

    A state says of each output with pins before and after this place whether all pins so far are outside, inside, or on
    both sides, and of each pair that must be apart whether the first is inside.

    Parameters
    ----------
    outputs : sequence
    apart : iterable of (int, int)
        Pairs that no set has both of.
    """
    rules = [*outputs, *((pair, None) for pair in apart)]
    line = _line([pins for pins, _ in rules], count)
    place_of = {block: place for place, block in enumerate(line)}
    last = [max(place_of[pin] for pin in pins) for pins, _ in rules]
    at = [[rule for rule, (pins, _) in enumerate(rules) if block in pins] for block in line]
    layer: dict[tuple[tuple[int, int], ...], int] = {(): 0}
    walk = Walk(line, [], [])
    for place in range(count):
        following: dict[tuple[tuple[int, int], ...], int] = {}
        after, moved = [], []
        for state in layer:
            both = []
            for inside in (_OUTSIDE, _INSIDE):
                known, time = dict(state), 0
                for rule in at[place]:
                    before, own = known.get(rule, inside), rules[rule][1]
                    if own is None:
                        time = -1 if rule in known and before and inside else time
                        known[rule] = before if rule in known else inside
                    elif before in (inside, _BOTH):
                        known[rule] = before
                    else:
                        known[rule], time = _BOTH, time if time < 0 else time + own
                if time < 0:
                    both.append((-1, 0))
                    continue
                left = tuple(sorted((rule, side) for rule, side in known.items() if last[rule] > place))
                both.append((following.setdefault(left, len(following)), time))
            after.append((both[0][0], both[1][0]))
            moved.append((both[0][1], both[1][1]))
        if len(following) > most:
            return None
        walk.after.append(after)
        walk.moved.append(moved)
        layer = following
    return walk


def _line(rules: Sequence[Sequence[int]], count: int) -> tuple[int, ...]:
    """Always the block that leaves fewest rules open, the first of these."""
    waiting = [set(pins) for pins in rules]
    of_block = [[rule for rule, pins in enumerate(rules) if block in pins] for block in range(count)]
    begun: set[int] = set()
    left, line = list(range(count)), []

    def opens(block: int) -> int:
        own = of_block[block]
        begins = sum(rule not in begun and len(waiting[rule]) > 1 for rule in own)
        return begins - sum(rule in begun and len(waiting[rule]) == 1 for rule in own)

    while left:
        block = min(left, key=opens)
        left.remove(block)
        line.append(block)
        for rule in of_block[block]:
            begun.add(rule)
            waiting[rule].discard(block)
    return tuple(line)
