"""An instance for the check of prices: what resources there are, and what jobs do with them, in rational numbers.

Written without what methods and bounds calculate with, so that no error of theirs is in it.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import Job, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.models.tolerances import FEASIBILITY_TOL

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PARTS = 2**40
"""Whole progress of a job: a rounding of 2^-40 in each slot is nothing beside a gap of 10^-4."""
FINISHED = math.floor(PARTS * DONE)
"""From so much on a job has finished."""
MOST_UNITS = 2**50
"""Of worth, all jobs together: sums with costs stay in 64 bits, and doubles have them exactly."""
_MARGIN = 1e-12
"""By which utilities are rounded up; libraries are off by some 10^-16."""
_MOST_WIDTHS = 10_000
"""Of a job: each is looked at in every slot."""
EXCESS = 1 + Fraction(FEASIBILITY_TOL)
"""What the check in floating point lets pass."""


class Cluster:
    """All servers together.

    Parameters
    ----------
    instance : SchedulingInstance

    Attributes
    ----------
    capacity : list of Fraction
        By resource. Where workers all take the same, of several servers, the only one is places for workers, whole
        ones on each server.
    demand : list of list of Fraction
        (I, R) what a worker takes of each.
    worker_cost : Fraction
        Utility that the energy of a worker costs in a slot, at least.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        names, groups = instance.resources, instance.servers
        taken = [[Fraction(job.demand.get(name, 0.0)) for name in names] for job in instance.jobs]
        held = [[Fraction(group.capacity.get(name, 0.0)) * EXCESS for name in names] for group in groups]
        if instance.server_count > 1 and all(row == taken[0] for row in taken):
            places = [workers_in(row, taken[0]) for row in held]
            self.demand = [[Fraction(1)] for _ in instance.jobs]
            self.capacity = [Fraction(sum(g.count * each for g, each in zip(groups, places, strict=True)))]
        else:
            self.demand = taken
            self.capacity = [
                sum((g.count * row[r] for g, row in zip(groups, held, strict=True)), Fraction(0))
                for r in range(len(names))
            ]
        least = [min(column) for column in zip(*taken, strict=True)]
        watts = [
            least_power(group, row, least)
            for group, row in zip(groups, held, strict=True)
            if any(workers_in(row, each) for each in taken)
        ]
        power = min(watts, default=Fraction(0))
        self.worker_cost = Fraction(instance.energy_price_per_j) * power * Fraction(instance.slot_s)


def workers_in(held: Sequence[Fraction], taken: Sequence[Fraction]) -> int:
    """How many that take so much fit into what is held."""
    return min(math.floor(room / each) for room, each in zip(held, taken, strict=True) if each)


def least_power(group: ServerGroup, held: Sequence[Fraction], least: Sequence[Fraction]) -> Fraction:
    """Of a worker on a server, with its part of what the server takes when it is full."""
    power = Fraction(group.worker_w)
    if any(least) and (most := workers_in(held, least)):
        power += Fraction(group.idle_w) / most
    return power


def choices(instance: SchedulingInstance, place: int, cluster: Cluster) -> tuple[Ints, Ints, Ints]:
    """Widths of a job and what it does in a slot at each, in PARTS rounded up, and in a slot in which it changes.

    Widths that do no more than smaller ones, in either, are left out.

    Raises
    ------
    NotApplicableError
        If there are too many, or where its workers are decides how fast they are.
    """
    if instance.contention is not None:
        raise NotApplicableError("prices say nothing where bandwidth depends on other jobs")
    if instance.typed:
        raise NotApplicableError("prices of places say nothing where the speed of jobs depends on their type")
    job = instance.jobs[place]
    widest = min(job.max_workers, workers_in(cluster.capacity, cluster.demand[place]))
    if widest - job.min_workers >= _MOST_WIDTHS:
        raise NotApplicableError(f"job {place} has more than {_MOST_WIDTHS} widths")
    left = 1 - Fraction(job.change_s) / Fraction(instance.slot_s) if instance.preemptive else Fraction(1)
    bandwidths = _bandwidths(instance)
    widths, gains, changed = [], [0], [0]
    for width in range(job.min_workers, widest + 1):
        fastest = max(Fraction(job.timing.minibatches_per_s(width, each, Fraction)) for each in bandwidths)
        done = fastest * Fraction(instance.slot_s)
        gain = min(PARTS, math.ceil(done * PARTS / Fraction(job.minibatches)))
        less = min(PARTS, max(0, math.ceil(done * left * PARTS / Fraction(job.minibatches))))
        if gain > gains[-1] or less > changed[-1]:
            widths.append(width)
            gains.append(gain)
            changed.append(less)
    found = (np.array(column, dtype=np.int64) for column in (widths, gains[1:], changed[1:]))
    return next(found), next(found), next(found)


def _bandwidths(instance: SchedulingInstance) -> list[Fraction | None]:
    """Bandwidths one of which is no less than what any ring has; None for a job's own, that it has on one server."""
    if instance.bandwidth == "reserved" or instance.network is None or instance.server_count == 1:
        return [None]
    total: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for u, v, bandwidth in instance.network.links:
        for arc in ((u, v), (v, u)) if instance.network.duplex else ((u, v),):
            total[arc] += Fraction(bandwidth) * EXCESS
    return [None, max(total.values())]


def worths(job: Job, parts: Ints, scale: int) -> Ints:
    """No less than ``scale`` times the utility of so many of PARTS.

    Raises
    ------
    NotApplicableError
        If it is so much that sums might overflow.
    """
    utility = job.utility
    if isinstance(utility, AllOrNothing):
        found: Floats = np.where(parts >= FINISHED, utility.value, 0.0)
    else:
        found = _smooth(job, parts / PARTS)
    units = found * float(scale) * (1 + _MARGIN)
    if not (np.isfinite(units).all() and (units < MOST_UNITS).all()):
        raise NotApplicableError("worths have too many units; numbers might overflow")
    return np.ceil(units).astype(np.int64) + 1


def _smooth(job: Job, part: Floats) -> Floats:
    """Utility of each part; where digits may cancel, more by all that they may be off by."""
    utility = job.utility
    match utility.kind:
        case "capped":
            each = part
        case "logarithmic":
            each = np.log1p(utility.curvature * part) / math.log1p(utility.curvature)
        case "loss_curve":
            each = utility.rate * part / (1 + utility.rate * part)
        case "fair" if utility.alpha == 1:
            each = np.log1p(part / utility.epsilon)
        case "fair":
            power = 1 - utility.alpha
            first, last = np.float64(utility.epsilon) ** power, (utility.epsilon + part) ** power
            each = (last - first) / power + (first + last) / abs(power) * _MARGIN
        case _:
            raise NotApplicableError(f"utilities of kind {utility.kind!r} are not bounded by prices")
    return each * utility.value
