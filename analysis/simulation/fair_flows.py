"""A simulation of flows: every message has its max-min fair rate at once, and whenever one ends or begins.

The fluid limit of many small packets under ideal congestion control: no headers, no start-up, no losses, no delay.
Rates are found by water filling (Bertsekas, Gallager, *Data Networks*, 6.5.2): all rise equally until a link is full,
what crosses it stays, the others rise on.
"""

import heapq
from collections import deque
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ddlopt.analysis.simulation.replay import Replay
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]


def incidence(replay: Replay) -> tuple["csr_array", Floats]:
    """(links, paths) how often each path crosses each link, and the (links,) rates in bytes per second."""
    place = {link: number for number, link in enumerate(replay.rates)}
    crossed = [(place[link], channel) for channel, path in enumerate(replay.paths) for link in pairwise(path)]
    rows, columns = zip(*crossed, strict=True) if crossed else ((), ())
    shape = (len(place), len(replay.paths))
    uses = csr_array((np.ones(len(crossed)), (np.array(rows, int), np.array(columns, int))), shape=shape)
    return uses, np.array(list(replay.rates.values()), dtype=float)


def fair_rates(uses: "csr_array", rates: Floats, active: npt.NDArray[np.bool_]) -> Floats:
    """(paths,) max-min fair rates in bytes per second of the paths in use, 0 for the others.

    Parameters
    ----------
    uses : (links, paths) sparse array
    rates : (links,) array
    active : (paths,) array of bool
    """
    found, rising, left, level = np.zeros(uses.shape[1]), active.copy(), rates.copy(), 0.0
    while rising.any():
        crossing = uses @ rising.astype(float)
        used = crossing > 0
        room = np.full(len(rates), np.inf)
        room[used] = left[used] / crossing[used]
        rise = max(float(room.min()), 0.0)
        level += rise
        left[used] -= rise * crossing[used]
        full = room <= rise + ROUNDING * (rise + level)
        stays = rising & (uses.T @ full.astype(float) > 0)
        found[stays] = level
        rising &= ~stays
    return found


def finish_times(replay: Replay) -> Floats:
    """(tasks,) seconds at which each task ends, all that waits for nothing having begun at 0."""
    return _Simulation(replay).run()


class _Simulation:
    """Between two events all rates are constant; an event is the end of some task."""

    def __init__(self, replay: Replay) -> None:
        self.tasks = replay.tasks
        self.uses, self.rates = incidence(replay)
        self.lines: list[deque[int]] = [deque() for _ in replay.paths]
        self.left = np.zeros(len(replay.paths))
        self.whole = np.ones(len(replay.paths))
        self.active = np.zeros(len(replay.paths), dtype=bool)
        self.timers: list[tuple[float, int]] = []
        self.waiting = np.array([len(task.after) for task in replay.tasks], dtype=int)
        self.next: list[list[int]] = [[] for _ in replay.tasks]
        for place, task in enumerate(replay.tasks):
            for each in task.after:
                self.next[each].append(place)
        self.ended = np.full(len(replay.tasks), np.nan)
        self.now = 0.0

    def run(self) -> Floats:
        for first in np.flatnonzero(self.waiting == 0):
            self._begin(int(first))
        while self.timers or self.active.any():
            speed = fair_rates(self.uses, self.rates, self.active)
            lasting = np.full(len(self.left), np.inf)
            lasting[self.active] = self.left[self.active] / speed[self.active]
            pause = float(lasting.min(initial=np.inf))
            if self.timers:
                pause = min(pause, self.timers[0][0] - self.now)
            pause = max(pause, 0.0)
            self.now += pause
            self.left -= speed * pause
            # What ends a rounding later ends now: without it, equal flows would be an event each.
            done = self.active & ((lasting <= pause) | (self.left <= ROUNDING * self.whole))
            over = [self.lines[channel].popleft() for channel in np.flatnonzero(done)]
            for channel in np.flatnonzero(done):
                self._next_message(int(channel))
            while self.timers and self.timers[0][0] <= self.now * (1 + ROUNDING):
                over.append(heapq.heappop(self.timers)[1])
            for place in over:
                self._end(place)
        return self.ended

    def _begin(self, place: int) -> None:
        task = self.tasks[place]
        if task.channel is None:
            heapq.heappush(self.timers, (self.now + task.seconds, place))
            return
        self.lines[task.channel].append(place)
        if not self.active[task.channel]:
            self._next_message(task.channel)

    def _next_message(self, channel: int) -> None:
        line = self.lines[channel]
        self.active[channel] = bool(line)
        self.left[channel] = self.whole[channel] = self.tasks[line[0]].bytes if line else 1.0

    def _end(self, place: int) -> None:
        self.ended[place] = self.now
        for each in self.next[place]:
            self.waiting[each] -= 1
            if self.waiting[each] == 0:
                self._begin(each)
