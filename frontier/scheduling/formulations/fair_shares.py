"""Shares of time instead of whole slots: a convex relaxation with the utilities as they are."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy import sparse

from ddlopt.frontier.scheduling.formulations.concave import sum_of_utilities
from ddlopt.frontier.scheduling.prices.lagrangian import PricedJobs
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j, upper_envelope
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import FEASIBILITY_TOL, SOLVER_TOL

Floats = npt.NDArray[np.float64]


class TimeShare(NamedTuple):
    """A job has ``width`` workers for ``share`` of the time of slots ``start`` to ``end - 1``."""

    job: int
    width: int
    start: int
    end: int
    share: float


@dataclass(frozen=True)
class FairShares(Covering):
    r"""The relaxation in which jobs divide time between widths, places are one pool, and nothing is whole.

    Between two neighbouring arrivals or deadlines all slots are identical. With interval k of :math:`L_k` slots, and
    :math:`x_{iwk}` the share of it in which job i has w workers,

    .. math::
        \max \sum_i u_i(p_i) - e \sum_{iwk} w L_k x_{iwk}, \qquad
        p_i \le 1, \quad p_i \le \frac{1}{F_i} \sum_{wk} L_k \hat\varphi_i(w)\, x_{iwk},

    .. math::
        \sum_w x_{iwk} \le 1 \quad \forall i, k, \qquad \sum_{iw} w\, l_{ir}\, x_{iwk} \le C_r \quad \forall k, r,

    or :math:`\max \min_i p_i`. Widths are those at the corners of the concave envelope of progress, without latency
    only the least and the largest (:func:`~ddlopt.models.scheduling.fastest.corner_widths`); :math:`\hat\varphi` is the
    progress at the placement and bandwidth that suit it best, C what all servers have together, e the least price of a
    worker's energy. A utility that is not concave counts as its concave envelope, v p, or 0 if the job cannot finish
    even alone. The program relaxes every instance that is maximised: its value is at least every schedule's.

    Ports
    -----
    ``share``
        Variable: :math:`x_{iwk}`, in the order of :attr:`Columns.shares`.
    ``part``
        Variable: :math:`p_i`.
    ``constraints[0]``
        Capacity rows, divided by :math:`C_r`, in the order of :attr:`Columns.rows`; rows that nobody can fill are left
        out.
    ``constraints[1]``
        Progress rows (equations).
    ``smallest`` : objective ``max_min``
        Variable: the smallest part.
    ``objective``
        Sum of utilities less the price of energy, or the smallest part, to be maximised.

    References
    ----------
    The model is ours, in the manner of Gavel's time shares (D. Narayanan et al., OSDI 2020).
    """

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Times: a job that must finish has no concave utility."""
        if (reason := refusal(instance)) is not None:
            return reason
        if instance.sense != "maximize":
            return f"objective '{instance.objective}' is no concave function of progress"
        return None

    def problem(self, instance: SchedulingInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        columns = Columns(instance)
        share = cp.Variable(len(columns.shares), nonneg=True, name="share")
        part = cp.Variable(len(instance.jobs), name="part")
        rows = [
            columns.used @ share <= np.ones(len(columns.rows)),
            part == columns.progress @ share,  # the solver does better than with <=
            columns.at_once @ share <= 1,
            part <= 1,
        ]
        if instance.goal.counts_least_part:
            smallest = cp.Variable(name="smallest")
            return cp.Problem(cp.Maximize(smallest), [*rows, smallest <= part])
        goal = sum_of_utilities([instance.jobs[i].utility for i in columns.hopeful], part[columns.hopeful])
        if columns.energy.any():
            goal = goal - columns.energy @ share
        return cp.Problem(cp.Maximize(goal), rows)

    def read(self, problem: cp.Problem, instance: SchedulingInstance) -> list[TimeShare]:
        """The shares of a solved ``problem`` that are worth mentioning, by job and time."""
        value = problem.var_dict["share"].value
        if value is None:
            raise SolverError("the problem has no values; solve it first")
        found = zip(Columns(instance).shares, np.clip(value, 0.0, 1.0).tolist(), strict=True)
        return [one._replace(share=share) for one, share in found if share > SOLVER_TOL]

    def prices(self, problem: cp.Problem, instance: SchedulingInstance) -> Floats:
        """(T, R) what a unit of each of the pool's resources is worth in each slot; zeros if unsolved."""
        cluster = pool(instance)
        found = np.zeros((instance.slots, len(cluster.capacity)))
        dual = problem.constraints[0].dual_value
        if dual is not None:
            rows = Columns(instance).rows
            prices = np.maximum(0.0, np.nan_to_num(np.asarray(dual).reshape(len(rows)))).tolist()
            for (start, end, resource), price in zip(rows, prices, strict=True):
                found[start:end, resource] = price / (cluster.capacity[resource] * (end - start))
        return found

    def bound(self, problem: cp.Problem, instance: SchedulingInstance) -> float:
        """Upper bound on the objective of every schedule, from the prices of a solved ``problem`` alone.

        The solver's value is not one: it is right up to tolerances only. Prices are; what each job gains most at them
        is calculated anew (:class:`~ddlopt.frontier.scheduling.prices.lagrangian.PricedJobs`).
        """
        return PricedJobs(instance).answer(self.prices(problem, instance)).bound


class Columns:
    """Data of the relaxation.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        jobs = instance.jobs
        cuts = sorted({slot for i, job in enumerate(jobs) for slot in (job.arrival, instance.last_slot(i))})
        self.intervals = list(pairwise(cuts))
        """(first slot, slot after the last) between events, at some of which nobody may be there."""
        place = {start: k for k, (start, _) in enumerate(self.intervals)}
        self.shares: list[TimeShare] = []
        """What each column is, the share left 0."""
        rates: list[float] = []
        intervals: list[int] = []
        known: dict[object, list[tuple[int, float]]] = {}
        for i, job in enumerate(jobs):
            key = job.timing, job.min_workers, job.max_workers, tuple(instance.demand[i])
            if key not in known:
                known[key] = _corners(instance, i)
            for k in range(place[job.arrival], place.get(instance.last_slot(i), len(self.intervals))):
                start, end = self.intervals[k]
                for width, rate in known[key]:
                    self.shares.append(TimeShare(i, width, start, end, 0.0))
                    rates.append(rate * (end - start) / job.minibatches)
                    intervals.append(k)
        job_of = np.array([share.job for share in self.shares], dtype=np.int64)
        workers = np.array([share.width for share in self.shares], dtype=np.float64)
        length = np.array([share.end - share.start for share in self.shares], dtype=np.float64)
        every = np.arange(len(self.shares))
        self.progress = sparse.csr_array((rates, (job_of, every)), shape=(len(jobs), len(every)))
        """(I, columns) part of the mini-batches wanted that is done."""
        self.energy: Floats = workers * length * instance.energy_price_per_j * least_energy_j(instance)
        """(columns,) least price of the energy."""
        alone = np.bincount(job_of, np.array(rates) * (workers == _widest(job_of, workers)), minlength=len(jobs))
        self.hopeful = [
            i for i, job in enumerate(jobs) if job.utility.concave or alone[i] >= float(DONE) * (1 - FEASIBILITY_TOL)
        ]
        """Jobs that some schedule may make worth something."""
        pairs, row = np.unique(np.stack([job_of, intervals]), axis=1, return_inverse=True)
        self.at_once = sparse.csr_array((np.ones(len(every)), (row.ravel(), every)), shape=(pairs.shape[1], len(every)))
        """(rows, columns) 1 for the widths of one job in one interval."""
        self.rows, self.used = self._capacity(instance, job_of, workers, np.array(intervals))

    def _capacity(
        self,
        instance: SchedulingInstance,
        job_of: npt.NDArray[np.int64],
        width: Floats,
        interval: npt.NDArray[np.int64],
    ) -> tuple[list[tuple[int, int, int]], sparse.csr_array]:
        """(first slot, slot after the last, resource) of each row, and (rows, columns) the part of it that is used."""
        cluster, count = pool(instance), len(self.intervals)
        blocks, rows = [], []
        for resource, capacity in enumerate(cluster.capacity.tolist()):
            need = width * cluster.demand[job_of, resource] / capacity
            table = sparse.csr_array((need, (interval, np.arange(len(width)))), shape=(count, len(width)))
            most = np.zeros((len(instance.jobs), count))  # by the widest of each job
            np.maximum.at(most, (job_of, interval), need)
            scarce = np.flatnonzero(most.sum(axis=0) > 1)
            blocks.append(table[scarce])
            rows += [(*self.intervals[k], resource) for k in scarce.tolist()]
        return rows, sparse.csr_array(sparse.vstack(blocks))


def _widest(job_of: npt.NDArray[np.int64], width: Floats) -> Floats:
    """(columns,) the largest width of the column's job, which is its fastest."""
    largest = np.zeros(job_of.max(initial=0) + 1)
    np.maximum.at(largest, job_of, width)
    return largest[job_of]


def _corners(instance: SchedulingInstance, place: int) -> list[tuple[int, float]]:
    """(width, mini-batches per slot) at the corners of the concave envelope of a job's fastest progress, 0 apart."""
    widths = np.array([0, *instance.jobs[place].widths])
    rates = np.array([0.0, *fastest_rates(instance, place)])
    return [(int(widths[k]), float(rates[k])) for k in upper_envelope(widths, rates)[1:]]
