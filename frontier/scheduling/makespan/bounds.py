"""Lower bounds on makespan and completion times without a solver: areas, intervals and dual feasible functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.scheduling.makespan.dual_feasible import Transformed, sampled, transformed
from ddlopt.frontier.scheduling.makespan.mean_busy import mean_busy_slots
from ddlopt.frontier.scheduling.makespan.needs import Floats, Ints, Needs, needs, whole_resources
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.bounds import require_slots, whole_seconds
from ddlopt.models.tolerances import ROUNDING, WHOLE_TOL


@dataclass(frozen=True)
class Effort:
    """How much a bound looks at before anything is searched for."""

    transformed_jobs: int = 3000
    """Jobs beyond which sizes are only taken as they are."""
    interval_work: float = 1e6
    """Jobs times intervals that are looked at for one makespan; others are left out, evenly spread."""
    windows: int = 8
    """Beginnings of windows that are tried, among them the first and the last: each costs a pass over the jobs."""
    most_tried: int = 60
    """Makespans tried in one bound; more of them would be excluded one by one only where deadlines are hard to keep."""


_EFFORT = Effort()

# Sums must stay below the largest 64-bit integer, with a bit to spare.
_LARGEST = 2**62


def makespan_bound(instance: SchedulingInstance) -> float:
    """Seconds before which no schedule ends; see :func:`makespan_bound_slots`.

    Raises
    ------
    InfeasibleError
        If it proves that not all jobs can be finished in time.
    """
    return makespan_bound_slots(instance) * instance.slot_s


def makespan_bound_slots(instance: SchedulingInstance) -> int:
    r"""Slots that every schedule needs which finishes all jobs, in whole numbers throughout.

    It holds for elastic and preemptive jobs, networks and contention, as it relaxes these: jobs run at the best
    rate that any place allows, and the cluster is one pool. For every resource and every dual feasible function u of
    the sizes (:mod:`.dual_feasible`), with capacity C and job j of size :math:`c_j`,
    arrival :math:`r_j` and :math:`p_j` slots:

    *Longest*: :math:`r_j + p_j`. *Area* from every arrival a on: :math:`a + \lceil \sum_{r_j \ge a} u(c_j)\, p_j / u(C)
    \rceil`. Wide jobs, of which no two fit together, are among these. The others exclude one makespan T after another:

    *Intervals* (energetic reasoning): in slots a..b-1 a job has at least the slots that it has there both when it
    starts as early and when it ends as late as it may (a preemptive one: that do not fit outside), and
    :math:`\sum_j u(c_j)\, \mathrm{slots}_j \le u(C) (b - a)`.

    *Both ways*: workers can be numbered such that a worker has one job at a time, in one piece where jobs are. On each
    the lengths of its jobs, all arrived since a, add up to T - a at most; so a dual feasible function v of the lengths
    may come on top: :math:`\sum_j u(c_j)\, v(p_j) \le u(C)\, v(T - a)`. (Not for preemptive or elastic jobs.)

    An elastic job counts as the width that takes least of u for each mini-batch.

    Raises
    ------
    InfeasibleError
        If it proves that not all jobs can be finished in time: the bound, which holds for every schedule that finishes
        them, is beyond the last slot; or some job cannot by itself.
    """
    jobs = needs(instance)
    views = _views(instance, jobs)
    bound = int((jobs.arrival + jobs.slots).max())
    for view in views:
        bound = max(bound, view.area_bound(jobs.arrival))
    bound = _raised(jobs, views, bound, instance.slots)
    require_slots(instance, bound)
    return bound


def completion_bound(instance: SchedulingInstance) -> float:
    r"""Seconds, weighted and added up over all jobs, that they take from arrival to end at least.

    With the sizes, functions u and relaxations of :func:`makespan_bound_slots`: the work :math:`W_j = u(c_j)\, p_j` of
    the jobs on one machine of speed u(C), see :func:`.mean_busy_slots`. The length of an elastic job is here what its
    work takes at the width that does most in a slot.

    Raises
    ------
    InfeasibleError
        If a job cannot be finished in time, even alone.
    """
    jobs = needs(instance)
    best = float(jobs.weight @ jobs.slots)
    for view in _views(instance, jobs, most=12):
        for row in range(len(view.capacity)):
            best = max(best, _mean_busy_bound(jobs, view, row))
    return whole_seconds(instance, best)


@dataclass(frozen=True)
class _View:
    """One resource under K dual feasible functions.

    Parameters
    ----------
    capacity : (K,) array
    size : (K, I) array
        What a job takes in a slot; 0 for elastic jobs.
    work : (K, I) array
        What it takes in all, rounded up.
    per_minibatch : (K, I) array
        Least that an elastic job takes for a mini-batch; 0 for others.
    peak : (K, I) array
        Most that it can take in a slot.
    """

    capacity: Ints
    size: Ints
    work: Ints
    per_minibatch: Floats
    peak: Ints

    def area_bound(self, arrival: Ints) -> int:
        """The best area bound from any arrival on."""
        order = np.argsort(arrival, kind="stable")[::-1]
        since = np.cumsum(self.work[:, order], axis=1)
        ends = arrival[order] + -(-since // self.capacity[:, None])
        return int(ends.max())


def _views(instance: SchedulingInstance, jobs: Needs, most: int = 40) -> list[_View]:
    views = []
    most = most if len(instance.jobs) <= _EFFORT.transformed_jobs else 0
    for resource in whole_resources(instance):
        widths = [np.arange(low, high + 1) for low, high in zip(jobs.narrowest, jobs.widest, strict=True)]
        starts = np.concatenate(([0], np.cumsum([len(row) for row in widths])))
        sizes = np.concatenate(widths) * np.repeat(resource.per_worker, np.diff(starts))
        if sizes.max() > resource.capacity:
            raise InfeasibleError(
                f"'{instance.name}': some job takes more of a resource than all servers together have"
            )
        once = jobs.slots if jobs.rigid.all() else None
        found = transformed(sizes, resource.capacity, most, once)
        small = [each * 20 * instance.slots * len(sizes) < _LARGEST for each in found.capacity.tolist()]
        if any(small):
            views.append(_view(jobs, Transformed(found.sizes[small], found.capacity[small]), starts))
    return views


def _view(jobs: Needs, found: Transformed, starts: Ints) -> _View:
    rates = np.concatenate([np.asarray(row) for row in jobs.rates])
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(rates > 0, found.sizes / rates, np.inf)
    rigid = jobs.rigid
    per_minibatch = np.where(rigid, 0.0, np.minimum.reduceat(each, starts[:-1], axis=1))
    peak = np.maximum.reduceat(found.sizes, starts[:-1], axis=1)
    size = np.where(rigid, peak, 0)
    work = np.where(rigid, peak * jobs.slots, _up(per_minibatch * jobs.wanted))
    return _View(found.capacity, size, work, per_minibatch, peak)


def _up(amounts: Floats) -> Ints:
    """Rounded up, but never because of a rounding error."""
    return np.ceil(amounts * (1 - ROUNDING) - WHOLE_TOL).astype(np.int64)


def _raised(jobs: Needs, views: Sequence[_View], bound: int, most: int) -> int:
    """The bound after all makespans that can be excluded, in growing steps."""
    step = 0
    for _ in range(_EFFORT.most_tried):
        if bound + step > most:
            if not step:
                break
            step = 0
        if _excluded(jobs, views, bound + step):
            bound, step = bound + step + 1, 2 * step + 1
        elif step:
            step = 0
        else:
            break
    return bound


class Deadlines:
    """Whether all jobs may meet given deadlines, by the arguments of one makespan.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.jobs = needs(instance)
        self._views = _views(instance, self.jobs)

    def excluded(self, due: Ints) -> bool:
        """Whether it is proven that not every job is finished before its slot of ``due`` (I,)."""
        return _dues_excluded(self.jobs, self._views, np.minimum(self.jobs.last, due))


def _dues_excluded(jobs: Needs, views: Sequence[_View], due: Ints) -> bool:
    short = bool((due - jobs.arrival < jobs.slots).any())
    return short or any(_intervals_exclude(jobs, view, due) for view in views)


def _excluded(jobs: Needs, views: Sequence[_View], makespan: int) -> bool:
    """Whether it is proven that not all jobs can be finished within a number of slots."""
    if _dues_excluded(jobs, views, np.minimum(jobs.last, makespan)):
        return True
    pieces = not jobs.preemptive and bool(jobs.rigid.all()) and len(jobs.slots) <= _EFFORT.transformed_jobs
    return pieces and any(_lengths_exclude(jobs, view, makespan) for view in views)


def _intervals_exclude(jobs: Needs, view: _View, due: Ints) -> bool:
    early, late = jobs.arrival + jobs.slots, due - jobs.slots
    most = max(2, math.isqrt(int(_EFFORT.interval_work / len(due))))
    begins = sampled(np.unique(np.concatenate((jobs.arrival, late, early))), most)
    ends = sampled(np.unique(np.concatenate((due, early, late))), most)
    elastic = ~jobs.rigid
    best = jobs.best[elastic]
    for begin in begins.tolist():
        after = ends[ends > begin][:, None]
        if not len(after):
            continue
        outside = np.maximum(0, np.minimum(due, begin) - jobs.arrival)
        outside = outside + np.maximum(0, due - np.maximum(jobs.arrival, after))
        inside = np.maximum(0, jobs.slots - outside)
        if not jobs.preemptive:
            one_side = np.minimum(early - begin, after - late)
            inside = np.clip(np.minimum(one_side, np.minimum(jobs.slots, after - begin)), 0, None)
        needed = inside @ view.size.T
        if elastic.any():
            left = np.maximum(0.0, jobs.wanted[elastic] - outside[:, elastic] * best)
            needed = needed + _up(left @ view.per_minibatch[:, elastic].T)
        if (needed > view.capacity * (after - begin)).any():
            return True
    return False


def _lengths_exclude(jobs: Needs, view: _View, makespan: int) -> bool:
    for since in sampled(np.unique(jobs.arrival), _EFFORT.windows).tolist():
        inside = jobs.arrival >= since
        lengths = transformed(jobs.slots[inside], makespan - since, length=view.size[0, inside])
        total = view.size[:, inside] @ lengths.sizes.T
        if (total > view.capacity[:, None] * lengths.capacity).any():
            return True
    return False


def _mean_busy_bound(jobs: Needs, view: _View, row: int) -> float:
    """Weighted slots from arrival to end, for one resource and function."""
    work = view.work[row]
    length = np.where(jobs.rigid, jobs.slots, work / np.maximum(view.peak[row], 1))
    return mean_busy_slots(jobs.arrival, jobs.weight, jobs.slots, length, work, float(view.capacity[row]))
