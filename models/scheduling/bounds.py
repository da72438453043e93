"""A bound on the objective of every schedule, found without a solver."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.remembered import remembered
from ddlopt.models.scheduling.concave.piecewise import outer_pieces
from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.times.bounds import time_bound
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING, let_pass_at_most

Floats = npt.NDArray[np.float64]

_TANGENTS = 16
"""Of a utility: with as many it is over-estimated by some per mille, which the common pool loses many times over."""


@remembered
def bound(instance: SchedulingInstance) -> float:
    """Bound on the objective of every schedule: from above for utility and fairness, from below for times.

    Placement, rings and contention are relaxed to the resources of all servers together, with the fastest progress that
    any placement and any type of accelerators allow. For utility and the smallest part done, the slots are one pool,
    too (:func:`utility_bound`); for times see :mod:`~ddlopt.models.scheduling.times.bounds`.

    Raises
    ------
    InfeasibleError
        If it proves that jobs that must finish cannot: one of them by itself, or all in the slots that there are. Jobs
        that may stay idle prove none.
    """
    fastest = instance.at_their_fastest()
    if instance.goal.counts_utilities:
        return on_grid(fastest, utility_bound(fastest))
    return _smallest_part_bound(fastest) if instance.goal.counts_least_part else time_bound(fastest)


def utility_bound(instance: SchedulingInstance) -> float:
    r"""An upper bound on the total utility: a fractional knapsack for each resource.

    Job i can do the part :math:`\bar p_i` of its mini-batches by itself. Of a resource it takes :math:`a_i` for all of
    them at least, at the width that takes least for a mini-batch, and of energy :math:`e_i`. In all slots together
    there is C T of the resource, so that no schedule has more than

    .. math::
        \max \sum_i \bigl(\bar u_i(p_i) - e_i p_i\bigr)
        \quad\text{with}\quad \sum_i a_i p_i \le C T,\quad 0 \le p_i \le \bar p_i,

    with tangents :math:`\bar u_i` of the utility, v p of one that is not concave; 0 for a job that is worth nothing
    unless it finishes, and cannot. The pieces that are worth most for what they take come first.
    """
    work = _Work(instance)
    price = instance.energy_price_per_j * least_energy_j(instance)
    energy = work.least(lambda _: price)
    pieces = [_pieces(instance, place, part) for place, part in enumerate(work.reach.tolist())]
    owner = np.repeat(np.arange(len(pieces)), [len(lengths) for lengths, _ in pieces])
    lengths, slopes = (np.concatenate([each[k] for each in pieces]) for k in (0, 1))
    slopes = slopes - energy[owner]
    useful = np.flatnonzero(slopes > 0)
    owner, lengths, slopes = owner[useful], lengths[useful], slopes[useful]
    best = float(slopes @ lengths)
    for taken, room in work.resources:
        amounts = taken[owner] * lengths
        with np.errstate(divide="ignore"):
            order = np.argsort(-slopes / taken[owner], kind="stable")
        before = np.cumsum(amounts[order]) - amounts[order]
        left = np.clip(room - before, 0.0, amounts[order])
        parts = np.divide(left, amounts[order], out=np.ones_like(left), where=amounts[order] > 0)
        best = min(best, float((slopes * lengths)[order] @ parts))
    return best * (1 + BOUND_MARGIN)


def _smallest_part_bound(instance: SchedulingInstance) -> float:
    """The largest part that all jobs can do of their mini-batches at once, each alone and all within one pool."""
    work = _Work(instance)
    parts = [float(work.reach.min()), *(room / float(taken.sum()) for taken, room in work.resources if taken.any())]
    return min(1.0, *parts) * (1 + BOUND_MARGIN)


class _Work:
    """What jobs can do alone, and what they take of the cluster for that.

    ``reach`` (I,) is the part of its mini-batches that each can do by itself; ``resources`` has for each resource what
    a job takes of it for all its mini-batches (I,), and how much there is in all slots from the first arrival on.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self._instance = instance
        self._rates = [fastest_rates(instance, place) for place in range(len(instance.jobs))]
        alone = [
            (instance.last_slot(place) - job.arrival) * max(rates) / job.minibatches
            for place, (job, rates) in enumerate(zip(instance.jobs, self._rates, strict=True))
        ]
        self.reach: Floats = np.array([1.0 if part >= float(DONE) else part for part in alone])
        cluster = pool(instance)
        slots = instance.slots - min(job.arrival for job in instance.jobs)
        self.resources = [
            (self.least(lambda place, own=demand: float(own[place])), let_pass_at_most(float(capacity)) * slots)  # type: ignore[misc]
            for demand, capacity in zip(cluster.demand.T, cluster.capacity, strict=True)
        ]

    def least(self, amount: Callable[[int], float]) -> Floats:
        """(I,) what all mini-batches of each job take at least, of something a worker takes ``amount`` of in a slot."""
        found = [
            job.minibatches * amount(place) * min(w / rate for w, rate in zip(job.widths, rates, strict=True))
            for place, (job, rates) in enumerate(zip(self._instance.jobs, self._rates, strict=True))
        ]
        return np.array(found)


def _pieces(instance: SchedulingInstance, place: int, reach: float) -> tuple[Floats, Floats]:
    """Lengths and slopes of the pieces of a job's utility up to the part that it can reach."""
    utility = instance.jobs[place].utility
    if isinstance(utility, AllOrNothing):
        worth = utility.value if reach >= 1.0 else 0.0
        return np.array([float(DONE)]), np.array([worth / float(DONE)])
    pieces = outer_pieces(utility, 0.0, reach, 0.0, _TANGENTS)
    return pieces.lengths, pieces.slopes


def on_grid(instance: SchedulingInstance, bound: float) -> float:
    """The largest utility that an upper bound allows: where only finished jobs count, it is a sum of their values.

    All sums are multiples of the greatest common divisor of the values. Of another objective the bound is as it was.
    """
    if not instance.goal.counts_utilities:
        return bound
    if instance.energy_price_per_j or not all(isinstance(job.utility, AllOrNothing) for job in instance.jobs):
        return bound
    values = [Fraction(job.utility.value) for job in instance.jobs]
    below = math.lcm(*(value.denominator for value in values))
    step = Fraction(math.gcd(*(int(value * below) for value in values)), below)
    return min(bound, float(step * math.floor(Fraction(bound) / step)) * (1 + ROUNDING))
