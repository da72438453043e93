"""Ranks, densities and numbers of bits as real numbers: a convex program on the timeline."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy import sparse

from ddlopt.models.compression.levels.arrays import Floats, LevelArrays, arrays_of
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.levels.prices import LevelPrices
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.units import unit_of

_LOG4 = float(np.log(4.0))


@dataclass(frozen=True)
class ContinuousLevels(Covering):
    r"""Levels between the lowest and the highest that are allowed, whole or not.

    With ready times R, encoding :math:`e_i(l_i) = a_i + a'_i l_i`, wire :math:`c_i(l_i) = b_i + b'_i l_i` and the time
    :math:`F_i` at which gradient i is there,

    .. math::
        \min F_n \quad\text{s.t.}\quad
        F_i \ge R_i + \sum_{k \le i} e_k(l_k) + c_i(l_i), \quad F_i \ge F_{i-1} + c_i(l_i), \quad
        \sum_i E_i(l_i) \le E, \quad \underline{l}_i \le l_i \le \overline{l}_i,

    or :math:`\min \sum_i E_i(l_i)` with :math:`F_n` within the time budget. E is convex: a curve of points is the
    largest of the lines through neighbours, an exponential one the exponential function. The encoding so far is a
    variable of its own, so that every row is short. Levels are counted in parts of their range, times in the time that
    all of them at their highest take, errors in the budget or, where they are minimised, in those of the levels that
    keep the time budget at the same part of their ranges.

    The multiplier of the budget is the price of accuracy, in seconds for a unit of error; those of the first rows say
    which gradient's readiness the time depends on. :meth:`prices` gives both, and
    :func:`~ddlopt.models.compression.levels.prices.price_bound` turns any such prices into a bound.

    Parameters
    ----------
    chords : bool
        Join the allowed levels of exponential curves by lines. The program is then linear, and its value that of the
        best :func:`~ddlopt.models.compression.levels.prices.price_bound`; without, it is at most that.

    Ports
    -----
    ``part``
        Variable: :math:`(l_i - \underline{l}_i) / (\overline{l}_i - \underline{l}_i)`.
    ``there``
        Variable: :math:`F_i`, in units of :attr:`Units.time_s`.
    ``error``
        Variable: at least :math:`E_i(l_i)`, in units of :attr:`Units.error`.
    ``constraints[0]``
        The rows with :math:`R_i`.
    ``constraints[1]``
        The budget, divided by its unit; of time at most twice what the highest levels take, which binds nothing.
    ``objective``
        :math:`F_n` or the error in units, to be minimised.

    References
    ----------
    The budget is that of I. Markov et al., "L-GreCo: Layerwise-adaptive gradient compression for efficient
    data-parallel deep learning", MLSys 2024, whose choices are discrete; the timeline that of Z. Wang et al., Espresso,
    EuroSys 2023. The convex program is ours.
    """

    chords: bool = False

    covers: ClassVar[type[Instance]] = LevelInstance

    def problem(self, instance: LevelInstance) -> cp.Problem:
        """The program; see the class for its ports.

        Raises
        ------
        InfeasibleError
            If the time budget is less than the least time: that of the lowest levels, and times grow with the levels.
        """
        arrays = arrays_of(instance)
        units, count = units_of(arrays), len(arrays.ready_s)
        width = arrays.highest - arrays.lowest
        part = cp.Variable(count, name="part", bounds=[np.zeros(count), np.sign(width)])
        there = cp.Variable(count, name="there")
        error = cp.Variable(count, name="error")
        encode = arrays.encode.at(arrays.lowest) / units.time_s
        wire = arrays.wire.at(arrays.lowest) / units.time_s
        sending = wire + cp.multiply(arrays.wire.rate * width / units.time_s, part)
        ready = arrays.ready_s / units.time_s + np.cumsum(encode)
        rows: list[Any] = []
        if arrays.encode.rate.any():
            encoded = cp.Variable(count, name="encoded")
            step = sparse.eye_array(count, format="csr") - sparse.eye_array(count, k=-1, format="csr")
            rows.append(step @ encoded == cp.multiply(arrays.encode.rate * width / units.time_s, part))
            first = there >= ready + encoded + sending
        else:
            first = there >= ready + sending
        if count > 1:
            rows.append(there[1:] >= there[:-1] + sending[1:])
        rows += self._curves(arrays, units, part, error)
        time, total = there[count - 1], cp.sum(error)
        if arrays.goal == "time":
            return cp.Problem(cp.Minimize(time), [first, total <= arrays.budget / units.error, *rows])
        # A budget that all levels keep is no smaller a number for it: a row with 1e12 beside ones misleads solvers.
        longest = min(arrays.budget, 2 * arrays.time_s(arrays.highest))
        return cp.Problem(cp.Minimize(total), [first, time <= longest / units.time_s, *rows])

    def _curves(self, arrays: LevelArrays, units: "Units", part: Any, error: Any) -> list[Any]:
        """Rows that hold the errors above their curves."""
        curved = np.array([], dtype=np.int64) if self.chords else np.flatnonzero(arrays.scale > 0)
        pieces = _pieces(arrays, curved, units)
        lines = sparse.csr_array((pieces.slope, (np.arange(len(pieces.gradient)), pieces.gradient)),
                                 shape=(len(pieces.gradient), len(arrays.counts)))  # fmt: skip
        rows = [error[pieces.gradient] >= lines @ part + pieces.start] if len(pieces.gradient) else []
        if len(curved):
            fall = _LOG4 * (arrays.highest - arrays.lowest)[curved]
            start = np.log(arrays.scale[curved] / units.error) - _LOG4 * arrays.lowest[curved]
            rows.append(error[curved] >= cp.exp(start - cp.multiply(fall, part[curved])))
        return rows

    def read(self, problem: cp.Problem, instance: LevelInstance) -> Floats:
        """(n,) levels of a solved ``problem``."""
        value = problem.var_dict["part"].value
        if value is None:
            raise SolverError("the problem has no values; solve it first")
        arrays = LevelArrays(instance)
        found: Floats = arrays.lowest + np.clip(value, 0.0, 1.0) * (arrays.highest - arrays.lowest)
        return found

    def value(self, problem: cp.Problem, instance: LevelInstance) -> float:
        """The objective of a solved ``problem``, in the instance's unit and right up to the solver's tolerances."""
        units = units_of(LevelArrays(instance))
        return float(problem.value) * (units.time_s if instance.goal == "time" else units.error)

    def prices(self, problem: cp.Problem, instance: LevelInstance) -> LevelPrices:
        """Multipliers of a solved ``problem``: what each row of the timeline and the error cost; zeros if unsolved."""
        arrays = LevelArrays(instance)
        units = units_of(arrays)
        rows, budget = (constraint.dual_value for constraint in problem.constraints[:2])
        if rows is None or budget is None:
            return LevelPrices(np.zeros(len(arrays.counts)), 0.0)
        found = np.maximum(0.0, np.nan_to_num(np.asarray(rows, dtype=np.float64)))
        if arrays.goal == "time":
            return LevelPrices(found, max(0.0, float(budget)) * units.time_s / units.error)
        return LevelPrices(found * units.error / units.time_s, 1.0)


class Units(NamedTuple):
    """What times and errors are counted in."""

    time_s: float
    error: float


def units_of(arrays: LevelArrays) -> Units:
    """See :class:`ContinuousLevels`."""
    time = arrays.time_s(arrays.highest)
    error = arrays.budget
    if arrays.goal == "error":
        error = float(arrays.error_of(_alike_levels(arrays)).sum())
    # Powers of two, of which a time or an error is one or two.
    return Units(unit_of(time, parts=1.0), unit_of(error, float(arrays.errors[:, 0].sum()), parts=1.0))


def _alike_levels(arrays: LevelArrays) -> Floats:
    """(n,) levels, all at the largest part of their ranges with which they keep the time budget."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        at = arrays.lowest + middle * (arrays.highest - arrays.lowest)
        low, high = (middle, high) if arrays.fits(arrays.time_s(at)) else (low, middle)
    return arrays.lowest + low * (arrays.highest - arrays.lowest)


class _Pieces(NamedTuple):
    """Lines under curves: gradient, error where part is 0, and change of error over the whole range."""

    gradient: npt.NDArray[np.int64]
    start: Floats
    slope: Floats


def _pieces(arrays: LevelArrays, curved: npt.NDArray[np.int64], units: Units) -> _Pieces:
    """The lines through neighbouring levels of all gradients but the ``curved``; one that is level where none are."""
    found: list[tuple[int, float, float]] = []
    left_out = set(curved.tolist())
    for k, count in enumerate(arrays.counts.tolist()):
        if k in left_out:
            continue
        levels, errors = arrays.levels[k, :count], arrays.errors[k, :count] / units.error
        slopes = np.diff(errors) / np.diff(levels)
        starts = errors[:-1] + slopes * (levels[0] - levels[:-1])
        width = levels[-1] - levels[0]
        found += [(k, start, slope * width) for start, slope in zip(starts.tolist(), slopes.tolist(), strict=True)]
        if count == 1:
            found.append((k, float(errors[0]), 0.0))
    gradients, starts_of, slopes_of = zip(*found, strict=True) if found else ((), (), ())
    return _Pieces(np.array(gradients, dtype=np.int64), np.array(starts_of, dtype=float), np.array(slopes_of))
