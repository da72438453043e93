"""Greedy list scheduling: a device that is free begins the most urgent pass that is ready and fits."""

import heapq
from dataclasses import dataclass

from ddlopt.models.deployment.microbatches.ticks import B, F, Kind, Ticks, W
from ddlopt.solvers.heuristic import Clock

_NEVER = 1 << 200
"""Ticks, later than anything."""


@dataclass(frozen=True)
class Rule:
    """What is urgent.

    Parameters
    ----------
    ahead : tuple of int
        Of every chunk, at most this number of micro-batches is between F and B.
    patience : int
        A device waits for an F or B that is known to become ready within this percentage of the time of the W that it
        could begin.
    forward_first : bool
        F goes before B as long as ``ahead`` allows.
    late_first : bool
        Of a device's chunks those nearer to the end of their chain go first, forward as well.
    """

    ahead: tuple[int, ...]
    patience: int = 0
    forward_first: bool = False
    late_first: bool = True


class _State:
    """Counts of passes, memory and clocks of a schedule that is being made."""

    def __init__(self, ticks: Ticks, rule: Rule) -> None:
        self.ticks, self.rule = ticks, rule
        n = ticks.instance.micro_batches
        self.n = n
        self.ends: dict[Kind, list[int]] = {kind: [] for kind in ticks.kinds}
        self.free = [0] * ticks.instance.devices
        self.taken = [0] * ticks.instance.devices
        self.words: list[list[Kind]] = [[] for _ in ticks.on]
        self.chain_of = {chunk: chain for chain in ticks.instance.chains for chunk in chain}
        # Where a device has one chunk, what fits can always end.
        self.simple = len(ticks.instance.chunks) == ticks.instance.devices

    def began(self, kind: Kind) -> int:
        """Passes that have begun; when they end is known."""
        return len(self.ends[kind])

    def ready(self, kind: Kind) -> int:
        """When the next pass of a kind can begin as far as others are concerned; never, where that is not known."""
        number = self.began(kind)
        if number == self.n:
            return _NEVER
        at = 0
        for one, lag in self.ticks.waits[kind]:
            ends = self.ends[one]
            if len(ends) <= number:
                return _NEVER
            at = max(at, ends[number] + lag)
        return at

    def fits(self, chunk: int) -> bool:
        """Whether F of a chunk finds memory, and all can still end."""
        device = self.ticks.device[chunk]
        if self.taken[device] + self.ticks.cells[chunk, F] > self.ticks.room[device]:
            return False
        return self.simple or self._safe(chunk)

    def _safe(self, chunk: int) -> bool:
        """Whether micro-batches can be ended one by one after one more F: the oldest of some chain, again and again."""
        ticks = self.ticks
        free = [room - taken for room, taken in zip(ticks.room, self.taken, strict=True)]
        free[ticks.device[chunk]] -= ticks.cells[chunk, F]
        forward = {c: self.began((c, F)) + (c == chunk) for c in range(len(ticks.device))}
        # What has had F everywhere is ended without more memory.
        oldest = [min(forward[c] for c in chain) for chain in ticks.instance.chains]
        for chain, number in zip(ticks.instance.chains, oldest, strict=True):
            for c in chain:
                free[ticks.device[c]] += self._held(c, number)
        moving = True
        while moving:
            moving = False
            for place, chain in enumerate(ticks.instance.chains):
                number = oldest[place]
                if number >= forward[chain[0]]:
                    continue
                need = [0] * len(free)
                for c in chain:
                    if forward[c] <= number:
                        need[ticks.device[c]] += ticks.cells[c, F]
                if all(n <= f for n, f in zip(need, free, strict=True)):
                    for c in chain:
                        if forward[c] > number:
                            free[ticks.device[c]] += ticks.cells[c, F]
                    oldest[place] += 1
                    moving = True
        return all(number >= forward[chain[0]] for chain, number in zip(ticks.instance.chains, oldest, strict=True))

    def _held(self, chunk: int, number: int) -> int:
        """Cells that the first micro-batches hold on a chunk on which all of them had F."""
        held = number * self.ticks.cells[chunk, F]
        given_back = [kind for kind in ((chunk, B), (chunk, W)) if kind in self.ends]
        return held - sum(self.began(kind) * self.ticks.cells[kind] for kind in given_back)

    def begin(self, kind: Kind, now: int) -> int:
        """Run the next pass of a kind; when it ends."""
        device = self.ticks.device[kind[0]]
        end = now + self.ticks.time[kind]
        self.ends[kind].append(end)
        self.free[device] = end
        self.words[device].append(kind)
        # The device is busy until then, so nothing there sees what is given back before it is.
        self.taken[device] += self.ticks.cells[kind] if kind[1] == F else -self.ticks.cells[kind]
        return end

    def choose(self, device: int, now: int) -> tuple[Kind | None, int]:
        """What a free device begins now; or nothing, and until when it waits if nothing else happens."""
        rule, ticks = self.rule, self.ticks
        best: Kind | None = None
        rank: tuple[int, ...] = ()
        soonest, weights = _NEVER, _NEVER
        weight: Kind | None = None
        for kind in ticks.on[device]:
            at = self.ready(kind)
            if at == _NEVER:
                continue
            chunk, what = kind
            if what == W:
                if at <= now and self.began(kind) < weights:
                    weight, weights = kind, self.began(kind)
                continue
            if what == F and (self.began(kind) - len(self.ends[chunk, B]) >= rule.ahead[chunk] or not self.fits(chunk)):
                continue
            soonest = min(soonest, at)
            if at <= now:
                place = ticks.depth[kind]
                order = (
                    (what == F) != rule.forward_first,
                    -place if rule.late_first or what == B else place,
                    self.began(kind),
                )
                if best is None or order < rank:
                    best, rank = kind, order
        if best is not None:
            return best, now
        patient = weight is None or (soonest - now) * 100 <= rule.patience * ticks.time[weight]
        return (None, soonest) if patient else (weight, now)


def schedule(ticks: Ticks, rule: Rule, clock: Clock | None = None) -> list[list[Kind]] | None:
    """Words of kinds; None where the rule comes to a stop, or the time is up."""
    state = _State(ticks, rule)
    events = [0]
    left = sum(ticks.instance.micro_batches for _ in ticks.kinds)
    last = -1
    while events and left:
        now = heapq.heappop(events)
        if now == last:
            continue
        if clock is not None and clock.expired:
            break
        last = now
        moved = True
        while moved:
            moved = False
            for device in range(ticks.instance.devices):
                while state.free[device] <= now and left:
                    kind, until = state.choose(device, now)
                    if kind is None:
                        if now < until < _NEVER:
                            heapq.heappush(events, until)
                        break
                    end = state.begin(kind, now)
                    left -= 1
                    moved = True
                    heapq.heappush(events, end)
                    for lag in _lags(ticks, kind):
                        heapq.heappush(events, end + lag)
    return None if left else state.words


def _lags(ticks: Ticks, kind: Kind) -> list[int]:
    return [lag for waits in ticks.waits.values() for one, lag in waits if one == kind and lag]


def rules(ticks: Ticks) -> list[Rule]:
    """Those that are tried, the plainest first."""
    n, found = ticks.instance.micro_batches, []
    chunks = range(len(ticks.device))
    longest = {chunk: len(chain) for chain in ticks.instance.chains for chunk in chain}
    rounds = [
        max(
            1, -(-(ticks.head[c, B] - ticks.head[c, F]) // max(1, sum(ticks.time[k] for k in ticks.kinds if k[0] == c)))
        )
        for c in chunks
    ]
    slope = [max(1, longest[c] - ticks.depth[c, F]) for c in chunks]
    for ahead in ([n] * len(rounds), slope, [2 * each - 1 for each in slope], rounds, [each + 1 for each in rounds]):
        for patience in (0, 50, 100):
            for forward_first in (False, True):
                for late_first in (True, False):
                    found.append(Rule(tuple(ahead), patience, forward_first, late_first))
    return list(dict.fromkeys(found))
