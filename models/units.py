"""Units in which formulations measure their instances, chosen in one way, and the coefficients that this leaves.

Solvers hold rows to an absolute tolerance and drop coefficients that are absolutely small, so a model does not count
seconds, bytes or utilities but numbers of a *unit* that suits its instance. A unit is

* **of data only**, by closed forms that are written down once. A bound that gets better must not move it: what a port
  means to a host model would change. Better bounds go into the bounds of variables;
* **by what matters**: halfway (:func:`between`) from what everything takes at least to the objective of a simple
  solution, and then something coarser for data of which these are 0. Not the largest figure there is, which a single
  slow device or dear option makes;
* **a power of two**, so that no digit is lost when figures are divided by it: rows hold in exact arithmetic where they
  hold for the data.

What is left of a wide range after that is looked at where models are built: :func:`ddlopt.models.linear.check_range`.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import RangeError, SolverError
from ddlopt.models.tolerances import TINY

LARGEST_COEFFICIENT = 1e12
"""Times the 1e-7 to which solvers hold integrality it is a hundred times what objectives are, in units."""
MOST_UNITS = 1e8
"""What takes longer may count as that long where this only weakens a row: nothing that has it is near an optimum."""
LARGEST_OF_EQUATIONS = 1e9
"""Of what is added up in equations: such a figure is rounded to 1e-7 already, to which solvers are to hold the row."""
FAR_APART = 1e5
"""Ratio of figures from which on the 1e-6 to which solvers hold rows may be a tenth of what the smallest ones allow."""
LARGEST_BIG_M = 1e4
"""Times the objective: a binary variable that is off by 1e-6, as solvers have it, then hides a hundredth of it."""

_ORDINARY = (1e-3, 1e3)
"""Sizes between which figures are counted as they are: far from what solvers drop, and from what they cannot add up."""


def unit_of(*estimates: float, parts: float = 1e3) -> float:
    """A unit of which the objective has about ``parts``: the power of two below that part of an estimate.

    Parameters
    ----------
    *estimates : float
        Of the objective, from data only, the best one first; those that are 0 say nothing, and neither do infinite
        ones. Where none says anything all data are 0, and the unit is 1.
    parts : float
        How many units the estimate is at least; it is less than twice as many.
    """
    for estimate in estimates:
        if 0 < estimate < math.inf:
            return 2.0 ** (math.frexp(max(estimate / parts, TINY))[1] - 1)
    return 1.0


def unless_ordinary(size: float) -> float:
    """1 where figures are of an ordinary size, a thousandth to a thousand, and else a unit near them.

    For programs of which the figures are counted as they are as a rule: solvers drop costs below 1e-9.
    """
    return 1.0 if _ORDINARY[0] < size < _ORDINARY[1] else unit_of(size, parts=1)


def between(low: float, high: float) -> float:
    """The geometric mean of a lower and an upper estimate, from which neither is far; the other one where one is 0.

    An upper estimate that is infinite says nothing.
    """
    if high == math.inf:
        return low
    return math.sqrt(low) * math.sqrt(high) if low > 0 and high > 0 else max(low, high)


def in_units(figures: Any, unit: float, simple: float = 0.0) -> npt.NDArray[np.float64]:
    """Figures in units, none more than ``MOST_UNITS``, or four times ``simple``: for rows that hold variables above.

    ``simple`` is the objective of a solution, in the instance's own figures: what exceeds it is in no optimum.
    """
    return np.minimum(np.asarray(figures, dtype=np.float64) / unit, max(MOST_UNITS, 4 * simple / unit))


def check_big_m(big: float, objective: float, name: str, what: str, largest: float = LARGEST_BIG_M) -> float:
    """``big``, if an integer program can have it as the M of its rows beside an ``objective`` of that size.

    Raises
    ------
    RangeError
        If it is more than ``largest`` times as large.
    """
    if objective > 0 and big > largest * objective:
        raise RangeError(
            f"'{name}': {what} may be {big / objective:.3g} times the objective, more than the {largest:g} for "
            "which rows with a big-M say anything; figures of the instance are too far apart for this formulation"
        )
    return big


def unread(problem: SolverError, figures: Iterable[float], name: str) -> SolverError:
    """What to raise where a solver's answer cannot be read: RangeError where ``figures`` are too far apart for it."""
    known = list(figures)
    least, most = min(known), max(known)
    if most <= FAR_APART * least:
        return problem
    return RangeError(
        f"'{name}': {problem}; figures from {least:.3g} to {most:.3g} are too far apart for this formulation: a "
        "solver's tolerance is much of the smallest; use another method"
    )
