"""Who gets how many workers in one slot: the knapsack, the greedy packing, and what no choice can beat."""

import heapq
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.scheduling.online.engine import Choice, State
from ddlopt.solvers.scheduling.slot.knapsack import scarce_resources, whole_costs
from ddlopt.solvers.scheduling.slot.knapsack_kernels import choose_widths
from ddlopt.solvers.scheduling.slot.packing import Packer, Place
from ddlopt.solvers.scheduling.slot.rates import Ints
from ddlopt.solvers.scheduling.slot.worth import Gains

_PARTS = 4096
"""Parts into which a capacity is cut where amounts have no common part: few enough for a table in each slot."""


@dataclass(frozen=True)
class Answer:
    """Choice of one slot, what it gains, and a bound on what any choice gains."""

    choice: Choice
    gain: float
    bound: float


class Oracle(Protocol):
    """Chooses for one slot."""

    def best(self, state: State, gains: Gains) -> Answer:
        """Widths or places of jobs with much gain; the energy of the workers is the oracle's to subtract."""


class PoolBound:
    """The knapsack of widths: an upper bound on the gain of a slot, and the optimum where the pool is exact.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        cluster = scarce_resources(pool(instance), np.array([job.max_workers for job in instance.jobs]))
        whole = whole_costs(cluster)
        self.sharp = not isinstance(whole, str)
        """Whether the knapsack is the pool itself and not a relaxation of it."""
        self.costs: list[Ints] = []
        """(I,) for each resource: parts of it that a worker takes, at most; and how many parts there are, at least."""
        self.capacities: list[int] = []
        if isinstance(whole, str):
            for demand, capacity in zip(cluster.demand.T, cluster.capacity.tolist(), strict=True):
                self.costs.append(np.floor(demand / capacity * _PARTS * (1 - ROUNDING)).astype(np.int64))
                self.capacities.append(_PARTS)
        else:
            self.costs.append(whole[0])
            self.capacities.append(whole[1])
        price = instance.energy_price_per_j * instance.slot_s
        self.worker_cost = price * float(instance.worker_w.min())
        """Least cost of a worker's energy in a slot."""
        self.idle_cost = price * float(instance.idle_w.min())
        """Least cost of a slot in which anybody runs."""

    def best(self, gains: Gains, held: Ints | None = None, widths: Ints | None = None) -> tuple[float, Ints]:
        """Largest gain less energy, and widths of ``gains.jobs`` that have it, next to ``held`` jobs of ``widths``."""
        values = gains.values
        if self.worker_cost:
            values = values - self.worker_cost * (np.arange(len(values)) - np.repeat(gains.starts[:-1], gains.lengths))
        least, chosen = np.inf, np.zeros(len(gains.jobs), dtype=np.int64)
        for costs, capacity in zip(self.costs, self.capacities, strict=True):
            taken = 0 if held is None or widths is None else int(costs[held] @ widths)
            total, found = choose_widths(gains.starts, values, costs[gains.jobs], max(0, capacity - taken))
            if total < least:
                least, chosen = total, found
        asleep = held is None or not len(held)
        if asleep and least <= self.idle_cost:
            return 0.0, np.zeros(len(gains.jobs), dtype=np.int64)
        return least - (self.idle_cost if asleep else 0.0), chosen


class Knapsack:
    """Exact where the pool is: the multiple-choice knapsack of widths.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self._bound = PoolBound(instance)

    def best(self, state: State, gains: Gains) -> Answer:
        """Widths of largest gain less energy."""
        held = np.fromiter(state.held, dtype=np.int64, count=len(state.held))
        gain, widths = self._bound.best(gains, held, state.width[held])
        chosen = np.flatnonzero(widths)
        choice = dict(zip(gains.jobs[chosen].tolist(), widths[chosen].tolist(), strict=True))
        return Answer(choice, gain, gain)


def knapsack_is_exact(instance: SchedulingInstance) -> str | None:
    """Why the knapsack of widths is not the slot's problem; None if it is."""
    if not pool(instance).exact:
        return "it matters which servers the workers are on"
    if not PoolBound(instance).sharp:
        return "several resources run short, or workers take amounts without a common part"
    return None


class Packing:
    """Greedy: by gain per dominant share, each job at the width where that is largest, on the fewest servers.

    The dominant share of a worker is the largest part that it takes of any resource of the whole cluster. A width that
    finds no place, or no bandwidth, is tried smaller; a job that has its width may still get a larger one where the
    further workers gain more than anything else that is left. Jobs stay where they were if they can.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self._bound = PoolBound(instance)
        self._share = (instance.demand / instance.capacity.sum(axis=0)).max(axis=1)
        self._packer = Packer(instance)
        self._price = instance.energy_price_per_j * instance.slot_s
        self._before: dict[int, Place] = {}

    def best(self, state: State, gains: Gains) -> Answer:
        """Places found one after the other."""
        packer = self._packer
        for job in list(packer.placed):
            packer.remove(job)
        for job, place in state.held.items():
            packer.put(job, place)
        held = np.fromiter(state.held, dtype=np.int64, count=len(state.held))
        heap: list[tuple[float, int, int, int]] = []
        for row in range(len(gains.jobs)):
            self._propose(heap, gains, row, 0, None)
        while heap:
            _, row, now, wanted = heapq.heappop(heap)
            if self._try(gains, row, now, wanted):
                self._propose(heap, gains, row, wanted, None)
            else:
                self._propose(heap, gains, row, now, wanted)
        self._before = {job: place for job, place in packer.placed.items() if job not in state.held}
        found = [self._before[job].width if job in self._before else 0 for job in gains.jobs.tolist()]
        widths = np.array(found, dtype=np.int64)
        gain = gains.total(widths) - (self._energy_cost() if self._price else 0.0)
        return Answer(dict(self._before), gain, self._bound.best(gains, held, state.width[held])[0])

    def _propose(
        self, heap: list[tuple[float, int, int, int]], gains: Gains, place: int, now: int, below: int | None
    ) -> None:
        """Put the best next width of a job on the heap: above ``now`` and ``below``."""
        row = gains.row(place)[:below]
        if len(row) <= now + 1:
            return
        more = np.arange(1, len(row) - now)
        ratio = (row[now + 1 :] - row[now]) / more - self._bound.worker_cost
        best = int(np.argmax(ratio))
        if ratio[best] > 0:
            share = self._share[gains.jobs[place]]
            heapq.heappush(heap, (-float(ratio[best] / share), place, now, now + 1 + best))

    def _try(self, gains: Gains, place: int, now: int, wanted: int) -> bool:
        """Give a job ``wanted`` workers instead of ``now``; False, and nothing has changed, if they find no place."""
        job, packer = int(gains.jobs[place]), self._packer
        old = packer.remove(job) if now else None
        before = self._before.get(job)
        kept = before is not None and before.width == wanted and packer.fits(job, before)
        found = before if kept else packer.find(job, wanted)
        if found is not None and self._price:
            row = gains.row(place)
            extra = packer.energy_w(found) - (packer.energy_w(old) if old else 0.0)
            found = found if row[wanted] - row[now] > extra * self._price else None
        if found is None:
            if old is not None:
                packer.put(job, old)
            return False
        packer.put(job, found)
        return True

    def _energy_cost(self) -> float:
        """Of all jobs that were not held: what they add to the power."""
        packer = self._packer
        total = 0.0
        for job in list(self._before):  # each is charged for the servers that it alone keeps awake by then
            total += packer.energy_w(packer.remove(job))
        for job, place in self._before.items():
            packer.put(job, place)
        return total * self._price
