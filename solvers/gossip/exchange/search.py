"""Least staleness with a budget of sends, by a price for each: a search over prices, and what it leaves."""

import heapq
import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ddlopt.models.gossip.exchange.instance import Floats, Ints, staleness
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.gossip.exchange.kernels import dynamic_program as kernels
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    guesses: int = 12
    """Prices guessed before only those are tried that meet on the convex hull, which always ends."""
    close: float = 1.25
    """Ratio of the sends of two prices from which on the hull is followed: guesses between them gain nothing."""
    subsampled: int = 20_000
    """Points that are enough for a first price, which is corrected anyway."""
    long: int = 200
    """Steps a send beyond which the first price comes from a part of the points."""
    exponent: float = 2.5
    """Exponent of the price against sends until two runs tell: 3 for drift, 2 for a random walk."""
    numbers_per_s: float = 1e9
    """Coordinates that are compared in a second, or fewer, so that a run ends within the limit."""


_EFFORT = Effort()


def times_of(before: Ints) -> tuple[int, ...]:
    """Sends on the best path to the end, from the last send of every prefix."""
    found, place = [], int(before[-1])
    while place > 0:
        found.append(place)
        place = int(before[place])
    return tuple(reversed(found))


@dataclass
class Trajectory:
    """Points and how to find the best sends for a price.

    Parameters
    ----------
    points : (T, d) array
    plain : bool
    monotone : bool
        Segments satisfy the quadrangle inequality, and norms are squared.
    clock : Clock
    """

    points: Floats
    plain: bool
    monotone: bool
    clock: Clock
    open_segments: float = 0.0
    """Of the last run, on average."""
    _sums: tuple[Floats, Floats] | None = field(default=None, repr=False)

    def staleness(self, times: tuple[int, ...]) -> float:
        """From the definition."""
        return math.fsum(staleness(self.points, times, self.plain).tolist())

    @property
    def work_left(self) -> float:
        """Distances that there is time for."""
        return float(self.clock.left_s * _EFFORT.numbers_per_s / (self.points.shape[1] + 8))

    def best(self, price: float) -> tuple[float, tuple[int, ...]] | None:
        """Least staleness with ``price`` for each send, and the sends; None if the time is up before."""
        if self.monotone:
            if self._sums is None:
                self._sums = kernels.prefix_sums(self.points)
            cost, before = kernels.monotone_penalised(self.points, *self._sums, price)
        else:
            margin = kernels.margins(self.points, price, self.plain)
            cost, before, _, self.open_segments = kernels.penalised(
                self.points, price, self.plain, margin, 0.0, self.work_left
            )
            if not math.isfinite(cost[-1]):
                return None
        return float(cost[-1]), times_of(before)


@dataclass(frozen=True)
class Vertex:
    """Best sends for some price: a point of the convex hull of staleness over the number of sends."""

    times: tuple[int, ...]
    staleness: float
    price: float

    @property
    def sends(self) -> int:
        """How many."""
        return len(self.times)


@dataclass
class Search:
    """The two vertices of the hull around a budget, and the bound that their price gives.

    Parameters
    ----------
    trajectory : Trajectory
    sends : int
        The budget.
    """

    trajectory: Trajectory
    sends: int
    bound: float = 0.0
    price: float = 0.0
    runs: int = 0
    few: Vertex = field(init=False)
    many: Vertex = field(init=False)

    def __post_init__(self) -> None:
        steps = len(self.trajectory.points)
        self.few = Vertex((), self.trajectory.staleness(()), math.inf)
        self.many = Vertex(tuple(range(1, steps)), 0.0, 0.0)

    def run(self) -> bool:
        """Until the vertices meet, or have nothing between them; False if the time was up before."""
        price: float | None = self._first_price()
        while self.few.sends < self.sends < self.many.sends:
            slope = (self.few.staleness - self.many.staleness) / (self.many.sends - self.few.sends)
            if price is None or not self.many.price < price < self.few.price:
                price = slope
            found = None if self.trajectory.clock.expired else self.trajectory.best(price)
            if found is None:
                return False
            value, times = found
            self.runs += 1
            # Both parts may be far more than their difference, which then is of rounding.
            bound = value * (1 - ROUNDING) - price * self.sends
            if bound > self.bound:
                self.bound, self.price = bound, price
            at = Vertex(times, self.trajectory.staleness(times), price)
            ends = (self.few.sends, self.many.sends)
            if at.sends <= self.sends and at.sends > ends[0]:
                self.few = at
            elif at.sends >= self.sends and at.sends < ends[1]:
                self.many = at
            elif price == slope:
                break
            if at.sends == self.sends:
                self.few = self.many = at
                self.bound, self.price = max(self.bound, bound), price
            price = self._guess(at)
        else:
            exact = self.few if self.few.sends == self.sends else self.many
            self.few = self.many = exact
            if not self.runs:
                self.bound = exact.staleness
        return True

    def _guess(self, at: Vertex) -> float | None:
        """A price between those known; None for the one of the hull's edge."""
        if self.runs >= _EFFORT.guesses or (self.few.sends and self.many.sends <= _EFFORT.close * self.few.sends):
            return None
        exponent = _EFFORT.exponent
        if self.few.sends and self.many.price > 0:
            exponent = math.log(self.few.price / self.many.price) / math.log(self.many.sends / self.few.sends)
        return float(at.price * ((at.sends + 1) / (self.sends + 1)) ** min(max(exponent, 0.5), 6.0))

    def _first_price(self) -> float:
        steps, points = len(self.trajectory.points), self.trajectory.points
        every = min(steps // _EFFORT.subsampled, steps // (_EFFORT.long * (self.sends + 1)) + 1)
        if every >= 2 and not self.trajectory.monotone:
            some = np.ascontiguousarray(points[::every])
            coarse = Search(Trajectory(some, self.trajectory.plain, False, self.trajectory.clock), self.sends)
            coarse.run()
            if coarse.price > 0:
                return coarse.price * every
        even = tuple(np.unique(np.arange(1, self.sends + 1) * steps // (self.sends + 1)).tolist())
        return 1.5 * self.trajectory.staleness(even) / (self.sends + 1)


def spliced(few: tuple[int, ...], many: tuple[int, ...], sends: int, trajectory: Trajectory) -> tuple[int, ...]:
    """The best path with ``sends`` sends that begins as one of two paths and ends as the other.

    Where the quadrangle inequality holds and both are best for one price, so is one of these: some segment of the path
    with fewer sends encloses one of the other path with as many before it as are wanted, and there the two spliced
    paths together cost no more than the two (B. Schieber, "Computing a minimum weight k-link path in graphs with the
    concave Monge property", Journal of Algorithms 29, 1998, has faster methods for such paths).
    """
    steps = len(trajectory.points)
    totals = {}
    for path in (few, many):
        parts = staleness(trajectory.points, path, trajectory.plain)
        before = np.concatenate(([0.0], np.cumsum(parts)))
        bounds = (0, *path, steps)
        totals[path] = (bounds, [float(before[b]) for b in bounds], float(before[-1]))
    best: tuple[float, tuple[int, ...]] = (math.inf, ())
    for first, second in ((few, many), (many, few)):
        (head, spent, _), (tail, saved, whole) = totals[first], totals[second]
        for i in range(len(head) - 1):
            # Sends head[1..i], then those of the tail from j on, so that there are as many as wanted.
            j = len(tail) - 1 - (sends - i)
            if not 1 <= j < len(tail) or tail[j] <= head[i]:
                continue
            value = spent[i] + whole - saved[j] + _staleness_between(trajectory, head[i], tail[j])
            if value < best[0]:
                best = (value, (*head[1 : i + 1], *tail[j:-1]))
    return best[1]


def _staleness_between(trajectory: Trajectory, start: int, end: int) -> float:
    squares = ((trajectory.points[start:end] - trajectory.points[start]) ** 2).sum(axis=1)
    return float((np.sqrt(squares) if trajectory.plain else squares).sum())


def filled(times: tuple[int, ...], sends: int, trajectory: Trajectory) -> tuple[int, ...]:
    """More sends, up to a budget, in the middle of the segments with most staleness."""
    queue = [(-_staleness_between(trajectory, s, e), s, e) for s, e in pairwise((0, *times, len(trajectory.points)))]
    heapq.heapify(queue)
    found = list(times)
    while len(found) < sends and queue:
        _, s, e = heapq.heappop(queue)
        if e - s > 1:
            middle = (s + e) // 2
            found.append(middle)
            for part in ((s, middle), (middle, e)):
                heapq.heappush(queue, (-_staleness_between(trajectory, *part), *part))
    return tuple(sorted(found))
