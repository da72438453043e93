"""An instance for the check of prices: what resources there are, and what jobs do with them, in rational numbers.

Written without what methods and bounds calculate with, so that no error of theirs is in it.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import Job, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.models.tolerances import let_pass

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
_MOST_OPTIONS = 10_000
"""Of a job: each is looked at in every slot."""
EXCESS = let_pass(Fraction(1))
"""What the check in floating point lets pass."""


class Cluster:
    """All servers together, or where speeds depend on the type of accelerators those of each type.

    Parameters
    ----------
    instance : SchedulingInstance

    Attributes
    ----------
    capacity : list of Fraction
        (K R,) by type, of which there is one where types make no difference, and resource. Where workers all take the
        same, of several servers or types, the only resource is places for workers, whole ones on each server.
    demand : list of list of Fraction
        (I, R) what a worker takes of each.
    worker_cost : list of Fraction
        (K,) utility that the energy of a worker costs in a slot, at least.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        resources, typed = instance.resources, instance.accelerators.matter
        self._taken = [[Fraction(job.demand.get(name, 0.0)) for name in resources] for job in instance.jobs]
        self._same = all(row == self._taken[0] for row in self._taken)
        counted = self._same and (typed or instance.server_count > 1)
        self.demand = [[Fraction(1)]] * len(self._taken) if counted else self._taken
        self._groups: list[list[tuple[ServerGroup, list[Fraction]]]] = []
        for name in instance.accelerators.names if typed else ("",):
            groups = [group for group in instance.servers if not typed or group.type == name]
            held = [[Fraction(group.capacity.get(each, 0.0)) * EXCESS for each in resources] for group in groups]
            self._groups.append(list(zip(groups, held, strict=True)))
        self.capacity: list[Fraction] = []
        for pairs in self._groups:
            amounts = [[group.count * each for each in held] for group, held in pairs]
            whole = [Fraction(_room(pairs, self._taken[0]))]
            self.capacity += whole if counted else [sum(column, Fraction(0)) for column in zip(*amounts, strict=True)]
        price = Fraction(instance.energy_price_per_j) * Fraction(instance.slot_s)
        self.worker_cost = [price * self._least_power(pairs) for pairs in self._groups]

    def rooms(self, place: int) -> list[int]:
        """(K,) workers of a job that the servers of each type hold."""
        return [_room(pairs, self._taken[place]) for pairs in self._groups]

    def _least_power(self, pairs: list[tuple[ServerGroup, list[Fraction]]]) -> Fraction:
        """Of a worker, with its part of what its server takes when it is full; 0 where no worker fits."""
        least = [min(column) for column in zip(*self._taken, strict=True)]
        kinds = [self._taken[0]] if self._same else self._taken
        usable = [(group, held) for group, held in pairs if any(workers_in(held, row) for row in kinds)]
        found = []
        for group, held in usable:
            power = Fraction(group.worker_w)
            if any(least) and (most := workers_in(held, least)):
                power += Fraction(group.idle_w) / most
            found.append(power)
        return min(found, default=Fraction(0))


def _room(pairs: list[tuple[ServerGroup, list[Fraction]]], taken: Sequence[Fraction]) -> int:
    return sum(group.count * workers_in(held, taken) for group, held in pairs)


def workers_in(held: Sequence[Fraction], taken: Sequence[Fraction]) -> int:
    """How many that take so much fit into what is held."""
    return min(math.floor(room / each) for room, each in zip(held, taken, strict=True) if each)


class Option(NamedTuple):
    """What a job may have in a slot: a width on a class of types.

    ``gain``: what it then does, in PARTS rounded up; ``changed``: in a slot in which it changes.
    """

    types: tuple[int, ...]
    width: int
    gain: int
    changed: int


def offered(instance: SchedulingInstance, cluster: Cluster, place: int) -> list[Option]:
    """What a job may have in a slot, in the order in which a proof charges for it.

    Workers of a class of types go at the pace of its slowest. Where types make no difference, widths that do no more
    than smaller ones are left out.

    Raises
    ------
    NotApplicableError
        If there are too many, or where its workers are decides how fast they are.
    """
    if instance.contention is not None:
        raise NotApplicableError("prices say nothing where bandwidth depends on other jobs")
    job, rooms, accelerators = instance.jobs[place], cluster.rooms(place), instance.accelerators
    typed = accelerators.matter
    paces = [Fraction(pace) for pace in accelerators.speeds[place].tolist()] if typed else [Fraction(1)]
    kinds = range(len(paces))
    if accelerators.mixed or not accelerators.matter_to(place):
        classes = [tuple(k for k in kinds if paces[k] >= pace) for pace in sorted(set(paces)) if pace]
    else:
        classes = [(k,) for k in kinds if paces[k]]
    if len(classes) * len(job.widths) > _MOST_OPTIONS:
        raise NotApplicableError(f"job {place} has more than {_MOST_OPTIONS} widths on classes of types")
    slot_s, left = Fraction(instance.slot_s), Fraction(instance.changes.left(place, Fraction))
    bandwidths, found = _bandwidths(instance), list[Option]()
    for own in classes:
        room, pace = sum(rooms[k] for k in own), min(paces[k] for k in own)
        for width in (width for width in job.widths if width <= room):
            fastest = max(Fraction(job.timing.minibatches_per_s(width, each, Fraction)) for each in bandwidths)
            done = fastest * slot_s * pace * PARTS / Fraction(job.minibatches)
            gain, changed = min(PARTS, math.ceil(done)), min(PARTS, math.ceil(done * left))
            before = found[-1] if found else Option((), 0, 0, 0)
            if typed or gain > before.gain or changed > before.changed:
                found.append(Option(own, width, gain, changed))
    return found


def cheapest(options: Sequence[Option], rooms: Sequence[int], units: Ints) -> Ints:
    """(n, O) cost of each option in n slots, its workers on the cheapest of its types, at (n, K) ``units`` for each."""
    found = np.zeros((len(units), len(options)), dtype=np.int64)
    rows, held = np.arange(len(units))[:, None], np.array(rooms)
    for own in {option.types for option in options}:
        mine = [place for place, option in enumerate(options) if option.types == own]
        left = np.tile([options[place].width for place in mine], (len(units), 1))
        order = np.array(own)[np.argsort(units[:, own], axis=1, kind="stable")]
        for rank in range(len(own)):
            here = order[:, rank : rank + 1]
            taken = np.minimum(left, held[here])
            found[:, mine] += taken * units[rows, here]
            left -= taken
    return found


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
    """No less than ``scale`` times the utility of a number of PARTS.

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
