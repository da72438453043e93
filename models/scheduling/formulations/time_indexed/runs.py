"""Which job runs at which width in which slot: the choices, their binaries, and runs in one piece."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.fastest import corner_widths
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import INTEGRALITY_TOL, ROUNDING

Widths = Literal["all", "envelope"]
Terms = list[tuple[float, Any]]


@dataclass(frozen=True)
class Choices:
    """What one job may do in the window: slots ``first .. last - 1``, widths and the progress of each.

    Progress is counted in slots at the fastest width, ``unit`` mini-batches each. ``wanted`` of it are left to do, a
    little less where only the finished job counts; ``gains`` stop there, as more is worth nothing.
    """

    job: int
    first: int
    last: int
    widths: tuple[int, ...]
    gains: tuple[float, ...]
    unit: float
    wanted: float
    finishing: bool
    """Whether its progress counts only once it is finished."""
    changed_gains: tuple[float, ...] = ()
    """Gains of a slot in which it changes; () if they are the same."""
    least: int = 1
    """Slots from a start or change to the next."""
    stride: int = 0
    """Where types matter: choice ``width + stride * k`` is a width in class k of servers, see :mod:`.classes`."""

    @property
    def widest(self) -> int:
        """The most workers that it may have."""
        return max(self.workers(choice) for choice in self.widths)

    def workers(self, choice: int) -> int:
        """How many workers a choice has."""
        return choice % self.stride if self.stride else choice

    def class_of(self, choice: int) -> int:
        """The class of a choice; 0 where types make no difference."""
        return choice // self.stride if self.stride else 0

    def shrunk(self, choice: int) -> int:
        """The widest choice of the same class that is no wider, which makes no less progress; 0 if there is none."""
        return self.at(self.workers(choice), self.class_of(choice))[0]

    def at_least(self, choice: int, k: int) -> bool:
        """Whether a choice is of class k or one after it."""
        return choice >= self.stride * k

    @property
    def reach(self) -> float:
        """The most progress that the job can make."""
        return min(self.wanted, self.last - self.first)

    @property
    def changing(self) -> bool:
        """Whether the job may change, and loses progress when it does or may not do so in every slot."""
        return self.last - self.first > 1 and (bool(self.changed_gains) or self.least > 1)

    def gain(self, width: int, changed: bool) -> float:
        """Progress in a slot at one of the widths."""
        return (self.changed_gains if changed and self.changed_gains else self.gains)[self.widths.index(width)]

    def slots_to_finish(self, gain: float) -> int:
        """Slots that it takes at one width."""
        return max(1, math.ceil(self.wanted / gain))

    def at(self, width: int, k: int = 0) -> tuple[int, float]:
        """The widest choice of class k that is no wider, which makes no less progress, and its gain; else (0, 0)."""
        first = self.stride * k
        found = [pair for pair in zip(self.widths, self.gains, strict=True) if first <= pair[0] <= first + width]
        return found[-1] if found else (0, 0.0)


def choices(instance: SchedulingInstance, widths: Widths, done: Sequence[float]) -> list[Choices]:
    """The choices of every job that is not finished.

    Widths that make no more progress of use than a smaller one are left out: workers can leave a job at no harm.
    """
    found = []
    for i, job in enumerate(instance.jobs):
        before = done[i] if done else 0.0
        finishing = instance.goal.counts_whole(job)
        left = job.minibatches * (float(DONE) if finishing else 1.0) - before
        if left <= 0:
            continue
        stride = job.max_workers + 1 if instance.accelerators.matter_to(i) else 0
        held = most_workers(instance.capacity, instance.demand[i])
        rates: dict[int, tuple[float, float]] = {}
        for k, own in enumerate(instance.accelerators.classes(i)):
            best, room = (0.0, 0.0), int(held[list(own.servers)].sum())
            for width in _widths(instance, i, widths):
                rate = instance.progress(i, width) * own.pace
                both = min(rate, left), min(rate * instance.changes.left(i), left)
                if width <= room and both > best:
                    rates[width + stride * k] = best = both
        unit, _ = max(rates.values())
        gains, changed_gains = zip(*((one / unit, other / unit) for one, other in rates.values()), strict=True)
        found.append(
            Choices(
                job=i,
                first=job.arrival,
                last=instance.last_slot(i),
                widths=tuple(rates),
                gains=gains,
                unit=unit,
                wanted=left / unit,
                finishing=finishing,
                changed_gains=() if changed_gains == gains else changed_gains,
                least=instance.changes.least(i),
                stride=stride,
            )
        )
    return found


def _widths(instance: SchedulingInstance, job: int, widths: Widths) -> Iterable[int]:
    if widths == "all":
        return instance.jobs[job].widths
    return [width for width in corner_widths(instance.jobs[job]) if width]


def add_runs(block: pyo.Block, jobs: Sequence[Choices], preemptive: bool) -> None:
    """``running[i, w, t]``: 1 if job i has w workers in slot t."""
    index = [(c.job, w, t) for c in jobs for t in range(c.first, c.last) for w in c.widths]
    block.RUNS = pyo.Set(dimen=3, initialize=index, doc="(job, width, slot)")
    # Of a job in one piece that has to finish, beginnings alone say what runs.
    follows = {c.job for c in jobs if c.finishing and not preemptive}
    block.running = pyo.Var(
        block.RUNS,
        domain=lambda _, i, w, t: pyo.UnitInterval if i in follows else pyo.Binary,
        doc="job has this many workers in the slot",
    )
    if not preemptive:
        _add_pieces(block, jobs)


def _add_pieces(block: pyo.Block, jobs: Sequence[Choices]) -> None:
    """Runs in one piece: a flow idle -> running -> over, so that ``running`` needs not be integer of itself."""
    starts = [(c.job, w, t) for c in jobs for w, t in possible_starts(c)]
    block.STARTS = pyo.Set(dimen=3, initialize=starts)
    block.begins = pyo.Var(block.STARTS, domain=pyo.Binary, doc="job begins at this width in the slot")
    stops = [(c.job, w, t) for c in jobs if not c.finishing for t in range(c.first + 1, c.last) for w in c.widths]
    block.STOPS = pyo.Set(dimen=3, initialize=stops)
    block.stops = pyo.Var(block.STOPS, bounds=(0, 1), doc="job has run at this width up to the slot before")
    by_job = {c.job: c for c in jobs}
    length = {
        (c.job, w): c.slots_to_finish(gain)
        for c in jobs
        if c.finishing
        for w, gain in zip(c.widths, c.gains, strict=True)
    }

    @block.Constraint(block.RUNS, doc="a job runs from its beginning to its end")
    def job_runs_in_one_piece(b: Any, i: int, w: int, t: int) -> Any:
        row = [(1.0, b.running[i, w, t])]
        if t > by_job[i].first:
            row.append((-1.0, b.running[i, w, t - 1]))
        if (i, w, t) in b.begins:
            row.append((-1.0, b.begins[i, w, t]))
        if (i, w, t) in b.stops:
            row.append((1.0, b.stops[i, w, t]))
        elif (i, w) in length and (i, w, t - length[i, w]) in b.begins:
            row.append((1.0, b.begins[i, w, t - length[i, w]]))
        return linear(row) == 0

    @block.Constraint([c.job for c in jobs], doc="a job begins once")
    def job_begins_once(b: Any, i: int) -> Any:
        return linear([(1.0, b.begins[i, w, t]) for w, t in possible_starts(by_job[i])]) <= 1


def possible_starts(c: Choices) -> Iterator[tuple[int, int]]:
    """(width, slot) in which a run in one piece may begin; a job that has to finish needs the time to do so."""
    for w, gain in zip(c.widths, c.gains, strict=True):
        latest = c.last - (c.slots_to_finish(gain) if c.finishing else 1)
        for t in range(c.first, latest + 1):
            yield w, t


def add_width_rows(
    block: pyo.Block, jobs: Sequence[Choices], most: Callable[[Choices, int], Any], preemptive: bool
) -> None:
    """At most one width a slot; ``most(c, t)`` is 0 where the goal says that the job does not run then, else 1."""
    rows = [(c, t) for c in jobs for t in range(c.first, c.last)]
    # Pieces have one width anyway, and so have jobs with a single one, or that have to begin.
    many = {c.job for c in jobs if preemptive and len(c.widths) > 1 and not c.changing}
    rows = [(c, t) for c, t in rows if c.job in many or most(c, t).__class__ is not int]
    where = {(c.job, t): c for c, t in rows}

    @block.Constraint(list(where), doc="a job has one width in a slot, if any")
    def job_has_one_width(b: Any, i: int, t: int) -> Any:
        c = where[i, t]
        return linear([(1.0, b.running[i, w, t]) for w in c.widths]) <= most(c, t)


def progress_terms(block: pyo.Block, c: Choices) -> list[tuple[float, Any]]:
    """Progress of a job over all its slots."""
    return [term for t in range(c.first, c.last) for term in slot_progress_terms(block, c, t)]


def slot_progress_terms(block: pyo.Block, c: Choices, slot: int) -> Terms:
    """Progress of a job in a slot: that of one in which it changes, and what it loses not where it does not."""
    i = c.job
    if not c.changing:
        return [(gain, block.running[i, w, slot]) for w, gain in zip(c.widths, c.gains, strict=True)]
    terms: Terms = []
    for w, gain, changed in zip(c.widths, c.gains, c.changed_gains or c.gains, strict=True):
        terms += [(changed, block.running[i, w, slot]), (gain - changed, block.starts[i, w, slot])]
        if slot > c.first:
            terms.append((gain - changed, block.kept[i, w, slot]))
    return [(factor, variable) for factor, variable in terms if factor]


def width_terms(block: pyo.Block, c: Choices, slot: int, factor: float = 1.0) -> Terms:
    """Workers of a job in a slot, times a factor."""
    return [(factor * c.workers(w), block.running[c.job, w, slot]) for w in c.widths]


def begin_terms(block: pyo.Block, c: Choices, slot: int) -> Terms:
    """1 if a job in one piece begins in the slot."""
    return [(1.0, block.begins[c.job, w, slot]) for w in c.widths if (c.job, w, slot) in block.begins]


def end_terms(block: pyo.Block, c: Choices, slot: int) -> Terms:
    """1 if a job in one piece has its last slot before this one."""
    if not c.finishing:
        return [(1.0, block.stops[c.job, w, slot]) for w in c.widths if (c.job, w, slot) in block.stops]
    starts = [(w, slot - c.slots_to_finish(gain)) for w, gain in zip(c.widths, c.gains, strict=True)]
    return [(1.0, block.begins[c.job, w, t]) for w, t in starts if (c.job, w, t) in block.begins]


def set_runs(block: pyo.Block, widths: Mapping[tuple[int, int], int], preemptive: bool) -> None:
    """Values of ``running`` and of pieces from ``widths[job, slot]``, which are among the choices."""
    for variable in block.running.values():
        variable.set_value(0, skip_validation=True)
    for (i, t), w in widths.items():
        block.running[i, w, t].set_value(1, skip_validation=True)
    if preemptive:
        return
    for variable in (*block.begins.values(), *block.stops.values()):
        variable.set_value(0, skip_validation=True)
    for (i, t), w in widths.items():
        if widths.get((i, t - 1)) != w and (i, w, t) in block.begins:
            block.begins[i, w, t].set_value(1, skip_validation=True)
        if widths.get((i, t + 1)) != w and (i, w, t + 1) in block.stops:
            block.stops[i, w, t + 1].set_value(1, skip_validation=True)


def useful_slots(c: Choices, slots: Mapping[int, tuple[int, float]], whole: bool = True) -> dict[int, float]:
    """Gain by slot, of (width, gain) by slot in order: up to the slot after which there is nothing left to do.

    With ``whole``, nothing of a job whose progress counts only once it is finished, if it never is.
    """
    useful: dict[int, float] = {}
    total = 0.0
    for t, (width, gain) in slots.items():
        if not width or not c.first <= t < c.last or total >= c.wanted * (1 - ROUNDING):
            continue
        useful[t] = gain
        total += gain
    return {} if whole and c.finishing and total < c.wanted * (1 - ROUNDING) else useful


def read_widths(block: pyo.Block) -> dict[tuple[int, int], int]:
    """Width by (job, slot).

    Raises
    ------
    SolverError
        If a job runs in part.
    """
    found = {}
    for (i, w, t), variable in block.running.items():
        value = variable.value or 0.0
        if value > 0.5:
            found[i, t] = w
        if abs(value - round(value)) > INTEGRALITY_TOL:
            raise SolverError(f"job {i} runs to {value:g} at width {w} in slot {t}; the values describe no schedule")
    return found
