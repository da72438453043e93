r"""A bound by dynamic programming over what a few devices have run; the others only take their time.

*Relaxation.* Passes of all other devices run as many at once as there are, so that between two passes of the devices
that are looked at there is a lag. Every schedule is one of these, too.

*States.* How many passes of each kind have run on these devices; memory depends on nothing else. Of the orders that
lead to a state a *label* says when each device is free, how late the end is at least, and when the passes may begin
whose turn with others has come. What may follow a label may follow one that is nowhere larger, no later; so a label
with such another one is dropped. Where too many are left, the last ones are replaced by the least of each entry: that
may be no order's, but is nowhere larger than any of them. What comes out is no more than the least of all orders.

*W first.* Where W of a device can end before its next F or B begins, W goes first: it delays nothing, and its memory is
there sooner.

*Spans* are those of the first of these devices. All begins at its first pass, and then as early as it can; with several
devices it is that of a single chain's first chunk, behind whose first pass all others come.
"""

from collections.abc import Callable, Iterator

from ddlopt.models.deployment.microbatches.ticks import B, F, Kind, Ticks, W

Label = tuple[int, ...]
"""When each device is free, how late it is, and then of every wait when the passes may begin that may."""
Counts = tuple[int, ...]
_LABELS = 40
"""Of a state."""


class _Passes:
    """The kinds of a few devices, with what they wait for."""

    def __init__(self, ticks: Ticks, devices: tuple[int, ...]) -> None:
        self.ticks, self.n, self.devices = ticks, ticks.instance.micro_batches, devices
        self.span = ticks.instance.objective == "span"
        self.kinds = [kind for kind in ticks.kinds if ticks.device[kind[0]] in devices]
        number = {kind: place for place, kind in enumerate(self.kinds)}
        self.place = [devices.index(ticks.device[chunk]) for chunk, _ in self.kinds]
        self.before = [number[chunk, B] if kind == W else -1 for chunk, kind in self.kinds]
        self.waits = [
            (number[one], number[kind], lag) for kind in self.kinds if kind[1] != W for one, lag in self._through(kind)
        ]
        self.first = [0 if self.span else ticks.head[kind] for kind in self.kinds]
        self.time = [ticks.time[kind] for kind in self.kinds]
        self.tail = [0 if self.span else ticks.tail[kind] for kind in self.kinds]
        # Ticks from the end of a pass to that of the last that must follow it, where the span counts.
        self.behind = self._behind()
        self.cells = [ticks.cells[kind] * (1 if kind[1] == F else -1) for kind in self.kinds]
        self.room = [ticks.loose_room[device] for device in devices]

    def _through(self, kind: Kind) -> Iterator[tuple[Kind, int]]:
        """What a kind waits for on these devices, with what lies between."""
        for one, lag in self.ticks.waits[kind]:
            if self.ticks.device[one[0]] in self.devices:
                yield one, lag
            else:
                own = self.ticks.time[one]
                yield from ((other, more + own + lag) for other, more in self._through(one))

    def _behind(self) -> list[int]:
        found = list(self.tail)
        for kind in sorted(range(len(self.kinds)), key=lambda each: -self.ticks.depth[self.kinds[each]]):
            ahead = [(one, lag) for one, other, lag in self.waits if other == kind]
            ahead += (
                [(self.before[kind], 0)] if self.before[kind] >= 0 and (not self.span or self.place[kind] == 0) else []
            )
            for one, lag in ahead:
                found[one] = max(found[one], lag + self.time[kind] + found[kind])
        return found

    def open(self, counts: Counts) -> Iterator[int]:
        """Kinds whose next pass is known to become ready, in memory that is there."""
        held = [0] * len(self.room)
        for kind, count in enumerate(counts):
            held[self.place[kind]] += self.cells[kind] * count
        for kind, count in enumerate(counts):
            if count == self.n or (self.before[kind] >= 0 and counts[self.before[kind]] == count):
                continue
            if self.cells[kind] > 0 and held[self.place[kind]] + self.cells[kind] > self.room[self.place[kind]]:
                continue
            if all(counts[one] > count for one, other, _ in self.waits if other == kind):
                yield kind

    def after(self, counts: Counts, labels: list[Label], kind: int, weights: int | None) -> Iterator[Label]:
        """Labels of the state behind one more pass; ``weights`` is the time of a W that could go first."""
        device, time, entry = self.place[kind], self.time[kind], len(self.room) + 1
        begins, parts = [], []
        for one, other, lag in self.waits:
            many = counts[one] - counts[other]
            if other == kind:
                begins.append(entry)
            parts.append((entry, entry + many, other == kind, self.place[other] == device, lag if one == kind else -1))
            entry += many
        for label in labels:
            now = label[device]
            at = max(now, self.first[kind], *(label[entry] for entry in begins))
            if weights is not None and at >= now + weights:
                continue
            end = at + time
            found = list(label[: len(self.room) + 1])
            found[device] = end
            if not self.span or device == 0:
                found[-1] = max(found[-1], end + self.tail[kind])
            for begin, stop, used, own, lag in parts:
                ready = label[begin + used : stop]
                found += [max(end, each) for each in ready] if own else ready
                if lag >= 0:
                    found.append(end + lag)
            yield tuple(found)

    def within(self, counts: Counts, labels: list[Label], high: int) -> list[Label]:
        """Labels that may still lead to less than ``high`` ticks, by what each device has yet to do."""
        late = []
        for device in range(len(self.room)):
            own = [kind for kind, place in enumerate(self.place) if place == device and counts[kind] < self.n]
            left = {kind: (self.n - counts[kind]) * self.time[kind] for kind in own}
            after = [self.behind[kind] for kind in own if self.before[kind] < 0]
            if after:
                late.append((device, sum(left[kind] for kind in own if self.before[kind] < 0) + min(after)))
            if own and (not self.span or device == 0):
                late.append((device, sum(left.values()) + min(self.tail[kind] for kind in own)))
            late += [(device, left[kind] + self.behind[kind]) for kind in own if self.before[kind] < 0]
        entry = len(self.room)
        return [
            label
            for label in labels
            if label[entry] < high and all(label[device] + more < high for device, more in late)
        ]


def few_devices_bound(
    ticks: Ticks, devices: tuple[int, ...], most: int, high: int | None = None, expired: Callable[[], bool] = bool
) -> int | None:
    """Ticks of the makespan or span below which no order is; None where it takes too many labels, or time is up.

    Parameters
    ----------
    ticks : Ticks
    devices : tuple of int
    most : int
        Labels that are made.
    high : int, optional
        Nothing is asked of more ticks, which are the answer then.
    expired : callable

    Returns
    -------
    int or None
    """
    passes, seen = _Passes(ticks, devices), 0
    level: dict[Counts, list[Label]] = {(0,) * len(passes.kinds): [(0,) * (len(passes.room) + 1)]}
    for _ in range(passes.n * len(passes.kinds)):
        found: dict[Counts, list[Label]] = {}
        for counts, labels in level.items():
            can = list(passes.open(counts))
            for kind in can:
                fill = None
                if passes.before[kind] < 0:
                    own = [
                        passes.time[w] for w in can if passes.before[w] >= 0 and passes.place[w] == passes.place[kind]
                    ]
                    fill = min(own, default=None)
                behind = (*counts[:kind], counts[kind] + 1, *counts[kind + 1 :])
                found.setdefault(behind, []).extend(passes.after(counts, labels, kind, fill))
        seen += sum(map(len, found.values()))
        if seen > most or expired():
            return None
        if high is not None:
            found = {counts: passes.within(counts, labels, high) for counts, labels in found.items()}
        level = {counts: _least(labels) for counts, labels in found.items() if labels}
        if not level:
            return high
    return min(label[len(passes.room)] for labels in level.values() for label in labels)


def _least(labels: list[Label]) -> list[Label]:
    kept: list[Label] = []
    for label in sorted(set(labels)):
        if not any(all(map(int.__le__, one, label)) for one in kept):
            kept.append(label)
    return kept if len(kept) <= _LABELS else [*kept[: _LABELS - 1], tuple(map(min, *kept[_LABELS - 1 :]))]
