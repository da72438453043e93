"""Plans of single jobs that know what changes lose and how long runs are: what the best are worth at prices by slot."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import kept_kernels as kernels
from ddlopt.frontier.scheduling.prices.job_plans import PlanAnswer, utilities_of
from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.tolerances import BOUND_MARGIN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROOM = 20_000
"""Beginnings of plans at one width kept in memory for one job."""
_FINEST, _COARSEST = 2**12, 2**6
"""Steps of progress of the look ahead."""
_CELLS = 2**22
"""Of the table of that look: 32 MB."""
_LISTED = 2**14
"""Steps where plans are listed, in four times as much memory: rounding makes them look better than they are."""


class KeptPlanPricing:
    r"""The relaxation in which every job may take any workers in any slot of its window, for a price, but keeps them.

    As :class:`~ddlopt.frontier.scheduling.prices.job_plans.PlanPricing`, with plans as they are: what a job loses where
    it goes on after a pause or with another number of workers is taken off its progress, and runs are as long as they
    have to be. With prices :math:`\lambda_{tr} \ge 0` every schedule has at most the objective

    .. math::
        \sum_{tr} \lambda_{tr} C_r + \sum_i \max_{w_i}
        \Bigl[u_i\Bigl(\min\bigl(1, \tfrac{1}{F_i} \textstyle\sum_t \varphi_i(w_{it})
        (1 - \delta_i\,[\text{i changes in t}])\bigr)\Bigr) - \sum_t w_{it} \Bigl(e + \sum_r \lambda_{tr}
        l_{ir}\Bigr)\Bigr]

    over the plans of job i that keep its widths for as long as they must be kept. Moves to other servers at the same
    width are left out of what is lost, which only helps jobs. The best plan of each job is found exactly
    (:func:`~ddlopt.frontier.scheduling.prices.kept_kernels.best_kept_plan`).

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility`` and without types. Where places matter, that is relaxed.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        if instance.objective != "utility":
            raise ValueError(f"the objective is {instance.objective!r}, not 'utility'")
        self.instance = instance
        cluster = pool(instance)
        self.capacity: Floats = cluster.capacity
        self.demand: Floats = cluster.demand
        self.worker_cost = instance.energy_price_per_j * least_energy_j(instance)
        """Least cost of a worker's energy in a slot."""
        self._utilities = utilities_of(instance)
        self._rates = [fastest_rates(instance, place) for place in range(len(instance.jobs))]
        self._choices = [self._choices_of(place) for place in range(len(instance.jobs))]

    def _choices_of(self, place: int) -> tuple[Ints, Floats, Floats]:
        """Widths that make more progress than all smaller ones, in a slot or in one with a change, and both."""
        job, whole = self.instance.jobs[place], self._utilities.needed[place] or 1.0
        left = self.instance.part_after_change(place)
        found, best = [], (0.0, 0.0)
        for width, rate in zip(job.widths, self._rates[place], strict=True):
            part = rate / job.minibatches
            both = min(part, whole), min(part * left, whole)
            if both[0] > best[0] or both[1] > best[1]:
                found.append((width, *both))
                best = max(best[0], both[0]), max(best[1], both[1])
        columns = list(zip(*found, strict=True))
        return np.array(columns[0], dtype=np.int64), np.array(columns[1]), np.array(columns[2])

    # The slack is a thousandth of the gap that exact methods end at by default, so that it costs them nothing.
    def answer(self, prices: Floats, slack: float = 1e-8, room: int = _ROOM, finest: int = _FINEST) -> PlanAnswer:
        """Bound and plans at ``prices`` (T, R) >= 0; each plan may be off by ``slack`` times the worth of its job.

        What it may be off by is part of the bound, and so are beginnings of plans beyond ``room``, which are dropped:
        the coarser the look ahead, ``finest`` steps at most, the more are kept, and the more those dropped may be off.
        """
        income = float(prices.sum(axis=0) @ self.capacity)
        return self.answer_to_costs(self.costs(prices), income, slack, room, finest)

    def costs(self, prices: Floats) -> list[Floats]:
        """Of every job, (T, W) what each of its ``widths`` costs at ``prices`` (T, R)."""
        by_worker = self.demand @ prices.T + self.worker_cost
        return [np.outer(row, widths) for row, (widths, *_) in zip(by_worker, self._choices, strict=True)]

    @property
    def widths(self) -> list[Ints]:
        """Of every job, (W,) those that do more than all smaller ones."""
        return [widths for widths, *_ in self._choices]

    @property
    def parts(self) -> list[Floats]:
        """Of every job, (W,) what it does in a slot at each of its ``widths``, as a part of all that it wants."""
        return [parts for _, parts, _ in self._choices]

    def answer_to_costs(
        self, costs: Sequence[Floats], income: float, slack: float, room: int, finest: int = _FINEST
    ) -> PlanAnswer:
        """The same where widths have costs of their own, by job (T, W) >= 0, of which schedules pay ``income``.

        With costs of widths that are more than so many workers' the bound is that of plans of jobs and patterns of
        slots together: the income of a slot is what the dearest pattern costs, widths of jobs that fit.
        """
        instance = self.instance
        values = np.zeros(len(instance.jobs))
        widths = np.zeros((len(instance.jobs), instance.slots), dtype=np.int64)
        total = paid = 0.0
        for i, job in enumerate(instance.jobs):
            window = slice(job.arrival, instance.last_slot(i))
            mine = np.ascontiguousarray(costs[i][window])
            values[i], most, widths[i, window] = kernels.best_kept_plan(
                self._utilities,
                i,
                mine,
                *self._choices[i],
                job.least_run_slots,
                self._steps(i, finest),
                slack * job.utility.value,
                room,
            )
            total += most
            paid += float(mine.max(axis=1).sum())
        margin = BOUND_MARGIN * (total + 2 * income + paid)
        return PlanAnswer(total + income + margin, values, widths)

    def near_best(self, costs: Sequence[Floats], values: Floats, slack: float, most: int) -> list[Ints] | None:
        """Of every job the (m, T) widths of all plans that are worth, less cost, at least ``values[job] - slack``.

        None if that takes more than ``most`` beginnings of plans. Prices certify a bound, from which each job takes
        what its plan is worth less than the best: plans that take more are in no schedule better than the rest of it.
        Plans that go on after the job has finished are left out; without that it has as much, for no more.

        Parameters
        ----------
        costs : list of (T, W) array
            Of each job's widths.
        values : (I,) array
            No less than what the best plan of each job is worth.
        """
        found = []
        for i, job in enumerate(self.instance.jobs):
            window = slice(job.arrival, self.instance.last_slot(i))
            mine = np.ascontiguousarray(costs[i][window])
            choices = self._choices[i]
            bar = values[i] - slack - BOUND_MARGIN * (abs(values[i]) + float(mine.max(axis=1).sum()))
            complete, plans = kernels.near_best_plans(
                self._utilities, i, mine, *choices, job.least_run_slots, self._steps(i, _LISTED), bar, most
            )
            if not complete:
                return None
            most -= len(plans)
            widths = np.zeros((len(plans), self.instance.slots), dtype=np.int64)
            widths[:, window] = plans
            found.append(widths)
        return found

    def _steps(self, job: int, finest: int = _FINEST) -> int:
        span = self.instance.last_slot(job) - self.instance.jobs[job].arrival
        return min(
            finest, max(_COARSEST, finest * (_CELLS // _FINEST) // ((span + 1) * (len(self._choices[job][0]) + 1)))
        )

    def part(self, job: int, widths: Ints) -> float:
        """Part of its mini-batches that a job does at (T,) ``widths`` at best, less what changes lose; at most 1."""
        done, before, begun = 0.0, 0, False
        for width in widths.tolist():
            if width:
                rate = self._rates[job][width - self.instance.jobs[job].min_workers]
                done += rate * self.instance.part_after_change(job) if begun and width != before else rate
                begun = True
            before = width
        return min(done / self.instance.jobs[job].minibatches, 1.0)

    @property
    def work(self) -> int:
        """Of one answer, roughly, in units of a nanosecond."""
        return sum(
            (self.instance.last_slot(i) - job.arrival) * (len(self._choices[i][0]) + 1) * self._steps(i)
            for i, job in enumerate(self.instance.jobs)
        )
