"""An order that always fits, which gives formulations their horizon, and starts of passes that follow an order."""

from collections.abc import Iterator

from ddlopt.models.deployment.microbatches.ticks import B, F, Kind, Ticks, W, Words


def with_weights(ticks: Ticks, chunk: int) -> list[Kind]:
    """B, and W right behind it where it is a pass by itself."""
    return [(chunk, B), (chunk, W)] if (chunk, W) in ticks.time else [(chunk, B)]


def one_forward_one_backward(
    ticks: Ticks, chain: tuple[int, ...], room: tuple[int, ...] | None = None
) -> Iterator[tuple[int, list[Kind]]]:
    """1F1B: device and word of each chunk of a chain, W right behind its B.

    On the i-th of p chunks p - i + 1 F come first, but with ``room``, cells of every device, no more than fit. Then B
    and F take turns, until only B are left.
    """
    n = ticks.instance.micro_batches
    for place, chunk in enumerate(chain):
        device, size, ahead = ticks.device[chunk], ticks.cells[chunk, F], min(n, len(chain) - place)
        if room is not None and size:
            ahead = max(1, min(ahead, room[device] // size))
        word = [(chunk, F)] * ahead
        for done in range(n):
            word += with_weights(ticks, chunk)
            word += [(chunk, F)] * (done + ahead < n)
        yield device, word


def simple_words(ticks: Ticks) -> Words:
    """1F1B with no more micro-batches in flight than fit, where devices have a chunk each; else one after another."""
    words: list[list[Kind]] = [[] for _ in ticks.on]
    for chain in ticks.instance.chains:
        if len(ticks.device) == len(ticks.on):
            for device, word in one_forward_one_backward(ticks, chain, ticks.loose_room):
                words[device] += word
            continue
        for _ in range(ticks.instance.micro_batches):
            for chunk in chain:
                words[ticks.device[chunk]].append((chunk, F))
            for chunk in reversed(chain):
                words[ticks.device[chunk]] += with_weights(ticks, chunk)
    return tuple(map(tuple, words))


def starts_of(ticks: Ticks, words: Words) -> list[list[int]]:
    """Ticks at which the passes of every device begin, for the least objective; of an order that can run.

    As early as they can, or with the least whole span such that none takes longer from its first pass to its last.
    """
    early = _starts(ticks, words, [0] * len(words))
    if ticks.instance.objective != "span":
        return early
    low, high, best = max(ticks.work), max(_lengths(ticks, words, early)), early
    while low < high:
        middle = (low + high) // 2
        found = _within(ticks, words, middle)
        if found is None:
            low = middle + 1
        else:
            high, best = middle, found
    return best


def _within(ticks: Ticks, words: Words, length: int) -> list[list[int]] | None:
    """Starts as early as they can be if no device takes longer than that; None if one must."""
    begin = [0] * len(words)
    # What must change more often than there are devices goes round in a circle that never ends.
    for _ in range(len(words) + 1):
        starts = _starts(ticks, words, begin)
        late = [
            max(first, own[0] + took - length) if own else first
            for first, own, took in zip(begin, starts, _lengths(ticks, words, starts), strict=True)
        ]
        if late == begin:
            return starts
        begin = late
    return None


def _lengths(ticks: Ticks, words: Words, starts: list[list[int]]) -> list[int]:
    return [own[-1] + ticks.time[word[-1]] - own[0] if own else 0 for word, own in zip(words, starts, strict=True)]


def _starts(ticks: Ticks, words: Words, begin: list[int]) -> list[list[int]]:
    ends: dict[Kind, list[int]] = {kind: [] for kind in ticks.kinds}
    starts: list[list[int]] = [[] for _ in words]
    free = list(begin)
    moving = True
    while moving:
        moving = False
        for device, word in enumerate(words):
            while len(starts[device]) < len(word):
                kind = word[len(starts[device])]
                number = len(ends[kind])
                if any(len(ends[one]) <= number for one, _ in ticks.waits[kind]):
                    break
                at = max([free[device], *(ends[one][number] + lag for one, lag in ticks.waits[kind])])
                starts[device].append(at)
                free[device] = at + ticks.time[kind]
                ends[kind].append(free[device])
                moving = True
    return starts
