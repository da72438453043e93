"""A lower bound on completion times by prices on slots: each job by itself takes the plan that costs least."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.scheduling.makespan.needs import Floats, Needs, WholeResource, needs, whole_resources
from ddlopt.models.scheduling.fastest import upper_envelope
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.bounds import whole_seconds
from ddlopt.models.tolerances import ROUNDING


@dataclass(frozen=True)
class Effort:
    """How long prices are improved, and in which steps."""

    work: int = 12_000_000
    """Slots of jobs that are looked at in all rounds together: some seconds."""
    rounds: int = 40
    """Prices that are tried: on a trace of 243 jobs more of them add nothing."""
    first_step: float = 1.0
    """Of the step that would close the gap at once, if the direction were right; not tuned."""
    shrink: float = 0.7
    """Factor of the step where a price gains nothing; not tuned."""


_EFFORT = Effort()


def completion_bound(instance: SchedulingInstance) -> float | None:
    """Seconds, weighted and added up over all jobs, from arrival to end at least; None elsewhere, and for many jobs.

    With types of accelerators every job has its fastest one.
    """
    if not instance.goal.counts_ends:
        return None
    fastest = instance.at_their_fastest()
    jobs, resources = needs(fastest), whole_resources(fastest)
    if not is_worth_trying(jobs, resources):
        return None
    best = max(0.0, *(priced_bound(jobs, resource) for resource in resources))
    return whole_seconds(fastest, best)


def priced_bound(jobs: Needs, resource: WholeResource) -> float:
    r"""Weighted slots that jobs take from arrival to end at least, all together.

    With a price :math:`\lambda_t \ge 0` on a unit of the resource in slot t, no schedule has less than

    .. math::
        \sum_j \min_e \Bigl[ v_j (e + 1 - r_j) + \kappa_j(e) \Bigr] - C \sum_t \lambda_t ,

    where :math:`\kappa_j(e)` is the least price at which job j alone finishes within slots :math:`r_j, \dots, e`: of
    one width, in its cheapest slots, or where it runs in one piece in those just before e; of several widths, fractions
    of workers and of slots on the concave envelope of its progress. That is the Lagrangian relaxation of a choice among
    all plans of every job. Prices begin with those of a schedule by shortest remaining time: while jobs wait,
    :math:`\lambda` falls by :math:`v_j / p_j` over a slot, of the job that is the last to run; then they follow
    subgradients, with steps after Polyak.

    References
    ----------
    B. Polyak, "Minimization of unsmooth functionals", USSR Computational Mathematics and Mathematical Physics 9, 1969.
    """
    plans = _Plans(jobs, resource)
    prices, achieved = _first_prices(jobs, resource)
    best = value = -np.inf
    step, spent = _EFFORT.first_step, 0
    for _ in range(_EFFORT.rounds):
        value, used, looked = plans.at(prices)
        spent += looked
        if value > best:
            best, kept, taken = value, prices, used
        else:
            step *= _EFFORT.shrink
        if spent + looked > _EFFORT.work or best >= achieved:
            break
        if step < _EFFORT.first_step * _EFFORT.shrink**3 and value < best:
            value, prices, used = best, kept, taken
        slope = used - resource.capacity
        slope[(prices <= 0) & (slope < 0)] = 0.0
        length = float(slope @ slope)
        if not length:
            break
        prices = np.maximum(0.0, prices + step * (achieved - value) / length * slope)
    return float(best)


class _Plans:
    """What each job costs at least, at prices."""

    def __init__(self, jobs: Needs, resource: WholeResource) -> None:
        self.jobs, self.resource = jobs, resource
        self._steps = [_envelope(jobs, resource, job) for job in range(len(jobs.slots))]

    def at(self, prices: Floats) -> tuple[float, Floats, int]:
        """(bound, amount in use by slot, slots looked at)."""
        used, total, looked = np.zeros(len(prices)), -self.resource.capacity * float(prices.sum()), 0
        for job in range(len(self.jobs.slots)):
            if self.jobs.rigid[job] and self.jobs.preemptive:
                cost, steps = self._in_cheapest_slots(job, prices, used)
            elif self.jobs.rigid[job]:
                cost, steps = self._in_one_piece(job, prices, used)
            else:
                cost, steps = self._in_fractions(job, prices, used)
            total, looked = total + cost, looked + steps
        return total, used, looked

    def _size(self, job: int) -> float:
        return float(self.jobs.narrowest[job] * self.resource.per_worker[job])

    def _in_cheapest_slots(self, job: int, prices: Floats, used: Floats) -> tuple[float, int]:
        size, weight = self._size(job), float(self.jobs.weight[job])
        begin, slots = int(self.jobs.arrival[job]), int(self.jobs.slots[job])
        row = prices[begin : int(self.jobs.last[job])].tolist()
        heap = [-price for price in row[:slots]]
        heapq.heapify(heap)
        held = -sum(heap)
        best, end, place = weight * slots + size * held, slots, slots
        for place in range(slots, len(row)):
            if weight * (place + 1) >= best:
                break
            if row[place] < -heap[0]:
                held += row[place] + heapq.heapreplace(heap, -row[place])
                if weight * (place + 1) + size * held < best:
                    best, end = weight * (place + 1) + size * held, place + 1
        cheapest = np.argsort(prices[begin : begin + end], kind="stable")[:slots]
        used[begin + cheapest] += size
        return best, place

    def _in_one_piece(self, job: int, prices: Floats, used: Floats) -> tuple[float, int]:
        size, weight = self._size(job), float(self.jobs.weight[job])
        begin, slots = int(self.jobs.arrival[job]), int(self.jobs.slots[job])
        sums = np.concatenate(([0.0], np.cumsum(prices[begin : int(self.jobs.last[job])])))
        costs = weight * np.arange(slots, len(sums)) + size * (sums[slots:] - sums[:-slots])
        first = int(np.argmin(costs))
        used[begin + first : begin + first + slots] += size
        return float(costs[first]), len(sums)

    def _in_fractions(self, job: int, prices: Floats, used: Floats) -> tuple[float, int]:
        rates, sizes = self._steps[job]
        weight, wanted = float(self.jobs.weight[job]), float(self.jobs.wanted[job]) * (1 - ROUNDING)
        begin, last = int(self.jobs.arrival[job]), int(self.jobs.last[job])
        best, looked, plan = np.inf, 0, None
        for end in range(int(self.jobs.slots[job]), last - begin + 1):
            if weight * end >= best:
                break
            looked += end
            row = prices[begin : begin + end]
            order = np.argsort(np.outer(sizes / rates, row).ravel(), kind="stable")
            gains = np.repeat(rates, end)[order]
            parts = np.clip((wanted - np.cumsum(gains) + gains) / gains, 0.0, 1.0)
            amounts = parts * np.repeat(sizes, end)[order]
            cost = weight * end + float(amounts @ row[order % end])
            if cost < best:
                best, plan = cost, (begin + order % end, amounts)
        assert plan is not None
        np.add.at(used, *plan)
        return float(best), looked


def _envelope(jobs: Needs, resource: WholeResource, job: int) -> tuple[Floats, Floats]:
    """Progress and amounts that workers add, from corner to corner of the concave envelope, of a job of many widths."""
    widths = np.arange(jobs.narrowest[job], jobs.widest[job] + 1)
    rates = np.concatenate(([0.0], np.asarray(jobs.rates[job], dtype=np.float64)))
    corners = upper_envelope(np.concatenate(([0], widths)), rates)
    amounts = np.concatenate(([0], widths))[corners] * float(resource.per_worker[job])
    return np.diff(rates[corners]), np.diff(amounts)


def _first_prices(jobs: Needs, resource: WholeResource) -> tuple[Floats, float]:
    """Prices by slot, and what a schedule has by shortest remaining time, workers left over going to the first.

    Jobs of one piece are interrupted all the same, which makes for a figure that may be out of reach, but is near.
    """
    low, high = jobs.narrowest * resource.per_worker, jobs.widest * resource.per_worker
    slow = np.array([max(row[0], max(row) * ROUNDING) for row in jobs.rates])
    fast = np.array([row[-1] for row in jobs.rates])
    left, ends, falls = jobs.wanted.copy(), jobs.last.copy(), np.zeros(int(jobs.last.max()))
    alive = np.ones(len(left), dtype=bool)
    for slot in range(len(falls)):
        here = np.flatnonzero(alive & (jobs.arrival <= slot))
        if not len(here):
            if not alive.any():
                break
            continue
        slots = np.ceil(left[here] / slow[here] * (1 - ROUNDING))
        order = here[np.lexsort((left[here] / slow[here], slots / jobs.weight[here]))]
        running = order[np.cumsum(low[order]) <= resource.capacity]
        if len(running) < len(order) and len(running):
            last = running[-1]
            falls[slot] = jobs.weight[last] / (max(1.0, jobs.wanted[last] / slow[last]) * max(1, low[last]))
        gains = slow[running]
        more = np.where((fast > slow) & (left > slow), high - low, 0)[running]
        wider = (more > 0) & (np.cumsum(more) <= resource.capacity - low[running].sum())
        left[running] -= np.where(wider, fast[running], gains)
        done = running[left[running] <= jobs.wanted[running] * ROUNDING]
        ends[done], alive[done] = slot + 1, False
    prices = np.zeros(len(falls))
    level = 0.0
    for slot in range(len(falls) - 1, -1, -1):
        level = level + falls[slot] if falls[slot] else 0.0
        prices[slot] = level
    return prices, float(jobs.weight @ (ends - jobs.arrival))


def is_worth_trying(jobs: Needs, resources: Sequence[WholeResource]) -> bool:
    """Whether a round takes little enough."""
    return len(resources) * float((jobs.slots + 1).sum()) <= _EFFORT.work / 60
