"""Performance and data profiles, with bands from seeds.

Costs are a cube of problems × methods × seeds: infinite where a run failed, NaN where there was no such run. A method
that was not run on a problem has not solved it.

With one run of each method on each problem a profile is what its authors define. With several it is the profile to be
expected of one run each, drawn at random. It is estimated by the bootstrap, which also gives the band: in each draw
every method has as many runs on every problem as the most seeds there are, drawn among its own with replacement, and
the k-th runs of all methods are compared with each other. The band holds the part ``level`` of the draws at each
abscissa; it shows what comes from seeds alone, not from the choice of the problems.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ddlopt.analysis.bench.figures.statistics import Floats
from ddlopt.models.tolerances import ROUNDING


class Profile(NamedTuple):
    """Part of the problems by method and abscissa.

    ``at``: abscissae; ``share``, ``low`` and ``high``: methods × abscissae, the curve and the ends of its band. Where
    every method has one run a problem the band is the curve.
    """

    at: Floats
    share: Floats
    low: Floats
    high: Floats


def cube(runs: pd.DataFrame, cost: str, methods: list[str]) -> Floats:
    """The costs of runs as problems × methods × runs, in the order of the problems' first run.

    Parameters
    ----------
    runs : DataFrame
        With ``instance_digest``, ``label`` (the method) and the column of costs.
    cost : str
    methods : list of str
        Order of the second axis; runs of others are left out.
    """
    place = {method: number for number, method in enumerate(methods)}
    method = runs["label"].astype(str).map(place).to_numpy(float)
    problem, _ = pd.factorize(runs["instance_digest"])
    kept = ~np.isnan(method)
    keys = pd.DataFrame({"p": problem[kept], "m": method[kept].astype(int)})
    seed = keys.groupby(["p", "m"]).cumcount().to_numpy()
    costs = np.full((problem.max(initial=-1) + 1, len(methods), seed.max(initial=0) + 1), np.nan)
    costs[keys["p"], keys["m"], seed] = runs[cost].to_numpy(float)[kept]
    return costs


def medians(costs: ArrayLike) -> Floats:
    """Medians along the last axis without NaN; infinite where there is nothing else."""
    ordered = np.sort(np.asarray(costs, float), axis=-1)  # NaN goes last
    count = np.sum(~np.isnan(ordered), axis=-1)
    lower = np.take_along_axis(ordered, np.maximum(count - 1, 0)[..., None] // 2, axis=-1)[..., 0]
    upper = np.take_along_axis(ordered, count[..., None] // 2 % ordered.shape[-1], axis=-1)[..., 0]
    return np.where(count == 0, np.inf, np.where(count % 2 == 1, lower, (lower + upper) / 2))


def performance_profile(
    costs: ArrayLike, ratios: ArrayLike, seed: int = 0, draws: int = 200, level: float = 0.95
) -> Profile:
    r"""Performance profile of Dolan and Moré.

    .. math::
        \rho_s(\tau) = \frac{|\{p : r_{p,s} \le \tau\}|}{n_p}, \qquad r_{p,s} = \frac{t_{p,s}}{\min_{s'} t_{p,s'}}

    where the ratio of a method that failed is infinite; a problem that nobody solves counts in the denominator.

    Parameters
    ----------
    costs : array_like of float, problems × methods × seeds
        At least 0; a best cost of 0 has ratio 1 for those that share it.
    ratios : array_like of float
        The abscissae τ ≥ 1.
    seed, draws, level
        Of the bootstrap, and the part of its draws in the band.

    References
    ----------
    E. D. Dolan, J. J. Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming
    91 (2002), doi:10.1007/s101070100263.
    """
    return _with_band(np.asarray(costs, float), np.asarray(ratios, float), _ratio, seed, draws, level)


def data_profile(costs: ArrayLike, budgets: ArrayLike, seed: int = 0, draws: int = 200, level: float = 0.95) -> Profile:
    r"""Data profile after Moré and Wild: the part of the problems solved within a budget.

    .. math:: d_s(\kappa) = \frac{|\{p : t_{p,s} \le \kappa\}|}{n_p}

    Moré and Wild count function evaluations in units of n_p + 1 until the convergence test is met; here the costs are
    seconds until the target gap is met, so that the budget is one of time. Parameters as of
    :func:`performance_profile`.

    References
    ----------
    J. J. Moré, S. M. Wild, "Benchmarking derivative-free optimization algorithms", SIAM J. Optimization 20 (2009),
    doi:10.1137/080724083.
    """
    return _with_band(np.asarray(costs, float), np.asarray(budgets, float), _same, seed, draws, level)


def _same(costs: Floats) -> Floats:
    return costs


def _ratio(costs: Floats) -> Floats:
    best = costs.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = costs / best
    ratio[np.isinf(costs)] = np.inf
    ratio[(costs == best) & np.isfinite(costs)] = 1.0
    return np.asarray(ratio, float)


def _share(values: Floats, at: Floats) -> Floats:
    """Methods × abscissae: the part of the rows of each column that is at most the abscissa."""
    ordered = np.sort(values, axis=0)
    slack = at * (1 + ROUNDING)  # 0.3 / 0.1 is a ratio of 3
    counts = [np.searchsorted(ordered[:, method], slack, side="right") for method in range(values.shape[1])]
    return np.array(counts, float).reshape(values.shape[1], at.size) / max(1, len(values))


def _with_band(
    costs: Floats, at: Floats, transformed: Callable[[Floats], Floats], seed: int, draws: int, level: float
) -> Profile:
    count = np.sum(~np.isnan(costs), axis=-1)[..., None]
    ordered = np.where(count > 0, np.sort(costs, axis=-1), np.inf)  # the runs there are come first
    if count.max(initial=0) <= 1:
        share = _share(transformed(ordered[..., 0]), at)
        return Profile(at, share, share, share)
    rng = np.random.default_rng(seed)
    found = np.empty((draws, costs.shape[1], at.size))
    for draw in range(draws):
        chosen = (rng.random(costs.shape) * count).astype(int)
        sample = np.take_along_axis(ordered, chosen, axis=-1)
        found[draw] = _share(transformed(np.swapaxes(sample, 1, 2).reshape(-1, costs.shape[1])), at)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Profile(at, found.mean(axis=0), low, high)
