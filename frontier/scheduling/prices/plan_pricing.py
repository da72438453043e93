"""Whole plans of single jobs as choices: what the best of them are worth when workers have a price in every slot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import kept_kernels, plan_kernels
from ddlopt.frontier.scheduling.prices.fluid import Fluid
from ddlopt.frontier.scheduling.prices.offers import Offers, costs_of, offers_of, pools_of, workers_of
from ddlopt.frontier.scheduling.prices.priced_jobs import kernel_utility
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.models.tolerances import BOUND_MARGIN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Effort:
    """How exactly best plans are asked for where nothing else is said."""

    slack: float = 1e-8
    """What a plan may be off by, as a part of its job's worth: a thousandth of the gap that exact methods end at by
    default, so that it costs them nothing."""
    room: int = 50_000
    """Beginnings of plans kept for one job in a slot, at one width where plans are kept: 2 MB, and most jobs have far
    fewer."""


EFFORT = Effort()


@dataclass(frozen=True)
class PlanAnswer:
    """An upper bound on the objective of every schedule, and plans that jobs would choose at the prices.

    ``values`` (I,): worth less cost of each plan; ``offers`` (I, T): its offer in each slot, -1 for none; ``workers``
    (I, T, K): its workers by type, of which there is one where speeds depend on none.
    """

    bound: float
    values: Floats
    offers: Ints
    workers: Ints

    @property
    def widths(self) -> Ints:
        """(I, T) workers on all types together."""
        found: Ints = self.workers.sum(axis=2)
        return found


class PlanPricing:
    r"""The relaxation in which every job may take any *offer* in any slot of its window, for a price.

    An offer is a width on a class of types, at the pace of the slowest of the class (where types do not mix, a class is
    a type; where speeds depend on no type, there is one class of all servers). Its workers are on the cheapest types of
    the class that have room. With prices :math:`\lambda_{tkr} \ge 0` on resource r of type k in slot t, every schedule
    has at most the objective

    .. math::
        \sum_{tkr} \lambda_{tkr} C_{kr} + \sum_i \max_{o_i}
        \Bigl[u_i\Bigl(\min\bigl(1, \tfrac{1}{F_i} \textstyle\sum_t \varphi_i(o_{it})
        (1 - \delta_i\,[\text{i changes in t}])\bigr)\Bigr)
        - \sum_{tk} n_{itk} \Bigl(e_k + \sum_r \lambda_{tkr} l_{ir}\Bigr)\Bigr]

    over the plans of job i: an offer or none in each slot, with :math:`n_{itk}` workers on type k. Offers are whole
    widths where :class:`~ddlopt.frontier.scheduling.prices.lagrangian.PricedJobs` has fractions of them: a job that
    would like 4.5 slots has to do with four or five. The least such bound is that of the column generation over plans
    of jobs (Dantzig-Wolfe); on contended instances it closes most of the gap between the linear relaxation and the
    optimum.

    Where plans are *kept*, what a job loses in a slot in which it goes on after a pause or with another offer,
    :math:`\delta_i`, is taken off its progress, and runs are as long as they have to be; else :math:`\delta_i = 0`.
    Moves to other servers at the same width are left out of what is lost, which only helps jobs.

    The best plan of each job is found exactly, by
    :func:`~ddlopt.frontier.scheduling.prices.plan_kernels.best_plan`.

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility``. Where places matter, or jobs run in one piece, that is relaxed.
    keeps : bool, optional
        Whether plans are kept. Default: whether changes lose time or runs have a least length, and no speed depends on
        a type.

    Attributes
    ----------
    offers : list of Offers
        Of each job, those that do more than all narrower ones of their class.
    parts : list of (O,) array
        What each offer does in a slot, as a part of all that the job wants, which is the most that counts.
    """

    def __init__(self, instance: SchedulingInstance, keeps: bool | None = None) -> None:
        if not instance.goal.counts_utilities:
            raise ValueError(f"the objective is {instance.objective!r}, not 'utility'")
        self.instance = instance
        lasts = instance.changes.matter and not instance.accelerators.matter
        self.keeps = lasts if keeps is None else keeps
        self.cluster = pools_of(instance)
        self.capacity: Floats = self.cluster.capacity.ravel()
        """(K R,) of each type in turn."""
        self._utilities = utilities_of(instance)
        self._left = [instance.changes.left(i) if self.keeps else 1.0 for i in range(len(instance.jobs))]
        self.offers: list[Offers] = []
        self.parts: list[Floats] = []
        self._changed: list[Floats] = []
        for place in range(len(instance.jobs)):
            self._take_offers(place)

    def _take_offers(self, place: int) -> None:
        """Those of a job that do more than all narrower ones of their class, in a slot or in one with a change."""
        found = offers_of(self.instance, self.cluster, place)
        whole, done = self._utilities.needed[place] or 1.0, found.gains / self.instance.jobs[place].minibatches
        parts, changed = np.minimum(done, whole), np.minimum(done * self._left[place], whole)
        # Within a class both increase.
        same = found.of_class[1:] == found.of_class[:-1]
        less = (parts[1:] <= parts[:-1]) & (changed[1:] <= changed[:-1])
        useful = np.append(True, ~(same & less))
        self.offers.append(
            found._replace(of_class=found.of_class[useful], widths=found.widths[useful], gains=found.gains[useful])
        )
        self.parts.append(parts[useful])
        self._changed.append(changed[useful])

    @property
    def work(self) -> int:
        """Of one answer, roughly, in nanoseconds; there are more beginnings in long windows, and at many widths."""
        spans = [self.instance.last_slot(i) - job.arrival for i, job in enumerate(self.instance.jobs)]
        sizes = [len(own.widths) for own in self.offers]
        each = 100 if self.keeps else 25
        return sum(each * span * size * (100 + span) for span, size in zip(spans, sizes, strict=True))

    def worker_prices(self, job: int, prices: Floats) -> Floats:
        """(T, K) of a worker of a job by type, at ``prices`` (T, K R)."""
        by_type = prices.reshape(len(prices), *self.cluster.capacity.shape)
        found: Floats = by_type @ self.cluster.demand[job] + self.cluster.worker_cost
        return found

    def costs(self, prices: Floats) -> list[Floats]:
        """Of every job, (T, O) what each of its offers costs at ``prices`` (T, K R)."""
        rooms = self.cluster.rooms
        return [costs_of(own, rooms[i], self.worker_prices(i, prices)) for i, own in enumerate(self.offers)]

    def answer(self, prices: Floats, slack: float = EFFORT.slack, room: int = EFFORT.room) -> PlanAnswer:
        """Bound and plans at ``prices`` (T, K R) >= 0; each plan may be off by ``slack`` times the worth of its job.

        What it may be off by is part of the bound, and so are beginnings of plans beyond ``room``, which are dropped.
        """
        one_type = len(self.cluster.names) == 1
        income = float(prices.sum(axis=0) @ self.capacity)
        found = self.answer_to_costs(self.costs(prices), income, slack, room, ordered=one_type)
        for i, own in enumerate(self.offers):
            if one_type:
                found.workers[i, :, 0] = self.widths_of(i, found.offers[i])
            else:
                each = self.worker_prices(i, prices)
                found.workers[i] = workers_of(own, self.cluster.rooms[i], each, found.offers[i])
        return found

    def answer_to_costs(
        self,
        costs: Sequence[Floats],
        income: float,
        slack: float,
        room: int,
        ordered: bool = False,
    ) -> PlanAnswer:
        """The same where offers have costs of their own: by job (T, O) >= 0, of which schedules pay ``income`` at most.

        With costs of offers beyond those of their workers the bound is that of plans of jobs and patterns of slots
        together: the income of a slot is what the dearest pattern costs, offers of jobs that fit. Workers stay 0:
        nothing says on which types of its class they are. ``ordered``: whether every offer costs its width times a
        price of the slot.
        """
        instance = self.instance
        shape = len(instance.jobs), instance.slots
        values, chosen = np.zeros(shape[0]), np.full(shape, -1, dtype=np.int64)
        total = paid = 0.0
        for i, job in enumerate(instance.jobs):
            window = slice(job.arrival, instance.last_slot(i))
            mine, off = costs[i][window], slack * job.utility.value
            values[i], most, plan = self._best(i, mine, off, room, ordered)
            paid += float(mine[np.flatnonzero(plan >= 0), plan[plan >= 0]].sum())
            chosen[i, window] = plan
            total += most
        margin = BOUND_MARGIN * (total + 2 * income + paid)
        workers = np.zeros((*shape, len(self.cluster.names)), dtype=np.int64)
        return PlanAnswer(total + income + margin, values, chosen, workers)

    def _best(self, job: int, costs: Floats, slack: float, room: int, ordered: bool) -> tuple[float, float, Ints]:
        """Value, bound and (n,) offers of the best plan, at (n, O) costs in its window."""
        parts, changed, least = self.parts[job], self._changed[job], 1
        order = np.arange(len(costs))
        if self.keeps:
            least, ordered = self.instance.changes.least(job), False
        else:
            order = np.argsort(costs[:, 0] if ordered else (costs / parts).min(axis=1), kind="stable")
        mine = np.ascontiguousarray(costs[order])
        value, bound, plan = plan_kernels.best_plan(
            self._utilities, job, mine, parts, changed, least, self.keeps, ordered, slack, room
        )
        here = np.empty(len(order), dtype=np.int64)
        here[order] = plan
        return value, bound, here

    def near_best(self, costs: Sequence[Floats], values: Floats, slack: float, most: int) -> list[Ints] | None:
        """Of every job the (m, T) offers of all plans that are worth, less cost, at least ``values[job] - slack``.

        None if that takes more than ``most`` beginnings of plans. Prices certify a bound, from which each job takes
        what its plan is worth less than the best: plans that take more are in no schedule better than the rest of it.
        Plans that go on after the job has finished are left out; without that it has as much, for no more.

        Parameters
        ----------
        costs : list of (T, O) array
            Of each job's offers.
        values : (I,) array
            No less than what the best plan of each job is worth.
        """
        found = []
        for i, job in enumerate(self.instance.jobs):
            window = slice(job.arrival, self.instance.last_slot(i))
            mine = np.ascontiguousarray(costs[i][window])
            bar = values[i] - slack - BOUND_MARGIN * (abs(values[i]) + float(mine.max(axis=1).sum()))
            complete, plans = kept_kernels.near_best_plans(
                self._utilities, i, mine, self.parts[i], self._changed[i], job.least_run_slots, bar, most
            )
            if not complete:
                return None
            most -= len(plans)
            offers = np.full((len(plans), self.instance.slots), -1, dtype=np.int64)
            offers[:, window] = plans
            found.append(offers)
        return found

    def part(self, job: int, offers: Ints) -> float:
        """Part of its mini-batches that a job does with (T,) ``offers`` at best, less what changes lose; at most 1."""
        runs = np.flatnonzero(offers >= 0)
        gains = self.offers[job].gains[offers[runs]]
        if self.keeps and len(runs):
            goes_on = offers[runs] == offers[runs - 1]
            goes_on[0] = True
            gains = np.where(goes_on, gains, gains * self._left[job])
        return min(float(gains.sum()) / self.instance.jobs[job].minibatches, 1.0)

    def widths_of(self, job: int, offers: Ints) -> Ints:
        """Workers of ``offers``, of any shape; 0 where it is none."""
        found: Ints = np.append(self.offers[job].widths, 0)[offers]
        return found

    def offers_at(self, job: int, widths: Ints) -> Ints:
        """The offers of ``widths`` on the only class of types: each the widest that is no wider, which does as much."""
        found: Ints = np.searchsorted(self.offers[job].widths, widths, side="right") - 1
        return found


def utilities_of(instance: SchedulingInstance) -> plan_kernels.Utilities:
    """What progress is worth, as the kernels of plans take it."""
    worths = [kernel_utility(job.utility) for job in instance.jobs]
    kinds, values, shapes, offsets = (np.array(column) for column in zip(*worths, strict=True))
    return plan_kernels.Utilities(
        kinds=kinds.astype(np.int64),
        values=values.astype(np.float64),
        shapes=shapes.astype(np.float64),
        offsets=offsets.astype(np.float64),
        worths=np.array([job.utility.value for job in instance.jobs], dtype=np.float64),
        needed=np.array([float(DONE) if isinstance(job.utility, AllOrNothing) else 0.0 for job in instance.jobs]),
    )


def prices_of(found: Fluid) -> Floats:
    """(T, K R) prices of slots by those of the blocks of the relaxation."""
    return np.repeat(found.prices.reshape(len(found.prices), -1), np.diff(found.firsts), axis=0)
