r"""Gavel's policies on clusters with several types of accelerator, each as one exact linear program.

Job i has throughput :math:`T_{ij}` on type j, takes :math:`s_i` accelerators whenever it runs, and gets a share
:math:`x_{ij}` of the time on type j:

.. math::
    \sum_i s_i x_{ij} \le n_j, \qquad \sum_j x_{ij} \le 1, \qquad x \ge 0 .

Gavel finds the least makespan by bisection on T, testing :math:`\sum_j T_{ij} x_{ij} \ge r_i / T` for the steps
:math:`r_i` that remain, until T is known within 5 %. With :math:`\lambda = 1 / T` the test is linear, so that one
program finds the optimum: maximise :math:`\lambda` subject to :math:`\sum_j T_{ij} x_{ij} \ge r_i \lambda`. Its
max-min policy is the same program with :math:`s_i \sum_j T_{ij} x_{ij} \ge w_i \bar T_i\, \lambda`, where
:math:`\bar T_i` is the throughput under an equal split.

For finish-time fairness it minimises :math:`\rho = \max_i (t_i + r_i / \sum_j T_{ij} x_{ij}) / b_i`, with the time
:math:`t_i` since a job's arrival and the time :math:`b_i` that it takes with its part of the cluster by itself: for
given :math:`\rho` that, too, is the same program. For cost it maximises :math:`\sum_{ij} T_{ij} x_{ij} / c_j`.

References
----------
D. Narayanan, K. Santhanam, F. Kazhamiaka, A. Phanishayee, M. Zaharia, "Heterogeneity-aware cluster scheduling policies
for deep learning workloads", OSDI 2020; ``scheduler/policies`` of its repository (MIT). That the bisection is needless
is ours.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack, vstack

from ddlopt.models.errors import OptionError, SolverError

Floats = npt.NDArray[np.float64]
_RATIO_TOL = 1e-3
"""Of the finish-time ratio: Gavel's convex program is solved to some 1e-4."""
_PLAIN = 1e-4
"""Levels from this to its inverse are solved for as they are; HiGHS takes figures of 1e-9 for none."""


class TimeShares(NamedTuple):
    """``shares`` (I, J) of the time; ``level``: the makespan in seconds, or the smallest normalised throughput."""

    shares: Floats
    level: float


def makespan_shares(throughputs: Floats, widths: Floats, accelerators: Floats, steps: Floats) -> TimeShares:
    """Time shares under which all jobs are done as early as possible.

    Parameters
    ----------
    throughputs : (I, J) array
        Steps per second of each job on each type, at least one of them positive.
    widths : (I,) array
        Accelerators that a job takes while it runs.
    accelerators : (J,) array
        How many there are of each type.
    steps : (I,) array
        Steps that remain, positive.

    Raises
    ------
    OptionError
        If a job has no throughput anywhere or shapes do not fit.
    SolverError
        If the linear program is not solved.
    """
    _check(throughputs, widths, accelerators, steps)
    # In units of the longest job alone the level is at most 1, and rows are of like size.
    alone = (steps / throughputs.max(axis=1)).max()
    shares, level = _largest_level(throughputs * alone / steps[:, None], widths, accelerators)
    return TimeShares(shares, float(alone / level))


def max_min_shares(throughputs: Floats, widths: Floats, accelerators: Floats, weights: Floats) -> TimeShares:
    """Time shares that maximise the smallest throughput relative to an equal split, per weight and accelerator.

    Parameters as in :func:`makespan_shares`; ``weights`` (I,) are positive.
    """
    _check(throughputs, widths, accelerators, weights)
    equal = throughputs @ (accelerators / accelerators.sum())
    return TimeShares(*_largest_level(throughputs * (widths / (equal * weights))[:, None], widths, accelerators))


def finish_time_shares(
    throughputs: Floats, widths: Floats, accelerators: Floats, steps: Floats, waited: Floats, alone: Floats
) -> TimeShares:
    """Time shares that minimise the largest time from arrival to end, relative to that with a part of the cluster.

    Parameters as in :func:`makespan_shares`; ``waited`` (I,) is the time since the arrival, at least 0, and ``alone``
    (I,) the whole time with a part of the cluster, positive. The level is found within a thousandth.
    """
    _check(throughputs, widths, accelerators, steps)
    _check(throughputs, widths, accelerators, alone)

    def shares_at(ratio: float) -> tuple[Floats, float]:
        need = steps / (ratio * alone - waited)
        return _largest_level(throughputs / need[:, None], widths, accelerators)

    low = float((waited / alone).max())
    high = max(2 * low, float(((waited + steps / throughputs.max(axis=1)) / alone).max()))
    found, level = shares_at(high)
    while level < 1:
        low, high = high, 2 * high
        found, level = shares_at(high)
    while high > low * (1 + _RATIO_TOL):
        middle = (low + high) / 2
        shares, level = shares_at(middle)
        if level >= 1:
            high, found = middle, shares
        else:
            low = middle
    return TimeShares(found, high)


def cost_shares(throughputs: Floats, widths: Floats, accelerators: Floats, costs: Floats) -> TimeShares:
    """Time shares of the largest sum of throughputs, each over the cost of its type; the level is that sum.

    Parameters as in :func:`makespan_shares`; ``costs`` (J,) are positive. As Gavel has it, throughputs of different
    jobs are added as they are.
    """
    _check(throughputs, widths, accelerators, np.ones(len(widths)))
    if not (costs > 0).all():
        raise OptionError(f"type {int(np.flatnonzero(~(costs > 0))[0])} costs nothing; costs must be positive")
    jobs, types = throughputs.shape
    rows = vstack(_shared(widths, types)).tocsr()
    worth = (throughputs / costs).ravel()
    scale = float(worth.max())
    limits = np.concatenate([np.ones(jobs), accelerators])
    answer = linprog(-worth / scale, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    if answer.status != 0:
        raise SolverError(f"time shares of {jobs} jobs on {types} types: {' '.join(answer.message.split())}")
    return TimeShares(answer.x.reshape(jobs, types).clip(0, 1), -float(answer.fun) * scale)


def _shared(widths: Floats, types: int) -> tuple[coo_array, coo_array]:
    """Rows of the time of each job, and of each type."""
    jobs = len(widths)
    row, column = np.divmod(np.arange(jobs * types), types)
    every = np.arange(jobs * types)
    time = coo_array((np.ones(jobs * types), (row, every)), shape=(jobs, jobs * types))
    return time, coo_array((widths[row], (column, every)), shape=(types, jobs * types))


def _check(throughputs: Floats, widths: Floats, accelerators: Floats, wanted: Floats) -> None:
    jobs, types = throughputs.shape
    if widths.shape != (jobs,) or wanted.shape != (jobs,) or accelerators.shape != (types,):
        raise OptionError(f"throughputs are {jobs} x {types}; widths and steps must be {jobs} long, types {types}")
    for name, bad in (
        ("throughput on no type", ~(throughputs > 0).any(axis=1)),
        ("a width or number of steps that is not positive", (widths <= 0) | (wanted <= 0)),
    ):
        if bad.any():
            raise OptionError(f"job {int(np.flatnonzero(bad)[0])} has {name}")


def _largest_level(rates: Floats, widths: Floats, accelerators: Floats) -> tuple[Floats, float]:
    """Maximise the smallest ``sum_j rates[i, j] x[i, j]``."""
    jobs, types = rates.shape
    time, room = _shared(widths, types)
    every = np.arange(jobs * types)
    fastest = rates.max(axis=1)
    most = float(fastest.min())  # no level is higher
    if _PLAIN <= most <= 1 / _PLAIN:
        fastest, most = np.ones(jobs), 1.0
    reached = coo_array(((-rates / fastest[:, None]).ravel(), (every // types, every)), shape=(jobs, jobs * types))
    level = coo_array(np.concatenate([np.zeros(jobs + types), most / fastest])[:, None])
    rows = hstack([vstack([time, room, reached]), level]).tocsr()
    limits = np.concatenate([np.ones(jobs), accelerators, np.zeros(jobs)])
    cost = np.zeros(jobs * types + 1)
    cost[-1] = -1
    answer = linprog(cost, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    if answer.status != 0 or not answer.x[-1] > 0:
        raise SolverError(f"time shares of {jobs} jobs on {types} types: {' '.join(answer.message.split())}")
    return answer.x[:-1].reshape(jobs, types).clip(0, 1), float(answer.x[-1]) * most
