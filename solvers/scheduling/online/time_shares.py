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
    row, column = np.divmod(np.arange(jobs * types), types)
    every = np.arange(jobs * types)
    time = coo_array((np.ones(jobs * types), (row, every)), shape=(jobs, jobs * types))
    room = coo_array((widths[row], (column, every)), shape=(types, jobs * types))
    reached = coo_array((-rates.ravel(), (row, every)), shape=(jobs, jobs * types))
    level = coo_array(np.concatenate([np.zeros(jobs + types), np.ones(jobs)])[:, None])
    rows = hstack([vstack([time, room, reached]), level]).tocsr()
    limits = np.concatenate([np.ones(jobs), accelerators, np.zeros(jobs)])
    cost = np.zeros(jobs * types + 1)
    cost[-1] = -1
    answer = linprog(cost, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    if answer.status != 0 or not answer.x[-1] > 0:
        raise SolverError(f"time shares of {jobs} jobs on {types} types: {' '.join(answer.message.split())}")
    return answer.x[:-1].reshape(jobs, types).clip(0, 1), float(answer.x[-1])
