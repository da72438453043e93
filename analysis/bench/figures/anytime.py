"""What a solve was worth at every moment: primal and dual gaps over time, and their integrals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ddlopt.analysis.bench.figures.statistics import Floats

Trace = Sequence[Sequence[float | None]]
"""Points (seconds, incumbent, bound) of one solve, in order of time; None for what was not known."""

INCUMBENT, BOUND = 1, 2
"""Places in a point of a trace."""


def primal_gap(value: ArrayLike, best: ArrayLike) -> Floats:
    r"""Gap of Berthold, between 0 and 1 for both senses.

    .. math::
        \gamma(z) = 0 \text{ if } z = z^* = 0, \quad 1 \text{ if } z z^* < 0, \quad
        \frac{|z - z^*|}{\max(|z|, |z^*|)} \text{ otherwise}

    1 where there is no value (NaN). Of a bound in place of z it is the dual gap.

    References
    ----------
    T. Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41 (2013),
    doi:10.1016/j.orl.2013.08.007.
    """
    z, reference = np.asarray(value, float), np.asarray(best, float)
    size = np.maximum(np.abs(z), np.abs(reference))
    gap = np.ones(size.shape)
    np.divide(np.abs(z - reference), size, out=gap, where=size > 0)
    gap[z == reference] = 0.0
    gap[(z * reference < 0) | np.isnan(z) | np.isnan(reference)] = 1.0
    return gap


def steps(trace: Trace, best: float, of: int = INCUMBENT) -> tuple[Floats, Floats]:
    """When the gap of a trace changes, and to what.

    Parameters
    ----------
    trace : Trace
    best : float
        Best known objective.
    of : {INCUMBENT, BOUND}
        The primal or the dual gap.

    Returns
    -------
    times_s, gaps : ndarray of float
        Before the first time the gap is 1. It never grows: what was known stays known.
    """
    known = [(point[0], point[of]) for point in trace if point[of] is not None]
    if not known:
        return np.empty(0), np.empty(0)
    points = np.array(known, float)
    order = np.argsort(points[:, 0], kind="stable")
    return points[order, 0], np.minimum.accumulate(primal_gap(points[order, 1], best))


def integral(trace: Trace, best: float, until_s: float, of: int = INCUMBENT) -> float:
    r"""Primal integral (of the incumbents) or dual integral (of the bounds), in seconds.

    .. math:: P(T) = \int_0^T p(t)\,dt = \sum_{i=1}^{m} p(t_{i-1}) (t_i - t_{i-1}), \qquad t_0 = 0,\ t_m = T

    where p(t) is 1 until there is an incumbent and :func:`primal_gap` of the latest one from then on; Berthold (2013).
    P(T) / T is the mean gap over the time.

    Parameters
    ----------
    trace, best, of
        As of :func:`steps`.
    until_s : float
        T; what came later does not count.
    """
    return area(*steps(trace, best, of), until_s)


def area(times_s: Floats, gaps: Floats, until_s: float) -> float:
    """Integral from 0 to ``until_s`` of a gap that is 1 at first and changes as :func:`steps` says."""
    early = times_s < until_s
    ends = np.concatenate([[0.0], np.maximum(times_s[early], 0.0), [until_s]])
    return float(np.sum(np.concatenate([[1.0], gaps[early]]) * np.diff(ends)))


def gap_at(trace: Trace, best: float, at_s: ArrayLike, of: int = INCUMBENT) -> Floats:
    """The gap of a trace at given times (seconds); 1 before there is anything. Parameters as of :func:`steps`."""
    return at_times(*steps(trace, best, of), at_s)


def at_times(times_s: Floats, gaps: Floats, at_s: ArrayLike) -> Floats:
    """Values at given times of a gap that is 1 at first and changes as :func:`steps` says."""
    place = np.searchsorted(times_s, np.asarray(at_s, float), side="right")
    return np.asarray(np.concatenate([[1.0], gaps])[place], float)
