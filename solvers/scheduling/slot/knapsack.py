"""One width for every job within the capacity of a slot: the multiple-choice knapsack."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.pool import Pool
from ddlopt.models.tolerances import FEASIBILITY_TOL, ROUNDING
from ddlopt.solvers.scheduling.slot.knapsack_kernels import choose_widths


@dataclass(frozen=True)
class Effort:
    """How fine a table of the knapsack may be."""

    finest: int = 1000
    """Amounts are multiples of a part of the unit, a thousandth at the finest; odder ones come from measurements."""
    parts: int = 10**6
    """Of the capacity: a longer table takes seconds in every slot."""


_EFFORT = Effort()


def best_widths(
    gains: Sequence[npt.ArrayLike], costs: npt.ArrayLike, capacity: int
) -> tuple[float, npt.NDArray[np.int64]]:
    r"""Widths of largest total gain: :math:`\max \sum_i g_i(w_i)` subject to :math:`\sum_i c_i w_i \le C`.

    A table over the capacity (time I C N at worst) is filled for the jobs that need one: not at all if all jobs fit at
    their best, and not for jobs of one width, of the weight that most of those have, which are sorted.

    Parameters
    ----------
    gains : sequence of (N_i + 1,) arrays, or (I, N + 1) array
        ``gains[i][w]`` for width w; -inf where job i may not have it. Width 0 is always allowed.
    costs : (I,) array of int
        What each worker of a job takes of the capacity.
    capacity : int

    Returns
    -------
    (float, (I,) array)
        The largest total and the widths.

    Raises
    ------
    ValueError
        For negative costs or capacity, costs that are not whole, or gains that are NaN or endless.

    Examples
    --------
    >>> value, widths = best_widths([[0, 4, 5], [0, 3, 7]], [1, 1], 3)
    >>> value, widths.tolist()
    (11.0, [1, 2])
    """
    rows = [np.asarray(row, dtype=np.float64) for row in gains]
    taken = np.asarray(costs)
    if len(taken) != len(rows):
        raise ValueError(f"{len(rows)} rows of gains, but {len(taken)} costs")
    if not rows:
        return 0.0, np.zeros(0, np.int64)
    flat = np.concatenate(rows)
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    if capacity < 0 or (taken < 0).any() or (taken != np.floor(taken)).any():
        raise ValueError("costs and capacity must be whole and at least 0")
    if (np.diff(starts) == 0).any() or not np.isfinite(flat[starts[:-1]]).all() or not (flat < np.inf).all():
        raise ValueError("gains must be numbers, and finite for width 0")
    value, widths = choose_widths(starts, flat, taken.astype(np.int64), int(capacity))
    return float(value), widths


def whole_costs(cluster: Pool) -> tuple[npt.NDArray[np.int64], int] | str:
    """What a worker of each job takes of the one resource that can run short, and its capacity, in whole parts.

    Resources that all jobs cannot use up together have to be left out of the pool beforehand; see
    :func:`scarce_resources`. Without any left, all jobs take 0.

    Returns
    -------
    ((I,) array, int) or str
        Or, in words, why there is no such form.
    """
    resources = len(cluster.capacity)
    if resources == 0:
        return np.zeros(len(cluster.demand), np.int64), 0
    if resources > 1:
        return f"{resources} resources can run short, and a knapsack has one capacity"
    each, place = np.unique(cluster.demand[:, 0], return_inverse=True)
    amounts = [Fraction(float(amount)).limit_denominator(_EFFORT.finest) for amount in each]
    parts = math.lcm(*(amount.denominator for amount in amounts))
    exact = all(math.isclose(amount, given) for amount, given in zip(amounts, each, strict=True))
    capacity = math.floor(float(cluster.capacity[0]) * parts * (1 + FEASIBILITY_TOL))
    if not exact or capacity > _EFFORT.parts:
        return "workers take amounts that are no multiples of a common part"
    return np.array([int(amount * parts) for amount in amounts], np.int64)[place], capacity


def scarce_resources(cluster: Pool, widest: npt.NDArray[np.int64]) -> Pool:
    """The pool without the resources that are not used up even if every job has its ``widest`` (I,) width."""
    scarce = widest @ cluster.demand > cluster.capacity * (1 + ROUNDING)
    return Pool(cluster.demand[:, scarce], cluster.capacity[scarce], cluster.exact)
