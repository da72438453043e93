"""Methods against each other on the same problems: wins, ties, losses, and whether chance explains them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ddlopt.analysis.bench.figures.statistics import Floats
from ddlopt.models.tolerances import OBJECTIVE_TOL


class Pair(NamedTuple):
    """How one method did against another: problems won, tied and lost, and the p-value of the paired test."""

    wins: int
    ties: int
    losses: int
    p_value: float


def compare(costs: ArrayLike, others: ArrayLike, tie: float = OBJECTIVE_TOL) -> Pair:
    r"""Wins, ties and losses, and the Wilcoxon signed-rank test of the paired differences.

    The test ranks :math:`|d_p|`, :math:`d_p = a_p - b_p`, over the problems that are no ties, and asks whether the sum
    of the ranks of positive differences could be due to chance if the differences were symmetric around 0 (two-sided).

    Parameters
    ----------
    costs, others : array_like of float
        One cost a problem, at least 0, smaller is better; infinite where a method failed, NaN where one of both was not
        run, and such a problem is left out. A failure beats no success, two failures are a tie; among the differences
        those of a failure have the largest rank.
    tie : float

    Returns
    -------
    Pair
        With a p-value of 1 if there are ties only, NaN without problems.

    References
    ----------
    F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945), doi:10.2307/3001968;
    calculated by ``scipy.stats.wilcoxon``.
    """
    a, b = np.asarray(costs, float), np.asarray(others, float)
    both = ~(np.isnan(a) | np.isnan(b))
    difference = _differences(a[both], b[both], tie)
    if not difference.size:
        return Pair(0, 0, 0, float("nan"))
    wins, losses = int(np.sum(difference < 0)), int(np.sum(difference > 0))
    p_value = 1.0
    if wins + losses:
        from scipy.stats import wilcoxon

        p_value = float(wilcoxon(difference[difference != 0]).pvalue)
    return Pair(wins, len(difference) - wins - losses, losses, p_value)


def _differences(a: Floats, b: Floats, tie: float) -> Floats:
    finite = np.concatenate([a[np.isfinite(a)], b[np.isfinite(b)]])
    failure = 2 * float(finite.max(initial=0.0)) + 1
    a, b = np.where(np.isinf(a), failure, a), np.where(np.isinf(b), failure, b)
    tied = np.abs(a - b) <= tie * np.maximum(1.0, np.maximum(a, b))
    # Rounding must not decide which of two equal differences ranks higher.
    return np.asarray(np.where(tied, 0.0, np.round(a - b, 12)), float)


def holm(p_values: ArrayLike) -> Floats:
    r"""P-values corrected for their number by Holm's step-down method.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\{1, (m - j + 1)\, p_{(j)}\}

    with the m p-values in rising order. NaN stays, and does not count.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian J. Statistics 6 (1979).
    """
    values = np.asarray(p_values, float)
    corrected = np.full(values.shape, np.nan)
    (known,) = np.nonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * values[order]))
    return corrected


def wins(costs: ArrayLike, tie: float = OBJECTIVE_TOL) -> NDArray[Any]:
    """On how many problems each method is best, ties included; costs are problems × methods, infinite for failures."""
    table = np.asarray(costs, float)
    best = table.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(invalid="ignore"):
        close = table - best <= tie * np.maximum(1.0, table)
    return np.asarray(np.sum(np.isfinite(table) & close, axis=0))
