"""An instance of ``slots`` as arrays: rates of jobs under rows that are linear in them."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.slots.instance import SlotJob, SlotPlan, SlotsInstance
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]


class SlotArrays:
    """Figures of an instance; n jobs, k rows: the memory of every switch first, then links, then aggregation rates.

    Where jobs come and go, a switch or a link has a row for each largest set of its jobs that are there at once. A job
    takes the same of all rows of a switch that it is in.

    Attributes
    ----------
    weight, compute_s, gradient_bytes : (n,) arrays
        :attr:`weight` is that of the objective: importance times iterations.
    fallback : (n,) array
        Rate of the parameter server, 0 where there is none.
    rows : (k, n) array
        What a byte per second of each job takes of each row, where slots need not be whole.
    limits : (k,) array
    per_slot : (m, n) array
        Rate that a slot gives, by the m rows of memory; 0 where the switch does not aggregate for the job, or the job
        is not there.
    slots : (m,) array
        Of the switch that each row of memory is about.
    switch_of : (m,) array
        Which that is.
    cap : (n,) array
        The largest rate that the network card and each row by itself allow.
    costs, hidden : (m, n) arrays
        Weighted bytes from a bucket on, and weighted seconds that are left of the computation when that is ready: the
        job takes as much longer than it computes as the largest of ``costs / rate - hidden``. Those that are never the
        largest are left out; they are in their order, and zeros stand for the computation.
    begins : (m, n) array
        Rates from which on each is the largest; infinite where there are fewer.
    """

    def __init__(self, instance: SlotsInstance) -> None:
        self.instance = instance
        jobs = instance.jobs
        self.weight: Floats = np.array([job.weight * job.iterations for job in jobs])
        self.compute_s: Floats = np.array([job.compute_s for job in jobs])
        self.gradient_bytes: Floats = np.array([job.gradient_bytes for job in jobs])
        self.fallback: Floats = np.array([job.fallback_bytes_per_s or 0.0 for job in jobs])
        switches, links = range(len(instance.switches)), range(len(instance.links))
        memory = [(s, own) for s in switches for own in together(jobs, [s in job.switches for job in jobs])]
        self.switch_of = np.array([s for s, _ in memory])
        self.per_slot: Floats = np.zeros((len(memory), len(jobs)))
        for row, (s, own) in enumerate(memory):
            for j in own:
                hold_s = jobs[j].hold_s(jobs[j].switches.index(s))
                self.per_slot[row, j] = instance.switches[s].payload_bytes / hold_s
        self.slots: Floats = np.array([float(instance.switches[s].slots) for s, _ in memory])
        self.memory: Floats = np.divide(1.0, self.per_slot, out=np.zeros_like(self.per_slot), where=self.per_slot > 0)
        crossed = [(e, own) for e in links for own in together(jobs, [e in job.links for job in jobs])]
        carried = np.zeros((len(crossed), len(jobs)))
        for row, (e, own) in enumerate(crossed):
            carried[row, own] = [float(jobs[j].links.count(e)) for j in own]
        rates = [instance.switches[s].aggregation_bytes_per_s for s, _ in memory]
        limited = [row for row, rate in enumerate(rates) if rate is not None]
        self.rows: Floats = np.vstack([self.memory, carried, (self.per_slot[limited] > 0).astype(float)])
        bandwidths = [instance.links[e].bandwidth_bytes_per_s for e, _ in crossed]
        self.limits: Floats = np.concatenate([self.slots, bandwidths, [rates[row] or 0.0 for row in limited]])
        named = [_since(jobs, own) for _, own in memory]
        self.row_names = (
            *(f"memory of {instance.switches[s].name}{named[row]}" for row, (s, _) in enumerate(memory)),
            *(f"link {instance.links[e].name}{_since(jobs, own)}" for e, own in crossed),
            *(f"aggregation rate of {instance.switches[memory[row][0]].name}{named[row]}" for row in limited),
        )
        self.cap: Floats = self._caps()
        self._set_lines()

    def _caps(self) -> Floats:
        nic = np.array([job.nic_bytes_per_s * float(job.sent_once) for job in self.instance.jobs])
        limits = np.broadcast_to(self.limits[:, None], self.rows.shape).copy()
        if self.instance.whole:
            own = (self.per_slot > 0) & (self.fallback == 0)
            left = self.slots[:, None] - (own.sum(axis=1)[:, None] - own)
            # A job that others leave no slot has to fall back, which rows of memory see to: nothing is divided by 0.
            limits[: len(self.slots)] = np.where(left > 0, left, self.slots[:, None])
        each = np.divide(limits, self.rows, out=np.full(self.rows.shape, np.inf), where=self.rows > 0)
        found: Floats = np.minimum(nic, each.min(axis=0))
        return found

    def _set_lines(self) -> None:
        lines = [_largest(job, weight) for job, weight in zip(self.instance.jobs, self.weight.tolist(), strict=True)]
        shape = (max(map(len, lines)), self.count)
        self.costs: Floats = np.zeros(shape)
        self.hidden: Floats = np.zeros(shape)
        self.begins: Floats = np.full(shape, np.inf)
        for j, own in enumerate(lines):
            for k, line in enumerate(own):
                self.costs[k, j], self.hidden[k, j], self.begins[k, j] = line

    @property
    def ends(self) -> Floats:
        """(m, n) rates up to which each is the largest: where the next one begins."""
        return np.vstack([self.begins[1:], np.full(self.count, np.inf)])

    @property
    def count(self) -> int:
        """Number of jobs."""
        return len(self.weight)

    @cached_property
    def cost(self) -> Floats:
        """(n,) weighted gradient bytes: over the rate, the weighted seconds of communication, hidden ones included."""
        return self.weight * self.gradient_bytes

    def only(
        self, chosen: npt.NDArray[np.bool_], cap: Floats, rows: Floats, limits: Floats, fallback: Floats | None = None
    ) -> "SlotArrays":
        """The same for chosen jobs, with other caps (n,), rows (k, n), limits (k,) and fallback rates (n,), else 0."""
        found = copy(self)
        for name in ("cost", "lost_back", "compute_total_s"):  # calculated anew
            vars(found).pop(name, None)
        for name in ("weight", "compute_s", "gradient_bytes"):
            setattr(found, name, getattr(self, name)[chosen])
        for name in ("per_slot", "memory", "costs", "hidden", "begins"):
            setattr(found, name, getattr(self, name)[:, chosen])
        found.fallback = np.zeros(int(chosen.sum())) if fallback is None else fallback[chosen]
        found.cap, found.rows, found.limits = cap[chosen], rows[:, chosen], limits
        return found

    @property
    def overlaps(self) -> bool:
        """Whether a job sends while it computes."""
        return bool(self.hidden.any())

    def lost(self, rates: Floats) -> Floats:
        """(n,) weighted seconds that jobs take at (n,) rates beyond computation; infinite at rate 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(self.costs > 0, self.costs / rates, 0.0) - self.hidden
        found: Floats = each.max(axis=0)
        return found

    @cached_property
    def lost_back(self) -> Floats:
        """(n,) the same for jobs that fall back; infinite for those that cannot."""
        return self.lost(self.fallback)

    def best_rates(self, asked: Floats) -> Floats:
        """(n,) rates up to the caps with the least of what is lost and ``asked`` (n,) for each byte per second."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(self.costs > 0, np.sqrt(self.costs / asked), 0.0)
        # What is lost falls ever slower: the first rate at which more is not worth what is asked.
        reached = np.maximum(free, self.begins)
        found: Floats = np.minimum(self.cap, np.where(reached <= self.ends, reached, np.inf).min(axis=0))
        return found

    @cached_property
    def compute_total_s(self) -> float:
        """Weighted seconds of computation, which nobody can change."""
        return float(self.weight @ self.compute_s)

    def given(self, slots: Sequence[Sequence[float]]) -> Floats:
        """(m, n) slots by rows of memory, of those that a plan gives."""
        found = np.zeros_like(self.per_slot)
        for j, own in enumerate(slots):
            for s, each in zip(self.instance.jobs[j].switches, own, strict=True):
                found[self.rows_of(j, s), j] = each
        return found

    def rows_of(self, job: int, switch: int) -> npt.NDArray[np.intp]:
        """Rows of memory of a switch while the job is there; of all its jobs only in one, unless they come and go."""
        return np.flatnonzero((self.switch_of == switch) & (self.per_slot[:, job] > 0))

    def slots_for(self, rates: Floats) -> Floats:
        """(m, n) slots that (n,) rates need at each switch; whole ones where the instance says so."""
        needed = self.memory * rates
        if not self.instance.whole:
            return needed
        # A rate that fills its slots exactly needs no further one.
        return np.ceil(needed * (1 - ROUNDING))

    def plan(self, rates: Floats, aggregated: npt.NDArray[np.bool_], slots: Floats | None = None) -> SlotPlan:
        """The answer with (n,) rates of jobs that are ``aggregated``; the others fall back.

        Slots are as few as do, or those given. Rates are lowered by ``ROUNDING``, so that no sum passes its limit.
        """
        lowered = rates * (1 - 4 * ROUNDING)
        given = self.slots_for(rates) * (1.0 if self.instance.whole else 1 - 2 * ROUNDING) if slots is None else slots
        jobs = self.instance.jobs
        return SlotPlan(
            instance=self.instance.name,
            slots=tuple(
                tuple(float(given[self.rows_of(j, s)[0], j]) if aggregated[j] else 0.0 for s in job.switches)
                for j, job in enumerate(jobs)
            ),
            rates_bytes_per_s=tuple(float(lowered[j]) if aggregated[j] else None for j in range(self.count)),
        )

    def objective(self, rates: Floats, aggregated: npt.NDArray[np.bool_]) -> float:
        """As ``evaluate`` has it, up to rounding."""
        times = self.weight * self.compute_s + self.lost(np.where(aggregated, rates, self.fallback))
        return float(times.sum() if self.instance.goal == "total" else times.max())


def together(jobs: Sequence[SlotJob], chosen: Sequence[bool]) -> list[list[int]]:
    """The largest sets of chosen jobs that are there at once, by time; one set of all where none comes or goes."""
    found, there = [], {j for j, job in enumerate(jobs) if chosen[j] and job.stay is None}
    # Who leaves makes room for who comes at the same time.
    events = [
        event
        for j, job in enumerate(jobs)
        if chosen[j] and job.stay is not None
        for event in ((job.stay.begins_s, 1, j), (job.stay.ends_s, 0, j))
    ]
    grown = not events
    for _, comes, j in sorted(events):
        if comes:
            there.add(j)
        else:
            if grown:
                found.append(sorted(there))
            there.remove(j)
        grown = bool(comes)
    return found or [sorted(there)]


def _since(jobs: Sequence[SlotJob], own: Sequence[int]) -> str:
    """When the last of some jobs came, in words; nothing where they are always there."""
    begins_s = [stay.begins_s for stay in (jobs[j].stay for j in own) if stay]
    return f" at {max(begins_s):.10g} s" if begins_s else ""


class _Line(NamedTuple):
    cost: float
    hidden: float
    begin: float


def _largest(job: SlotJob, weight: float) -> list[_Line]:
    """The lines of a job that are the largest at some rate, from the lowest rate on."""
    if not job.buckets:
        return [_Line(weight * job.gradient_bytes, 0.0, 0.0)]
    found: list[_Line] = []
    given = [(weight * float(left), weight * (job.compute_s - ready)) for ready, left in job.left_to_send]
    for cost, hidden in [*given, (0.0, 0.0)]:
        begin = 0.0
        while found:
            last = found[-1]
            begin = (last.cost - cost) / (last.hidden - hidden) if last.hidden > hidden else np.inf
            if begin > last.begin:
                break
            found.pop()
            begin = 0.0
        if begin < np.inf:
            found.append(_Line(cost, hidden, begin))
    return found
