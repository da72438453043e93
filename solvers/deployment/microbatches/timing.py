"""When passes run that devices have in a given order, in ticks."""

from collections import deque
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.deployment.microbatches.ticks import F, Kind, Ticks, Words

Starts = list[list[int]]
"""Of every device, in the order of its word."""


class Timing(NamedTuple):
    """The passes as nodes of a graph without circles: numbers in a topological order, with those that come before."""

    word: list[Kind]
    device: list[int]
    before: list[list[tuple[int, int]]]
    first: list[int]
    last: list[int]


def graph(ticks: Ticks, words: Words) -> Timing | None:
    """The graph of an order; None if passes wait for each other in a circle."""
    places: dict[tuple[Kind, int], tuple[int, int]] = {}
    names: list[list[tuple[Kind, int]]] = []
    for device, word in enumerate(words):
        count: dict[Kind, int] = {}
        names.append([])
        for place, kind in enumerate(word):
            number = count.get(kind, 0)
            count[kind] = number + 1
            places[kind, number] = device, place
            names[-1].append((kind, number))
    # Devices run on as far as they can; who is stopped waits for one pass and is woken by it.
    done = [0] * len(words)
    found = Timing([], [], [], [0] * len(words), [0] * len(words))
    number_of: dict[tuple[Kind, int], int] = {}
    waiting: dict[tuple[Kind, int], list[int]] = {}
    ready = deque(range(len(words)))
    previous: list[int | None] = [None] * len(words)
    while ready:
        device = ready.popleft()
        while done[device] < len(words[device]):
            kind, number = names[device][done[device]]
            missing = next(((one, number) for one, _ in ticks.waits[kind] if (one, number) not in number_of), None)
            if missing is not None:
                waiting.setdefault(missing, []).append(device)
                break
            node = len(found.word)
            before = [(number_of[one, number], lag) for one, lag in ticks.waits[kind]]
            last = previous[device]
            if last is None:
                found.first[device] = node
            else:
                before.append((last, 0))
            number_of[kind, number] = node
            previous[device] = node
            found.last[device] = node
            found.word.append(kind)
            found.device.append(device)
            found.before.append(before)
            done[device] += 1
            ready.extend(waiting.pop((kind, number), ()))
    return found if all(len(word) == count for word, count in zip(words, done, strict=True)) else None


def makespan(ticks: Ticks, timing: Timing) -> int:
    """Ticks from the first pass to the last, each as early as it can."""
    return max(_ends(ticks, timing, dict.fromkeys(timing.first, 0)), default=0)


def span(ticks: Ticks, timing: Timing) -> Fraction:
    """The least that the longest of the devices' times from first pass to last can be made.

    In line (see :attr:`MicroBatchInstance.in_line`) no cycle of devices has a larger mean than the best device alone.
    """
    devices = range(len(timing.first))
    paths = []
    for device in devices:
        ends = _ends(ticks, timing, {timing.first[device]: 0})
        paths.append([ends[timing.last[other]] for other in devices])
    if ticks.instance.in_line:
        return Fraction(max(paths[device][device] for device in devices))
    return _mean(paths)


def value(ticks: Ticks, words: Words) -> Fraction | None:
    """Ticks of the objective; None for orders that never end."""
    timing = graph(ticks, words)
    if timing is None:
        return None
    return span(ticks, timing) if ticks.instance.objective == "span" else Fraction(makespan(ticks, timing))


def fits(ticks: Ticks, words: Words) -> bool:
    """Whether no device ever holds more than it has, in cells and so without any tolerance."""
    for word, room in zip(words, ticks.room, strict=True):
        taken = 0
        for kind in word:
            taken += ticks.cells[kind] if kind[1] == F else -ticks.cells[kind]
            if taken > room:
                return False
    return True


_NOWHERE = -(1 << 200)
"""Of a node that nothing leads to; far below any sum of ticks."""


def _ends(ticks: Ticks, timing: Timing, begin: dict[int, int]) -> list[int]:
    ends: list[int] = []
    time = ticks.time
    for node, (kind, before) in enumerate(zip(timing.word, timing.before, strict=True)):
        start = begin.get(node, _NOWHERE)
        for one, lag in before:
            if ends[one] + lag > start:
                start = ends[one] + lag
        ends.append(start + time[kind])
    return ends


def _mean(paths: list[list[int]]) -> Fraction:
    """The largest mean over cycles, by Karp's recursion over walks that begin anywhere."""
    devices = range(len(paths))
    walks = [[0 for _ in devices]]
    for _ in devices:
        walks.append([max(walks[-1][one] + paths[one][other] for one in devices) for other in devices])
    return max(
        min(
            Fraction(walks[-1][device] - walks[k][device], len(paths) - k)
            for k in devices
            if walks[k][device] > _NOWHERE // 2
        )
        for device in devices
        if walks[-1][device] > _NOWHERE // 2
    )
