"""Figures that a table of runs is summed up in: gaps, times to a target, shifted geometric means, PAR-k.

The functions are pure and know nothing of a store. A table of runs is a frame with one row a run and the columns of
``runs`` in the store that a function names, besides ``sense`` and ``best_objective`` of the instance.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING

Floats = NDArray[np.float64]

FAILURES = ("error", "crashed", "killed", "out_of_memory", "no_solution")
"""Statuses of runs that came to nothing."""

PROOFS = ("infeasible", "unbounded")
"""Statuses of runs that proved that there is no answer: solved without an objective."""

REFERENCE = "reference"
"""Status of figures for another network: nothing to rank."""


def gap_to_best(objective: ArrayLike, best: ArrayLike, maximise: ArrayLike = False) -> Floats:
    r"""How far an objective is from the best known one, relative to the objective, as every gap is.

    .. math:: g = \frac{z - z^*}{|z|} \text{ (minimised)}, \qquad g = \frac{z^* - z}{|z|} \text{ (maximised)}

    Parameters
    ----------
    objective, best : array_like of float
        NaN where there is none; shapes that broadcast.
    maximise : array_like of bool
        Where the objective is maximised.

    Returns
    -------
    ndarray of float
        At least 0: what is better than the best known has gap 0. NaN where a figure is missing; infinite where the
        objective is 0 and the best known is not.
    """
    z, reference = np.asarray(objective, float), np.asarray(best, float)
    return _relative(np.where(maximise, reference - z, z - reference), np.abs(z))


def gap_to_bound(objective: ArrayLike, bound: ArrayLike, maximise: ArrayLike = False) -> Floats:
    r"""How far an objective is from a bound, relative to the objective: what solvers call the MIP gap.

    .. math:: g = \frac{z - b}{|z|} \text{ (minimised)}, \qquad g = \frac{b - z}{|z|} \text{ (maximised)}

    The same as :func:`ddlopt.solvers.contracts.relative_gap`, for arrays; parameters and result as of
    :func:`gap_to_best`, but NaN where the objective is 0 and the bound does not meet it.
    """
    gap = gap_to_best(objective, bound, maximise)
    return np.where(np.isinf(gap), np.nan, gap)


def _relative(distance: Floats, size: Floats) -> Floats:
    distance, size = np.atleast_1d(distance), np.broadcast_to(size, np.shape(np.atleast_1d(distance)))
    known = ~(np.isnan(distance) | np.isnan(size))
    gap = np.full(distance.shape, np.nan)
    gap[known] = np.inf
    np.divide(distance, size, out=gap, where=known & (size > 0))
    gap[known & (distance <= 0)] = 0.0
    return gap


def shifted_geometric_mean(values: ArrayLike, shift: float = 1.0) -> float:
    r"""Geometric mean of times that small ones do not rule.

    .. math:: \Bigl(\prod_{i=1}^n (t_i + s)\Bigr)^{1/n} - s = \exp\Bigl(\frac1n \sum_i \ln(t_i + s)\Bigr) - s

    Parameters
    ----------
    values : array_like of float
        At least 0.
    shift : float
        s > 0, in the unit of the values. With s = 0 it is the geometric mean; the larger s, the nearer to the
        arithmetic one.

    Returns
    -------
    float
        NaN of no values.

    Raises
    ------
    OptionError
        If the shift or a value is negative.

    References
    ----------
    T. Achterberg, "Constraint Integer Programming", PhD thesis, TU Berlin, 2007, appendix A.3.
    """
    times = np.asarray(values, float)
    if shift < 0 or np.any(times < 0):
        raise OptionError("a shifted geometric mean is of values and with a shift that are not negative")
    if not times.size:
        return float("nan")
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(times + shift))) - shift)


def penalised(time_s: ArrayLike, solved: ArrayLike, limit_s: ArrayLike, factor: float = 1.0) -> Floats:
    """Times of runs, where those that did not solve count as ``factor`` times their limit.

    Parameters
    ----------
    time_s : array_like of float
    solved : array_like of bool
    limit_s : array_like of float
        NaN where there was no limit: such a failure counts as ``factor`` times the longest time of all.
    factor : float
    """
    times, limits = np.asarray(time_s, float), np.asarray(limit_s, float)
    finite = times[np.isfinite(times)]
    longest = float(finite.max()) if finite.size else float("nan")
    return np.where(np.asarray(solved, bool), times, factor * np.where(np.isnan(limits), longest, limits))


def par(time_s: ArrayLike, solved: ArrayLike, limit_s: ArrayLike, k: float = 10.0) -> float:
    r"""PAR-k, the penalised average runtime: a run that did not solve counts as k times its time limit.

    .. math:: \mathrm{PAR}_k = \frac1n \Bigl(\sum_{i \text{ solved}} t_i + \sum_{i \text{ not}} k T_i\Bigr)

    Parameters are those of :func:`penalised`; NaN of no runs.

    References
    ----------
    F. Hutter, H. H. Hoos, K. Leyton-Brown, T. Stützle, "ParamILS: an automatic algorithm configuration framework",
    J. Artificial Intelligence Research 36 (2009), doi:10.1613/jair.2861.
    """
    times = penalised(time_s, solved, limit_s, k)
    return float(times.mean()) if times.size else float("nan")


def best_known(runs: pd.DataFrame) -> pd.Series:
    """Best objective of each instance: of the library's and of the runs', whichever is better.

    Parameters
    ----------
    runs : DataFrame
        With ``instance_digest``, ``status``, ``objective``, ``sense``, ``best_objective``. Results of another network
        (``reference``) do not count.

    Returns
    -------
    Series
        By ``instance_digest``; NaN where nothing is known.
    """
    sign = np.where(runs["sense"] == "maximize", -1.0, 1.0)
    found = sign * runs["objective"].to_numpy(float)
    found[(runs["status"] == REFERENCE).to_numpy()] = np.nan
    table = pd.DataFrame({
        "instance_digest": runs["instance_digest"].to_numpy(),
        "found": np.fmin(found, sign * runs["best_objective"].to_numpy(float)),
        "sign": sign,
    })  # fmt: skip
    grouped = table.groupby("instance_digest", observed=True)
    best: pd.Series = grouped["found"].min() * grouped["sign"].first()
    return best


def within(gaps: ArrayLike, target: float) -> NDArray[np.bool_]:
    """Which gaps are at most ``target``, but for rounding; NaN is not."""
    return np.asarray(np.asarray(gaps, float) <= target * (1 + IMPROVEMENT_TOL) + ROUNDING)


def solved(runs: pd.DataFrame, target: float | None = None) -> NDArray[np.bool_]:
    """Which runs count as solved.

    Parameters
    ----------
    runs : DataFrame
        With ``status`` and, for a target, ``gap_to_best``.
    target : float, optional
        Largest gap to the best known that counts; without it every answer does.

    Returns
    -------
    ndarray of bool
        Proofs that there is no solution are solved; ``reference`` figures and failures are not.
    """
    status = runs["status"].astype(str)
    answered = ~status.isin((*FAILURES, *PROOFS, REFERENCE))
    if target is not None:
        answered = answered & within(runs["gap_to_best"], target)
    return np.asarray(answered | status.isin(PROOFS))


def time_to_target(
    trace: Sequence[Sequence[float | None]], best: float, target: float, maximise: bool = False
) -> float:
    """Seconds until the incumbent's gap to the best known is at most ``target``; infinite if it never is.

    Parameters
    ----------
    trace : sequence of (seconds, incumbent, bound)
        None for what was not known.
    best, target : float
    maximise : bool
    """
    known = np.array([(point[0], point[1]) for point in trace if point[1] is not None], float).reshape(-1, 2)
    reached = known[within(gap_to_best(known[:, 1], best, maximise), target), 0]
    return float(reached.min()) if reached.size else float("inf")
