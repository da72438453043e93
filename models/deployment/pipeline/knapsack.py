"""One option of each group, the fastest that fit into a memory: the knapsack of a stage, in whole numbers."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Mix(NamedTuple):
    """Options for some layers: their memory, their time, and how they were chosen: what came before, and the last."""

    memory: int
    time: int
    chosen: Any


NOTHING: tuple[Mix, ...] = (Mix(0, 0, None),)


def best_mixes(mixes: Iterable[Mix], most: int) -> tuple[Mix, ...]:
    """Those within the memory that no other one beats in both respects, from the leanest to the fastest."""
    kept: list[Mix] = []
    for mix in sorted(mixes, key=lambda each: each[:2]):
        if mix.memory <= most and (not kept or mix.time < kept[-1].time):
            kept.append(mix)
    return tuple(kept)


def fastest_mixes(groups: Sequence[Sequence[Mix]], most: int) -> list[Mix]:
    r"""One of each group with the least time in all within the memory, which the leanest of each keep.

    For weights a, b of memory and time, with M the memory and :math:`r_{gi} = a\,m_{gi} + b\,\tau_{gi}`,

    .. math:: b \sum \tau \ge \sum_g \min_i r_{gi} - a M + \sum_g (r_{gi} - \min_j r_{gj}) .

    What options lose against the best of their group is added up group by group, and what loses more than is between
    the bound and the best mixture known is left out, as is what another one beats in both memory and time. The weights
    are those of the best such bound, and groups in which little is lost come last.

    Parameters
    ----------
    groups : sequence of sequences of Mix
        Each as :func:`best_mixes` leaves it.
    most : int
    """
    found, weights = _relaxed(groups, most)
    if weights is None:
        return found
    a, b = weights
    values = [[a * mix.memory + b * mix.time for mix in group] for group in groups]
    least = [min(own) for own in values]
    found = _filled(groups, found, most)
    best = _time(found)
    # A mixture is better only if it loses less than this.
    room = b * best + a * most - sum(least)
    lost = [sorted(value - its for value in own)[1:2] or [room] for own, its in zip(values, least, strict=True)]
    order = sorted(range(len(groups)), key=lambda place: -lost[place][0])
    lean = sum(group[0].memory for group in groups)
    mixes: list[tuple[int, int, int, Any]] = [(0, 0, 0, None)]
    for place in order:
        lean -= groups[place][0].memory
        longer = [
            (memory + mix.memory, time + mix.time, loss + value - least[place], (chosen, mix))
            for memory, time, loss, chosen in mixes
            for mix, value in zip(groups[place], values[place], strict=True)
            if memory + mix.memory + lean <= most and loss + value - least[place] < room
        ]
        longer.sort(key=lambda each: each[:2])
        mixes = []
        for each in longer:
            if not mixes or each[1] < mixes[-1][1]:
                mixes.append(each)
    if mixes and mixes[-1][1] < best:
        chosen = mixes[-1][3]
        for place in reversed(order):
            chosen, found[place] = chosen
    return found


def _relaxed(groups: Sequence[Sequence[Mix]], most: int) -> tuple[list[Mix], tuple[int, int] | None]:
    """A mixture that fits, and the weights of the best bound; none where the fastest of each fit."""
    fast, lean = [group[-1] for group in groups], [group[0] for group in groups]
    while (more := _memory(fast)) > most:
        a, b = _time(lean) - _time(fast), more - _memory(lean)
        if a <= 0 or b <= 0:
            return lean, (max(a, 0), max(b, 1))
        new = [min(group, key=lambda mix: (a * mix.memory + b * mix.time, mix.memory)) for group in groups]
        if a * _memory(new) + b * _time(new) >= a * more + b * _time(fast):
            return lean, (a, b)
        if _memory(new) > most:
            fast = new
        else:
            lean = new
    return fast, None


def _filled(groups: Sequence[Sequence[Mix]], mixes: list[Mix], most: int) -> list[Mix]:
    """The same, where there is room with faster ones, those first that gain most."""
    left, found = most - _memory(mixes), list(mixes)
    gains = sorted(range(len(groups)), key=lambda place: groups[place][-1].time - mixes[place].time)
    for place in gains:
        own = found[place]
        found[place] = min(
            (mix for mix in groups[place] if mix.memory - own.memory <= left), key=lambda mix: (mix.time, mix.memory)
        )
        left -= found[place].memory - own.memory
    return found


def _memory(mixes: Iterable[Mix]) -> int:
    return sum(mix.memory for mix in mixes)


def _time(mixes: Iterable[Mix]) -> int:
    return sum(mix.time for mix in mixes)
