"""The best period by branch and bound over intervals, certified without a solver."""

import heapq
from math import ceil, floor, inf, isfinite
from typing import NamedTuple

from ddlopt.models.gossip.period.time_to_target import TimeToTarget

# Of branch and bound over one variable; what is proven by then is the bound.
_MOST_INTERVALS = 100_000


class BestPeriod(NamedTuple):
    """A period, its time, and what no period is faster than."""

    period: float
    seconds: float
    bound: float
    intervals: int


def best_period(times: TimeToTarget, communication_s: float, mixing: float, whole: bool, gap: float) -> BestPeriod:
    """Periods of at least 1 step; ``seconds`` are infinite where none reaches the target.

    Intervals are split where their bounds are least, until the best period found is within ``gap`` of all bounds. Those
    beyond some period are out because computing alone takes longer there.
    """
    period, seconds = 1.0, times.seconds(1.0, communication_s, mixing)
    if not isfinite(seconds):
        return BestPeriod(1.0, inf, times.alone(mixing), 0)
    high = times.last(seconds, mixing)
    bound, at = times.bound(1.0, high, communication_s, mixing)
    heap, done = [(bound, 1.0, high, at)], 0
    settled = inf
    while heap and done < _MOST_INTERVALS:
        bound, low, high, at = heapq.heappop(heap)
        if bound >= seconds * (1.0 - gap):
            settled = min(settled, bound)
            break
        done += 1
        for tried in {float(floor(at)), float(ceil(at))} if whole else {at}:
            took = times.seconds(max(1.0, tried), communication_s, mixing)
            if took < seconds:
                period, seconds = max(1.0, tried), took
        for part in _halves(low, high, at, whole):
            heapq.heappush(heap, _interval(times, communication_s, mixing, part))
    else:
        settled = min((each[0] for each in heap), default=inf)
    return BestPeriod(period, seconds, min(settled, seconds), done)


def _interval(
    times: TimeToTarget, communication_s: float, mixing: float, part: tuple[float, float]
) -> tuple[float, float, float, float]:
    bound, at = times.bound(*part, communication_s, mixing)
    return bound, *part, at


def _halves(low: float, high: float, at: float, whole: bool) -> list[tuple[float, float]]:
    """Two parts; of whole periods without what lies between."""
    if whole:
        if high <= low:
            return []
        middle = min(max(floor(at), low), high - 1.0)
        return [(low, middle), (middle + 1.0, high)]
    # Next to where the bound is attained, unless that is an end.
    middle = at if low + 0.1 * (high - low) < at < high - 0.1 * (high - low) else (low + high) / 2.0
    return [(low, middle), (middle, high)]
