"""Concave utilities as piecewise linear functions that are nowhere below them.

A model that maximises such an outer approximation has a bound that holds for the utility itself.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.utility import Capped, Fair, Logarithmic, LossCurve

Concave = Capped | Logarithmic | LossCurve | Fair
Vector = npt.NDArray[np.float64]

ERROR = 1e-5
"""Over-estimate that tangents are chosen for, relative to what the utility can still gain."""
# Tangents of one utility, each a row for every job that has it; the error reached is told.
_MOST = 4000
# Pieces shorter than this part of the range cannot be told apart by solvers (``ZERO_TOL``).
_SHORTEST = 1e-9


class Pieces(NamedTuple):
    """A concave piecewise linear function: ``base`` at ``low``, then ``lengths[k]`` of progress at ``slopes[k]``.

    ``error`` is the most by which it exceeds the utility, relative to what the utility gains over all pieces.
    """

    base: float
    low: float
    lengths: Vector
    slopes: Vector
    error: float

    def filled(self, part: float) -> Vector:
        """How much of each piece a part of the mini-batches takes, the first pieces first."""
        before = self.low + np.concatenate(([0.0], np.cumsum(self.lengths)))[:-1]
        filled: Vector = np.clip(part - before, 0.0, self.lengths)
        return filled

    def of(self, part: float) -> float:
        """Value at a part; constant after the last piece."""
        return self.base + float(self.slopes @ self.filled(part))


@lru_cache(maxsize=4096)
def outer_pieces(utility: Concave, low: float, high: float, step: float = 0.0, tangents: int | None = None) -> Pieces:
    r"""Pieces of a concave utility on [low, high]: tangents, or the utility itself where it is linear.

    The curvature of every utility here is :math:`u''(p) \propto -(c + p)^{-2k}`. Tangents at points equally far apart
    in :math:`\int \sqrt{-u''}` have nearly equal errors, so that the least number of them does; they touch at both
    ends.

    Parameters
    ----------
    utility : concave utility
    low, high : float
        Part of the mini-batches that is done already, and the largest within reach.
    step : float
        The least positive progress: what would happen strictly between low and low + step is of no interest, and the
        function is a chord there.
    tangents : int, optional
        Default: as many as :data:`ERROR` asks for.
    """
    base = float(utility.of(low))
    gain = float(utility.of(high)) - base
    if not (high > low and gain > 0):
        return Pieces(base, low, np.zeros(0), np.zeros(0), 0.0)
    first = min(low + step, high)
    if _is_linear(utility) or first == high:
        return Pieces(base, low, np.array([high - low]), np.array([gain / (high - low)]), 0.0)
    count = tangents or 64
    while True:
        lengths, slopes, worst = _tangents(utility, _points(utility, first, high, count))
        error = worst / gain
        if tangents is not None or error <= ERROR or count >= _MOST:
            break
        count = min(_MOST, max(count + 1, math.ceil(count * math.sqrt(error / ERROR) * 1.01)))
    if first > low:
        lengths = np.concatenate(([first - low], lengths))
        slopes = np.concatenate(([(float(utility.of(first)) - base) / (first - low)], slopes))
    return Pieces(base, low, *_without_slivers(lengths, slopes, _SHORTEST * (high - low)), error)


def tangents_at(utility: Concave, points: Vector) -> tuple[Vector, Vector]:
    """Lengths and slopes of the pieces of tangents at ``points``, from the least to the largest; no more than points.

    Points that hardly differ count once. A linear utility is one piece.
    """
    distinct = np.unique(points)
    distinct = distinct[np.concatenate(([True], np.diff(distinct) > _SHORTEST))]
    if _is_linear(utility) or len(distinct) == 1:
        return np.array([points.max() - points.min()]), np.array([utility.slope(float(points.min()))])
    lengths, slopes, _ = _tangents(utility, distinct)
    return lengths, slopes


def _is_linear(utility: Concave) -> bool:
    return isinstance(utility, Capped) or (isinstance(utility, Fair) and utility.alpha == 0)


def _points(utility: Concave, first: float, last: float, count: int) -> Vector:
    """``count`` points of contact (at least 2) from first to last, equally far apart in the root of the curvature."""
    match utility:
        case Logarithmic():
            offset, power = 1 / utility.curvature, 1.0
        case LossCurve():
            offset, power = 1 / utility.rate, 1.5
        case Fair():
            offset, power = utility.epsilon, (utility.alpha + 1) / 2
        case _:
            raise TypeError(f"{utility.kind} is linear")
    ends = np.array([offset + first, offset + last])
    if power == 1:
        low, high = np.log(ends).tolist()
        points: Vector = np.exp(np.linspace(low, high, max(2, count)))
    else:
        low, high = ((ends / ends[0]) ** (1 - power)).tolist()
        points = np.linspace(low, high, max(2, count)) ** (1 / (1 - power)) * ends[0]
    points -= offset
    points[0], points[-1] = first, last
    return points


def _tangents(utility: Concave, points: Vector) -> tuple[Vector, Vector, float]:
    """Lengths and slopes of the tangents at the points, and the most by which they exceed the utility."""
    values = np.array([float(utility.of(point)) for point in points.tolist()])
    slopes = np.array([utility.slope(point) for point in points.tolist()])
    drop, step = slopes[:-1] - slopes[1:], np.diff(points)
    # Where neighbouring tangents meet, as a distance from the left one's point.
    gap = np.divide(np.diff(values) - slopes[1:] * step, drop, out=step / 2, where=drop > 0)
    gap = np.clip(gap, 0.0, step)
    meets = points[:-1] + gap
    there = np.array([float(utility.of(point)) for point in meets.tolist()])
    worst = float(np.max(values[:-1] + slopes[:-1] * gap - there))
    return np.diff(np.concatenate((points[:1], meets, points[-1:]))), slopes, worst


def _without_slivers(lengths: Vector, slopes: Vector, shortest: float) -> tuple[Vector, Vector]:
    """The same with pieces that are too short given to the neighbour before, whose slope is no smaller."""
    kept_lengths: list[float] = []
    kept_slopes: list[float] = []
    for length, slope in zip(lengths.tolist(), slopes.tolist(), strict=True):
        if length > shortest or not kept_lengths:
            kept_lengths.append(length)
            kept_slopes.append(slope)
        else:
            kept_lengths[-1] += length
    return np.array(kept_lengths), np.array(kept_slopes)
