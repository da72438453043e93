"""The best exchange times, by prices for sends and, where no price gives the budget, by the segments that are left."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.gossip.exchange.drift import drifts_away
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.exchange.kernels import dynamic_program as kernels
from ddlopt.solvers.gossip.exchange.search import Search, Trajectory, filled, spliced
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_MOST_LABELS = 100_000_000
"""Points of time by sends in a table, of 16 bytes each."""
# Twenty-four bytes each: half a gigabyte.
_MOST_ARCS = 20_000_000
_MOST_WORK = 20_000_000_000
"""Segments by sends, some twenty seconds."""


@dataclass(frozen=True)
class OptimalTimes(CertifiedMethod, uses=()):
    r"""Least staleness for a budget or for a price, at any length.

    *Price.* With a price :math:`\lambda` for each send, :math:`F(e) = \min_s F(s) + \lambda + c(s, e)` is the least
    cost of steps 0…e−1. A segment that is open at t is dropped as soon as it is proven that it is never better, however
    long it goes on (:func:`~ddlopt.solvers.gossip.exchange.kernels.dynamic_program.margins`): of models that keep
    moving few stay, and a step takes O(n d) with n of the order of the steps between sends. Where models are certain to
    drift away (:func:`~ddlopt.models.gossip.exchange.drift.drifts_away`) and norms are squared, it takes O(T d log T)
    for all steps together, with a queue.

    *Budget.* :math:`\max_\lambda F_\lambda - \lambda m` is a bound for at most m sends, and the optimum where the best
    path for that price has m sends. If none has, m lies between two vertices of the convex hull of staleness over
    sends; the better of two paths spliced together is exact for models that drift away. For others, segments on no
    path within the gap are dropped, and a dynamic program over (step, sends) takes what is left. If that is too large,
    the gap remains, and is reported.

    Parameters
    ----------
    drift : bool
        Use the queue where it is certain to be right.
    """

    drift: bool = True

    name: ClassVar[str] = "exchange-times"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.exchange.kernels.dynamic_program",)
    covers: ClassVar[type[Any]] = ExchangeInstance

    def find(self, instance: ExchangeInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Times and what is proven of them."""
        points = np.ascontiguousarray(instance.points - instance.points.mean(axis=0))
        monotone = self.drift and not instance.plain and drifts_away(points)
        trajectory = Trajectory(points, instance.plain, monotone, clock)
        if instance.send_cost is not None:
            return self._priced(instance, trajectory)
        return self._within_budget(instance, trajectory, clock)

    def _priced(self, instance: ExchangeInstance, trajectory: Trajectory) -> MethodOutput:
        assert instance.send_cost is not None
        found = trajectory.best(instance.send_cost)
        if found is None:
            even = np.arange(0, instance.size, max(1, instance.size // 100))[1:]
            return _found(instance, tuple(even.tolist()), None, {}, "time limit passed")
        return _found(instance, found[1], found[0], _figures(trajectory, 1))

    def _within_budget(self, instance: ExchangeInstance, trajectory: Trajectory, clock: Clock) -> MethodOutput:
        sends = instance.most_sends
        search = Search(trajectory, sends)
        ended = search.run()
        figures = {**_figures(trajectory, search.runs), "price": search.price}
        if search.few is search.many:
            return _found(instance, search.few.times, search.bound, figures)
        best = filled(search.few.times, sends, trajectory)
        mixed = spliced(search.few.times, search.many.times, sends, trajectory)
        if mixed and trajectory.staleness(mixed) < trajectory.staleness(best):
            best = mixed
        value = trajectory.staleness(best)
        clock.report(value, search.bound)
        figures["gap_by_price"] = 1.0 - search.bound / value if value > 0 else 0.0
        if not ended:
            return _found(instance, best, search.bound, figures, "time limit passed")
        if value - search.bound <= BOUND_MARGIN * value:
            return _found(instance, best, search.bound, figures)
        return self._between(instance, search, best, figures, clock)

    def _between(
        self, instance: ExchangeInstance, search: Search, best: tuple[int, ...], figures: dict[str, float], clock: Clock
    ) -> MethodOutput:
        """The dynamic program over the segments of paths that may be better than ``best``."""
        trajectory, price, sends = search.trajectory, search.price, search.sends
        points, plain, value = trajectory.points, trajectory.plain, trajectory.staleness(best)
        whole = value + price * sends
        slack = (value - search.bound) + BOUND_MARGIN * whole
        margin = kernels.margins(points, price, plain)
        cost, _, ends, _ = kernels.penalised(points, price, plain, margin, slack, trajectory.work_left)
        if clock.expired or not math.isfinite(cost[-1]):
            return _found(instance, best, search.bound, figures, "time limit passed")
        rest = kernels.to_go(points, price, plain, ends)
        arcs = kernels.near_arcs(points, price, plain, ends, cost, rest, cost[-1] + slack, _MOST_ARCS)
        starts, stops, values = arcs
        nodes = np.unique(np.concatenate(([0], starts, stops)))
        figures |= {"segments": float(len(starts)), "nodes": float(len(nodes))}
        work = min(_MOST_WORK, trajectory.work_left)
        if len(starts) >= _MOST_ARCS or len(nodes) * (sends + 2) > _MOST_LABELS or len(starts) * sends > work:
            return _found(instance, best, search.bound, figures, "too many segments are left to close the gap")
        numbered = (np.searchsorted(nodes, starts), np.searchsorted(nodes, stops))
        totals, before = kernels.layered(*numbered, values, len(nodes), sends)
        final = totals[-1]
        if nodes[-1] != instance.size or not final.min() < value:
            return _found(instance, best, value * (1 - BOUND_MARGIN), figures)
        column, place, path = int(final.argmin()), len(nodes) - 1, []
        while column > 1:
            place = int(before[place, column])
            path.append(int(nodes[place]))
            column -= 1
        return _found(instance, tuple(reversed(path)), float(final.min()), figures)


def _figures(trajectory: Trajectory, runs: int) -> dict[str, float]:
    return {"runs": float(runs), "open_segments": trajectory.open_segments, "queue": float(trajectory.monotone)}


def _found(
    instance: ExchangeInstance, times: tuple[int, ...], bound: float | None, figures: dict[str, float], said: str = ""
) -> MethodOutput:
    return MethodOutput(ExchangeTimes(instance=instance.name, times=times), figures, bound, message=said)
