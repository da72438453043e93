"""ZB-H1 and ZB-H2: where W, which nobody waits for, goes; as the papers draw them, and for the times of an instance."""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

from ddlopt.models.deployment.microbatches.ticks import B, F, Kind, Ticks, W
from ddlopt.solvers.deployment.microbatches.handcrafted import Handcrafted, Word, one_each
from ddlopt.solvers.deployment.microbatches.timing import fits


class StuckError(Exception):
    """The order wants a pass that cannot run."""


class Making:
    """An order that is made pass by pass, each as early as it can; devices in the order of their numbers.

    Parameters
    ----------
    ticks : Ticks
    room : tuple of int
        Cells of memory that it may use, of each device.
    """

    def __init__(self, ticks: Ticks, room: tuple[int, ...]) -> None:
        self.ticks, self.room = ticks, room
        self.n, self.p = ticks.instance.micro_batches, ticks.instance.devices
        self.ends: dict[Kind, list[int]] = {kind: [] for kind in ticks.kinds}
        self.words: list[Word] = [[] for _ in range(self.p)]
        self.now, self.held, self.waited = [0] * self.p, [0] * self.p, [0] * self.p
        self.left: list[deque[int]] = [deque() for _ in range(self.p)]

    def count(self, chunk: int, kind: int) -> int:
        """Passes that have run."""
        return len(self.ends[chunk, kind])

    def ready(self, kind: Kind) -> int:
        """When the next pass of a kind can begin as far as others are concerned."""
        number, at = len(self.ends[kind]), 0
        for one, lag in self.ticks.waits[kind]:
            if len(self.ends[one]) <= number:
                raise StuckError
            at = max(at, self.ends[one][number] + lag)
        return at

    def run(self, device: int, kind: Kind) -> None:
        """The next pass of a kind."""
        ticks = self.ticks
        if len(self.ends[kind]) >= self.n:
            raise StuckError
        begin = max(self.now[device], self.ready(kind))
        if self.words[device]:
            self.waited[device] += begin - self.now[device]
        self.now[device] = begin + ticks.time[kind]
        self.ends[kind].append(self.now[device])
        self.words[device].append(kind)
        self.held[device] += ticks.cells[kind] if kind[1] == F else -ticks.cells[kind]
        if self.held[device] > self.room[device]:
            raise StuckError
        if kind[1] == B:
            self.left[device].append(kind[0])

    def weights(self, device: int) -> None:
        """The W that has been left for longest."""
        if not self.left[device]:
            raise StuckError
        self.run(device, (self.left[device].popleft(), W))

    def after(self, device: int, kind: Kind, most: int | None) -> None:
        """The next pass of a kind, behind W that fit into the time until then.

        And behind one more that does not, where the device would wait longer than ``most``; None: never.
        """
        ticks, at = self.ticks, self.ready(kind)
        while self.held[device] + (kind[1] == F) * ticks.cells[kind] > self.room[device]:
            self.weights(device)
        while self.left[device] and at >= self.now[device] + ticks.time[self.left[device][0], W]:
            self.weights(device)
        if most is not None and self.left[device] and at - self.now[device] > most:
            self.weights(device)
        self.run(device, kind)

    def end(self) -> None:
        """All W that are left."""
        for device in range(self.p):
            while self.left[device]:
                self.weights(device)


class _Straight(Making):
    """The rules of the released scheduler for one chunk a device.

    Parameters
    ----------
    ticks : Ticks
    room : tuple of int
    options : tuple of bool
        F before the first B end before that can begin, though the device waits then; a device does without F where the
        next one has enough to do and B would wait; W also fills holes too short for it where others have waited longer.
    """

    def __init__(self, ticks: Ticks, room: tuple[int, ...], options: tuple[bool, ...]) -> None:
        super().__init__(ticks, room)
        self.waits, self.shy, self.fills = options
        self.chain = ticks.instance.chains[0]
        self.on = [ticks.device[chunk] for chunk in self.chain]

    def make(self) -> None:
        """All passes.

        Raises
        ------
        StuckError
            If it comes to a stop.
        """
        self._ramp()
        for _ in range(1, self.n):
            self._forward()
            self._backward()
        self.end()

    def _ramp(self) -> None:
        """F, as many as time and memory allow until the first B could begin; and that."""
        ticks, chain = self.ticks, self.chain
        for device, chunk in zip(self.on, chain, strict=True):
            self.run(device, (chunk, F))
        more, back = [0] * self.p, self.now[self.on[-1]] + ticks.time[chain[-1], B]
        for place in range(self.p - 2, -1, -1):
            chunk, device = chain[place], self.on[place]
            forward, at = ticks.time[chunk, F], back + ticks.waits[chunk, B][0][1]
            fit, end = self.room[device] - self.held[device], self.now[device]
            while more[place] + 1 < self.n and (more[place] + 1) * ticks.cells[chunk, F] <= fit:
                if end + forward > at if self.waits else end >= at:
                    break
                end += forward
                more[place] += 1
            back = max(end, at) + ticks.time[chunk, B]
        for place in range(1, self.p):
            if more[place] + 1 < self.n:
                more[place] = min(more[place], max(0, more[place - 1] - 1))
        for device, chunk, count in zip(self.on, chain, more, strict=True):
            for _ in range(count):
                self.run(device, (chunk, F))
        for device, chunk in zip(self.on[::-1], chain[::-1], strict=True):
            self.run(device, (chunk, B))

    def _allowance(self, device: int) -> int:
        """Ticks that a device may wait before it has waited as long as any."""
        return max(self.waited) - self.waited[device]

    def _most(self, device: int) -> int:
        return 0 if self.fills else self._allowance(device)

    def _forward(self) -> None:
        """An F on the last devices, up to one that had better not run it."""
        first = self.p
        while first and self._wants(first - 1):
            first -= 1
        for device, chunk in zip(self.on[first:], self.chain[first:], strict=True):
            self.after(device, (chunk, F), self._most(device))

    def _wants(self, place: int) -> bool:
        """Whether a device runs F now, though the next one may have enough."""
        ticks, chunk, device = self.ticks, self.chain[place], self.on[place]
        if self.count(chunk, F) == self.n:
            return False
        if not self.shy or place + 1 == self.p:
            return True
        behind, other = self.chain[place + 1], self.on[place + 1]
        if self.count(chunk, F) < self.count(behind, F) + 2:
            return True
        # When B can begin here if the next device now runs F and B.
        at = self.now[other] + ticks.time[behind, F] + ticks.time[behind, B] + ticks.waits[chunk, B][0][1]
        lacking = self.held[device] + ticks.cells[chunk, F] - self.room[device]
        size = ticks.cells[chunk, W]
        before = min(len(self.left[device]), -(-lacking // size)) if lacking > 0 and size else 0
        end = self.now[device] + ticks.time[chunk, F] + before * ticks.time[chunk, W]
        # Else another device has waited for so much longer that this one may wait for that B.
        return self.now[device] < at and (end <= at or at - self.now[device] > self._allowance(device))

    def _backward(self) -> None:
        """A B on every device, on the first one behind all W where no F is left."""
        for device, chunk in zip(self.on[::-1], self.chain[::-1], strict=True):
            while chunk == self.chain[0] and self.count(chunk, F) == self.n and self.left[device]:
                self.weights(device)
            self.after(device, (chunk, B), self._most(device))


def _drawn(ticks: Ticks, warm: list[int], late: list[int]) -> list[Word]:
    """A given number of F first, then B, W and F in turn. W stays a given number of B behind; the last W come last."""
    n = ticks.instance.micro_batches
    words: list[Word] = [[] for _ in ticks.on]
    for place, chunk in enumerate(ticks.instance.chains[0]):
        word, ahead = words[ticks.device[chunk]], min(n, warm[place])
        word += [(chunk, F)] * ahead
        weights = 0
        for done in range(n):
            word.append((chunk, B))
            if done + ahead < n:
                if done >= late[place]:
                    word.append((chunk, W))
                    weights += 1
                word.append((chunk, F))
            elif done + 1 > weights:
                word.append((chunk, W))
                weights += 1
        word += [(chunk, W)] * (n - weights)
    return words


@dataclass(frozen=True)
class ZeroBubble(Handcrafted):
    """ZB-H1 and ZB-H2: W, which nobody waits for, fills the holes.

    *As drawn in the paper*, for unit times: ZB-H1 begins as 1F1B does, device i (from 0) holds back i W, and memory is
    that of 1F1B's first device. ZB-H2 has 2 (p - i) - 1 F first and holds back 2 i W, with nearly twice the memory.

    *For the times of the instance*, as the released scheduler makes them: every device runs F until its first B can
    begin, then F and B in turn; W goes where it fits into a hole, where memory is lacking, or where the device would
    wait too long. Three choices are tried both ways: whether the last F before the first B may make that wait, whether
    an F is put off, and whether W goes into holes that are too short for it though others have waited longer. ZB-H1 has
    p micro-batches on a device at most, ZB-H2 what fits.

    The shortest of these is the answer. There is none where the drawn one does not fit into the memory.

    Parameters
    ----------
    doubled : bool
        ZB-H2.
    drawn : bool
        The drawn one only.

    References
    ----------
    P. Qi, X. Wan, G. Huang, M. Lin, "Zero bubble (almost) pipeline parallelism", ICLR 2024, and the released scheduler
    (sail-sg/zero-bubble-pipeline-parallelism), whose rules these are.
    """

    doubled: bool = False
    drawn: bool = False

    @property
    def name(self) -> str:
        """Of the method."""
        return "zb-h2" if self.doubled else "zb-h1"

    def refuses(self, instance: Any) -> str | None:
        """Several chunks a device, several chains, W within B."""
        if any(chunk.weights_s is None for chunk in instance.chunks):
            return "it needs W as passes of their own"
        return one_each(instance)

    def candidates(self, ticks: Ticks) -> Iterator[list[Word]]:
        """As drawn, and then by the rules, if that fits."""
        chain, room = ticks.instance.chains[0], ticks.room
        p = len(chain)
        if self.doubled:
            drawn = _drawn(ticks, [2 * (p - place) - 1 for place in range(p)], [2 * place for place in range(p)])
        else:
            drawn = _drawn(ticks, [p - place for place in range(p)], list(range(p)))
            size = {ticks.device[chunk]: p * ticks.cells[chunk, F] for chunk in chain}
            room = tuple(min(most, size[device]) for device, most in enumerate(room))
        yield drawn
        if self.drawn or not fits(ticks, tuple(map(tuple, drawn))):
            return
        for options in product((True, False), repeat=3):
            made = _Straight(ticks, room, options)
            with suppress(StuckError):
                made.make()
                yield made.words
