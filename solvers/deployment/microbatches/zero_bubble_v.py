"""ZB-V: two chunks a device in a V, whose order has no bubble with unit times in the memory of 1F1B."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from ddlopt.models.deployment.microbatches.ticks import B, F, Ticks
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.microbatches.handcrafted import Handcrafted, Word
from ddlopt.solvers.deployment.microbatches.zero_bubble import Making, StuckError


class _V(Making):
    """The rules of the released scheduler for a V.

    Parameters
    ----------
    ticks : Ticks
    allowed : tuple of int
        Ticks that each device has waited in the attempt before; one may wait so much less than the most of them before
        W has to fill a hole that is too short for it.
    fills : tuple of bool
        Whether W goes into such a hole before F, and before B of the way back to the first device.
    """

    def __init__(self, ticks: Ticks, allowed: tuple[int, ...], fills: tuple[bool, bool]) -> None:
        super().__init__(ticks, ticks.room)
        self.allowed, self.fills = allowed, fills
        chain = ticks.instance.chains[0]
        self.there, self.back = chain[: self.p], chain[: self.p - 1 : -1]

    def _most(self, device: int, fill: bool) -> int | None:
        """Ticks that a device may wait before W fills a hole too short for it."""
        return max(*self.waited, max(self.allowed) - self.allowed[device]) - self.waited[device] if fill else None

    def make(self) -> None:
        """All passes.

        Raises
        ------
        StuckError
            If it comes to a stop.
        """
        self._ramp()
        for _ in range(2 * self.n):
            self._backward()
            self._forward()
        self.end()

    def _ramp(self) -> None:
        """F before the first B: one micro-batch there and back, and others that fill the time until it comes back."""
        ticks, p, n = self.ticks, self.p, self.n
        for device in range(p):
            self.run(device, (self.there[device], F))
        for device in range(p - 1, -1, -1):
            first, last = (self.there[device], F), (self.back[device], F)
            size, at = ticks.cells[first], self.ready(last)
            while (
                device < p - 1
                and self.held[device] + size * (2 + 2 * device) <= ticks.room[device]
                and self.now[device] + ticks.time[first] <= at
                and self.count(*first) < n
            ):
                for other in range(device + 1):
                    self.run(other, (self.there[other], F))
            self.run(device, last)
        turn = [self.there, self.back]
        for device in range(1, p):
            while self._ahead(device, device - 1):
                for other in range(p - 1, device - 1, -1):
                    if self.count(turn[0][other], F) < n:
                        self.run(other, (turn[0][other], F))
                turn.reverse()

    def _ahead(self, device: int, before: int) -> bool:
        """Whether the device before has had more F than this one."""
        own, other = (
            (self.count(self.there[each], F), self.count(self.back[each], F)) for each in (device, before)
        )  # fmt: skip
        return sum(own) < sum(other) or own[1] <= other[1] < self.n

    def _backward(self) -> None:
        """A B on every device: of the way back where that is next, of the way there where it has come so far."""
        p, there, back = self.p, self.there, self.back
        late = [
            device
            for device in range(p)
            if self.count(there[device], B) < self.count(back[device], B)
            and (
                device == p - 1
                or self.count(there[device + 1], B) > self.count(there[device], B)
                or self.count(back[device], B) >= self.n
            )
        ]
        for device in reversed(late):
            self.after(device, (there[device], B), self._most(device, True))
        for device in range(p):
            if device not in late:
                self.after(device, (back[device], B), self._most(device, self.fills[1]))

    def _forward(self) -> None:
        """An F on every device that has one left and can: of the way back first."""
        p, n = self.p, self.n
        for device in range(p):
            first, last = (self.there[device], F), (self.back[device], F)
            done = self.count(*last)
            if done >= n:
                continue
            if done < self.count(*first) and (device == p - 1 or self.count(self.back[device + 1], F) > done):
                kind = last
            elif done >= self.count(*first) or (
                self.count(*first) < n
                and (device == 0 or self.count(self.there[device - 1], F) > self.count(*first))
            ):  # fmt: skip
                kind = first
            else:
                continue
            self.after(device, kind, self._most(device, self.fills[0]))


@dataclass(frozen=True)
class ZeroBubbleV(Handcrafted):
    """ZB-V: the order of a V in the memory of 1F1B, made for the times of an instance.

    One micro-batch goes there and back, with others behind it until it returns; then every device runs B and F in
    turn, and W where it fits into a hole, where memory is lacking, or where a device would wait longer than any has so
    far. Whether W also fills holes that are too short for it is tried both ways, before F and before B, and once more
    with what devices have waited. With unit times nothing waits. What is best of that is the answer.

    References
    ----------
    P. Qi, X. Wan, N. Amar, M. Lin, "Pipeline parallelism with controllable memory", NeurIPS 2024, and the released
    scheduler (sail-sg/zero-bubble-pipeline-parallelism), whose rules these are.
    """

    name: ClassVar[str] = "zb-v"

    def refuses(self, instance: Any) -> str | None:
        """Other chunks than a V of one chain; W within B."""
        p = instance.devices
        places = [instance.chunks[chunk].device for chunk in instance.chains[0]]
        if len(instance.chains) > 1 or len(places) != 2 * p or places != [*range(p), *reversed(range(p))]:
            return "it needs one chain with two chunks a device, there and back"
        if any(chunk.weights_s is None for chunk in instance.chunks):
            return "it needs W as passes of their own"
        return None

    def candidates(self, ticks: Ticks) -> Iterator[list[Word]]:
        """By the rules.

        Raises
        ------
        NoSolutionError
            If they come to a stop, for lack of memory.
        """
        stopped = True
        for before_f, before_b in product((True, False), repeat=2):
            allowed: tuple[int, ...] = (0,) * ticks.instance.devices
            shortest: int | None = None
            while True:
                made = _V(ticks, allowed, (before_f, before_b))
                try:
                    made.make()
                except StuckError:
                    break
                stopped = False
                yield made.words
                if shortest is not None and max(made.waited) >= shortest:
                    break
                shortest, allowed = max(made.waited), tuple(made.waited)
        if stopped:
            raise NoSolutionError("the rules of ZB-V come to a stop; they need room for two micro-batches a device")
