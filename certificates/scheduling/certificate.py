"""The file of a proof for schedules by prices, read as if an enemy had written it."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.own import OwnCertificate
from ddlopt.certificates.scheduling.deadlines import in_time
from ddlopt.certificates.scheduling.kept import KeptOffers, kept_beaten
from ddlopt.certificates.scheduling.patterns import dearest, options_of, rooms_of
from ddlopt.certificates.scheduling.plans import Offers, TooManyError, beaten
from ddlopt.certificates.scheduling.relaxed import PARTS, Cluster, Ints, cheapest, offered, worths
from ddlopt.certificates.scheduling.ring_rows import ring_rows
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import AllOrNothing

AnyOffers = Offers | KeptOffers
_LARGEST = 2**62
"""Of a number of a file."""


@dataclass(frozen=True)
class PriceCertificate(OwnCertificate):
    r"""A proof that no schedule has more utility, energy taken off, or a smaller largest ratio, than ``claim``.

    Weak duality: at prices :math:`\lambda \ge 0` of resources in slots, all of them cost
    :math:`\sum_{tr} \lambda_{tr} C_r`, and a schedule's objective is no more than that and, of every job, what its
    best plan is worth less what it costs. A plan gives a job any of its widths in any slots of its window. All plans of
    a job are looked at in whole numbers (:func:`~ddlopt.certificates.scheduling.plans.beaten`), each number
    rounded to the side on which the bound stays one. Of a job that loses time when it changes, or may not change in
    every slot, plans are those that know it (:func:`~ddlopt.certificates.scheduling.kept.kept_beaten`), but for
    moves at the same width; of one whose speed depends on the type of accelerators, where each type has prices of its
    own, those of widths on classes of types (:func:`~ddlopt.certificates.scheduling.relaxed.offered`).
    Placement, networks and pieces are relaxed; of bandwidth that is shared a ring has all of the widest link.

    What a job has in a slot may be charged for besides, a width of a job by a number of its own. No schedule then pays
    more for a slot than its dearest *pattern* costs, widths of jobs that fit together, which takes the place of
    :math:`\sum_r \lambda_{tr} C_r` (:func:`~ddlopt.certificates.scheduling.patterns.dearest`); this is Lagrangian
    decomposition into jobs and slots, a bound on plans that know what fits into a slot. Of a network patterns know how
    many rings leave servers and racks (:func:`~ddlopt.certificates.scheduling.ring_rows.ring_rows`).

    A ratio is a deadline for every job: if prices tell that of I jobs fewer than I can end while their ratios are below
    ``claim``, no schedule has a smaller largest ratio.

    Parameters
    ----------
    scale : int
        Units that a utility of 1 has; everything below is in units.
    prices : list of list of int
        (T, R) of what instances count as 1 of a resource, in a slot, with types (T, K R), of each type in turn; where
        workers all take the same, of several servers, the only resource is places for workers.
    surplus : list of int
        (I,) of each job what no plan of it is worth more than, less its cost; the check tries all of them.
    charges : list of list of list of int
        (T, I, O) of each option of a job in a slot, in the order of
        :func:`~ddlopt.certificates.scheduling.patterns.options_of`; empty for a job outside its window. Empty,
        and not in the file, where nothing is charged.
    """

    format: ClassVar[str] = "ddlopt price certificate"
    kind: ClassVar[str] = "prices"
    says: ClassVar[str] = "of the instance, by prices of resources in whole numbers and all plans of each job"

    scale: int
    prices: list[list[int]]
    surplus: list[int]
    charges: list[list[list[int]]] = field(default_factory=list)

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Whole numbers, none negative."""
        if not _is_number(data["scale"]) or data["scale"] < 1:
            return f"scale is a whole number of 1 to {_LARGEST}"
        prices = data["prices"]
        rows = isinstance(prices, list) and all(isinstance(row, list) for row in prices)
        if not rows or not all(_is_number(price) for row in prices for price in row):
            return f"prices has a list for each slot, of whole numbers of 0 to {_LARGEST}"
        if not isinstance(data["surplus"], list) or not all(map(_is_number, data["surplus"])):
            return f"surplus is a list of whole numbers of 0 to {_LARGEST}"
        charges = data.get("charges", [[]])
        rows = bool(charges) and _are_lists(charges) and all(map(_are_lists, charges))
        if not rows or not all(map(_is_number, itertools.chain(*itertools.chain(*charges)))):
            return f"charges has a list of lists for each slot, of whole numbers of 0 to {_LARGEST}"
        return None

    def check(self, instance: SchedulingInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError if the claim does not follow; how many beginnings of plans were looked at.

        Raises
        ------
        NotApplicableError
            If the objective is another one, or numbers might overflow.
        """
        claim, said = self.claim, "utility"
        if instance.goal.counts_ratios:
            claim, said = Fraction(len(instance.jobs) - 1), "jobs with smaller ratios"
            instance = in_time(instance, self.claim)
        elif not instance.goal.counts_utilities:
            raise NotApplicableError(f"prices are no proof for objective '{instance.objective}'")
        cluster = Cluster(instance)
        slots, resources, jobs = instance.slots, len(cluster.capacity), len(instance.jobs)
        if len(self.prices) != slots or any(len(row) != resources for row in self.prices):
            raise RefutedError(f"'{instance.name}' has {slots} slots with {resources} prices each; the proof has not")
        if len(self.surplus) != jobs:
            raise RefutedError(f"'{instance.name}' has {jobs} jobs, but the proof has {len(self.surplus)}")
        offers = self._offers(instance, cluster) if self.charges else []
        bound = self._on_grid(instance, (self.income(instance, cluster) + sum(self.surplus)) / self.scale)
        if bound > claim:
            told = f"{float(bound):.12g}, more than the claim of {float(claim):.12g}"
            raise RefutedError(f"the prices bound the {said} of '{instance.name}' by {told}")
        cases = 0
        for place, most in enumerate(self.surplus):
            if expired():
                break
            choice = offers[place] if offers else offer(instance, cluster, place, self.scale, self.prices)
            cases += self._checked(choice, place, most)
        return cases

    def income(self, instance: SchedulingInstance, cluster: Cluster) -> Fraction:
        """What a schedule may pay in all, in units: all resources, or where there are charges the dearest patterns."""
        if not self.charges:
            return sum((c * sum(row[r] for row in self.prices) for r, c in enumerate(cluster.capacity)), Fraction(0))
        offers, rooms, rows = self._offers(instance, cluster), rooms_of(cluster), ring_rows(instance)
        choices = [options_of(instance, cluster, place) for place in range(len(offers))]
        income = 0
        for slot in range(instance.slots):
            here = [i for i, job in enumerate(instance.jobs) if job.arrival <= slot < instance.last_slot(i)]
            costs = [offers[i].costs[slot - instance.jobs[i].arrival].tolist() for i in here]
            income += dearest(rooms, [(i, choices[i], row) for i, row in zip(here, costs, strict=True)], rows)
        return Fraction(income)

    def _offers(self, instance: SchedulingInstance, cluster: Cluster) -> list[AnyOffers]:
        """What jobs may choose from, charges included."""
        jobs, found = range(len(instance.jobs)), []
        if len(self.charges) != instance.slots or any(len(row) != len(jobs) for row in self.charges):
            raise RefutedError(f"the proof charges for other slots or jobs than those of '{instance.name}'")
        for place in jobs:
            window = range(instance.jobs[place].arrival, instance.last_slot(place))
            charges = [self.charges[slot][place] for slot in window]
            count = len(options_of(instance, cluster, place))
            if any(len(row) != count for row in charges):
                raise RefutedError(f"job {place} has {count} options in a slot; the proof charges for others")
            found.append(offer(instance, cluster, place, self.scale, self.prices, charges))
        return found

    @staticmethod
    def _checked(choice: AnyOffers, place: int, most: int) -> int:
        try:
            better, cases = kept_beaten(choice, most) if isinstance(choice, KeptOffers) else beaten(choice, most)
        except TooManyError:
            raise RefutedError(f"too many plans of job {place} are worth nearly as much as the proof says") from None
        if better:
            raise RefutedError(f"a plan of job {place} is worth more than {most} units above its cost")
        return cases

    @staticmethod
    def _on_grid(instance: SchedulingInstance, bound: Fraction) -> Fraction:
        """The largest sum of values that the bound allows, where all jobs count whole and energy does not."""
        if instance.energy_price_per_j or not all(isinstance(job.utility, AllOrNothing) for job in instance.jobs):
            return bound
        values = [Fraction(job.utility.value) for job in instance.jobs]
        below = math.lcm(*(value.denominator for value in values))
        step = Fraction(math.gcd(*(int(value * below) for value in values)), below)
        return step * math.floor(bound / step)


def offer(
    instance: SchedulingInstance,
    cluster: Cluster,
    place: int,
    scale: int,
    prices: list[list[int]],
    charges: list[list[int]] | None = None,
) -> AnyOffers:
    """What a job may choose from at prices and, in each slot of its window, (n, O) charges, all in units.

    Raises
    ------
    NotApplicableError
        If numbers might overflow, or bandwidth is no matter of the job alone.
    """
    job, demand = instance.jobs[place], cluster.demand[place]
    window = range(job.arrival, instance.last_slot(place))
    worth: Callable[[Ints], Ints] = partial(worths, job, scale=scale)
    most = int(worth(np.array([PARTS]))[0]) + 1
    units = np.empty((len(window), len(cluster.worker_cost)), dtype=np.int64)
    for row, slot in enumerate(window):
        for k, energy in enumerate(cluster.worker_cost):
            mine = prices[slot][k * len(demand) : (k + 1) * len(demand)]
            paid = energy * scale + sum(price * taken for price, taken in zip(mine, demand, strict=True))
            units[row, k] = min(most, math.floor(paid))
    choices = offered(instance, cluster, place)
    gains, changed = (np.array([each[field] for each in choices], dtype=np.int64) for field in (2, 3))
    typed, keeps = instance.accelerators.matter, charges is not None or instance.changes.matter_to(place)
    if not typed and not keeps:
        # Progress counts wherever it is made; a width that costs more than all of it is worth may cost just that.
        widths = np.array([each.width for each in choices], dtype=np.int64)
        return Offers(gains, np.minimum(np.sort(units, axis=0), most // widths + 1) * widths, worth, ordered=True)
    if most * len(window) * job.max_workers > _LARGEST:
        raise NotApplicableError(f"what job {place} may cost has too many units; numbers might overflow")
    costs = cheapest(choices, cluster.rooms(place), units)
    if charges is not None:
        costs = _with_charges(costs, charges, worth)
    if typed:
        # What changes lose, and least runs, are relaxed.
        return Offers(gains, costs, worth, ordered=False)
    return KeptOffers(gains, changed, costs, instance.changes.least(place), worth)


def _with_charges(costs: Ints, charges: list[list[int]], worth: Callable[[Ints], Ints]) -> Ints:
    """(n, O) costs with what is charged besides; none is more than all of a job's progress is worth, and a unit."""
    most = int(worth(np.array([PARTS]))[0]) + 1
    more = np.minimum(most, np.array(charges, dtype=np.int64).reshape(costs.shape))
    found: Ints = np.minimum(most, costs + more)
    return found


def _are_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, list) for each in value)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST
