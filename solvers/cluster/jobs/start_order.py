r"""The exact program: jobs by their starts, or slot by slot, where what is dominated is left out.

**Rigid.** Take the jobs of any schedule by their starts, and let each begin as early as its servers are free, but not
before the one ahead of it. None begins later than before: at its old start the jobs ahead of it that still run are
among those that did (they begin, and so end, no later). So one order and the widths are all there is to choose, and a
state is which jobs have begun, when the last one did, and which servers are busy until when. Of two states with the
same jobs, one that costs no more, whose last start is no later, and that has no more servers busy at any time from then
on, dominates.

**Slots.** A state is what is left of every job; less of every job at no more cost dominates.

Either way a state is dropped whose cost, with each job left alone at its best width, reaches the best schedule known.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import lcm
from typing import Any, ClassVar, NamedTuple

from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.cluster.jobs.lists import WIDTHS, best_list
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_OPENING = 1000
"""States of each search with one width a job: seconds at most, for a schedule that prunes."""
_MOST_JOBS = 24
"""Sets of more jobs are too many to be gone through."""


class _Rigid(NamedTuple):
    """Jobs that have begun, the start of the last, (end, servers) of those that run, ends so far, what was chosen."""

    begun: int
    last: int
    running: tuple[tuple[int, int], ...]
    ends: tuple[int | None, ...]
    chosen: Any


class _Slots(NamedTuple):
    """The next slot, parts of the jobs that are left, ends so far, what was chosen."""

    slot: int
    left: tuple[Fraction, ...]
    ends: tuple[Fraction | None, ...]
    chosen: Any


@dataclass(frozen=True)
class StartOrder(CertifiedMethod):
    """All orders of starts and all widths, or all widths of every slot, best first, without what is dominated.

    References
    ----------
    Ours.
    """

    name: ClassVar[str] = "start-order"
    family: ClassVar[str] = "cluster"
    covers: ClassVar[type[JobsInstance]] = JobsInstance
    uses: ClassVar[frozenset[str]] = frozenset()

    def refuses(self, instance: JobsInstance) -> str | None:
        """Too many jobs."""
        if len(instance.jobs) > _MOST_JOBS:
            return f"it has {len(instance.jobs)} jobs, and at most {_MOST_JOBS} are gone through"
        return None

    def find(self, instance: JobsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best schedule; at the time limit the best known one and the least bound of what is left."""
        search = Search(instance, clock)
        for rule in WIDTHS.values():
            search.learn(Search(with_widths(instance, rule), clock), _OPENING)
        bound = search.run()
        return MethodOutput(search.best, {"states": float(search.states)}, float(bound) * (1 - ROUNDING))


def with_widths(instance: JobsInstance, rule: Callable[[ClusterJob], int]) -> JobsInstance:
    """The same jobs, each with the one width that a rule gives it."""
    jobs = []
    for job in instance.jobs:
        width = rule(job)
        only = [step if place == width else None for place, step in enumerate(job.step_s, start=1)]
        jobs.append(job.model_dump() | {"step_s": only, "least_s": ()})
    return instance.changed(jobs=jobs)


class Search:
    """Best first: a state with the least bound is taken on, of ties the last one made.

    Parameters
    ----------
    instance : JobsInstance
    clock : Clock
    """

    def __init__(self, instance: JobsInstance, clock: Clock) -> None:
        self.instance, self.clock, self.states = instance, clock, 0
        jobs = instance.jobs
        # Counted in ticks, of which every time is a whole number: fractions of floats are ten times as slow.
        times = [Fraction(job.arrival_s) for job in jobs] + [Fraction(job.deadline_s or 0) for job in jobs]
        times += [job.length_s(width) for job in jobs for width in job.widths] + [Fraction(instance.slot_s or 0)]
        self.ticks = lcm(*(each.denominator for each in times))
        self.parts = lcm(*(Fraction(job.weight).denominator for job in jobs))
        self.slot = int(Fraction(instance.slot_s or 0) * self.ticks)
        self.arrival = [int(Fraction(job.arrival_s) * self.ticks) for job in jobs]
        self.due = [int(Fraction(job.deadline_s or 0) * self.ticks) for job in jobs]
        self.weight = [int(Fraction(job.weight) * self.parts) for job in jobs]
        self.length = [{width: int(job.length_s(width) * self.ticks) for width in job.widths} for job in jobs]
        self.shortest = [min(own.values()) for own in self.length]
        self.work = [min(width * ticks for width, ticks in own.items()) for own in self.length]
        self.late = instance.objective == "weighted_tardiness"
        value, self.best = best_list(instance)
        self.value: Any = value * self._units
        self._kept: dict[Any, list[Any]] = {}
        self._twin = [instance.first_twin(place) for place in range(len(instance.jobs))]

    def learn(self, narrow: "Search", most: int) -> None:
        """Take over what a search with fewer widths finds within a number of states."""
        narrow.run(most)
        value = Fraction(narrow.value) / narrow._units * self._units
        if value < self.value:
            self.value, self.best = value, narrow.best

    def run(self, most: int | None = None) -> Fraction:
        """A bound on every schedule: the best one's value if the search ends; else after about ``most`` states."""
        heap: list[tuple[Any, int, Any]] = []
        number, root = count(), self._root()
        heapq.heappush(heap, (self._bound(root), next(number), root))
        while heap:
            bound, _, state = heapq.heappop(heap)
            if bound >= self.value:
                break
            if self.clock.expired or (most is not None and self.states > most):
                return Fraction(bound) / self._units
            if self._dropped(state):
                continue
            for child in self._children(state):
                least = self._bound(child)
                if least < self.value and self._keep(child):
                    self.states += 1
                    if None not in child.ends:
                        self.value, self.best = least, self._answer(child)
                        self.clock.report(float(Fraction(least) / self._units))
                    else:
                        heapq.heappush(heap, (least, -next(number), child))
        return Fraction(self.value) / self._units

    @property
    def _units(self) -> int:
        """Of an objective in ticks."""
        return self.ticks if self.instance.objective == "makespan" else self.ticks * self.parts

    def _cost(self, ends: Iterable[Any]) -> Any:
        """The objective of ends, in ticks."""
        if self.instance.objective == "makespan":
            return max(ends)
        dues = self.due if self.late else [0] * len(self.due)
        return sum(w * max(0, end - due) for w, end, due in zip(self.weight, ends, dues, strict=True))

    def _first(self, place: int, earliest: Any) -> Any:
        """When a job may begin at the earliest."""
        start = max(earliest, self.arrival[place])
        return start if not self.slot else -(-start // self.slot) * self.slot

    def _root(self) -> Any:
        jobs = self.instance.jobs
        ends = (None,) * len(jobs)
        if self.instance.mode == "rigid":
            return _Rigid(0, 0, (), ends, None)
        return _Slots(0, (Fraction(1),) * len(jobs), ends, None)

    def _bound(self, state: Any) -> Any:
        instance, rigid = self.instance, isinstance(state, _Rigid)
        now = state.last if rigid else state.slot * self.slot
        ends, work = [], 0
        for place, own in enumerate(state.ends):
            end = own
            if end is None:
                part = 1 if rigid else state.left[place]
                end = self._first(place, now) + part * self.shortest[place]
                work += part * self.work[place]
            ends.append(end)
        found = self._cost(ends)
        if instance.objective == "makespan" and work:
            still = sum(max(0, end - now) * servers for end, servers in state.running) if rigid else 0
            found = max(found, now + Fraction(work + still) / instance.servers)
        return found

    def _children(self, state: Any) -> Iterator[Any]:
        return self._next_jobs(state) if isinstance(state, _Rigid) else self._next_slots(state)

    def _next_jobs(self, state: _Rigid) -> Iterator[_Rigid]:
        instance = self.instance
        for place, job in enumerate(instance.jobs):
            twin = self._twin[place]
            # Of interchangeable jobs the first one begins first.
            if state.begun >> place & 1 or (twin is not None and not state.begun >> twin & 1):
                continue
            earliest = max(state.last, self.arrival[place])
            for width in job.widths:
                start = free_from(state.running, earliest, instance.servers - width)
                end = start + self.length[place][width]
                running = (*(each for each in state.running if each[0] > start), (end, width))
                ends = (*state.ends[:place], end, *state.ends[place + 1 :])
                yield _Rigid(
                    state.begun | 1 << place, start, tuple(sorted(running)), ends, (state.chosen, place, start, width)
                )

    def _next_slots(self, state: _Slots) -> Iterator[_Slots]:
        instance = self.instance
        slot = self.slot
        now = state.slot * slot
        open_ = [place for place, end in enumerate(state.ends) if end is None]
        here = [place for place in open_ if self.arrival[place] <= now]
        for widths in _shares(instance, here, instance.servers):
            if not any(widths) and len(here) == len(open_):
                continue  # nobody is waited for
            left, ends = list(state.left), list(state.ends)
            for place, width in zip(here, widths, strict=True):
                if width:
                    length = self.length[place][width]
                    if left[place] * length <= slot:
                        ends[place], left[place] = now + left[place] * length, Fraction(0)
                    else:
                        left[place] -= Fraction(slot, length)
            given = tuple((place, width) for place, width in zip(here, widths, strict=True) if width)
            yield _Slots(state.slot + 1, tuple(left), tuple(ends), (state.chosen, state.slot, given))

    def _keep(self, state: Any) -> bool:
        """Whether no state dominates it; those that it dominates are forgotten."""
        key = state.begun if isinstance(state, _Rigid) else state.slot
        kept = self._kept.setdefault(key, [])
        if any(self._dominates(other, state) for other in kept):
            return False
        kept[:] = [other for other in kept if not self._dominates(state, other)]
        kept.append(state)
        return True

    def _dropped(self, state: Any) -> bool:
        """Whether it has been forgotten since."""
        key = state.begun if isinstance(state, _Rigid) else state.slot
        kept = self._kept.get(key)
        return kept is not None and not any(other is state for other in kept)

    def _dominates(self, one: Any, other: Any) -> bool:
        if self._paid(one) > self._paid(other):
            return False
        if isinstance(one, _Slots):
            return all(a <= b for a, b in zip(one.left, other.left, strict=True))
        if one.last > other.last:
            return False
        moments = [other.last, *(end for end, _ in other.running)]
        return all(_used(one.running, moment) <= _used(other.running, moment) for moment in moments)

    def _paid(self, state: Any) -> Any:
        """The objective of the jobs that have an end."""
        return self._cost([0 if end is None else end for end in state.ends])

    def _answer(self, state: Any) -> JobsSchedule:
        runs: list[list[Stretch]] = [[] for _ in self.instance.jobs]
        chosen = state.chosen
        while chosen is not None:
            if isinstance(state, _Rigid):
                chosen, place, start, width = chosen
                runs[place].append(Stretch(start=str(Fraction(start, self.ticks)), servers=width))
            else:
                chosen, slot, given = chosen
                for place, width in given:
                    runs[place].insert(0, Stretch(start=str(slot), servers=width))
        return JobsSchedule(instance=self.instance.name, runs=tuple(map(tuple, runs)))


def free_from(running: tuple[tuple[int, int], ...], earliest: int, most: int) -> int:
    """The first moment from ``earliest`` on at which at most ``most`` servers are busy."""
    for moment in sorted({earliest, *(end for end, _ in running if end > earliest)}):
        if _used(running, moment) <= most:
            return moment
    raise AssertionError("in the end no server is busy")


def _used(running: tuple[tuple[int, int], ...], moment: int) -> int:
    return sum(servers for end, servers in running if end > moment)


def _shares(instance: JobsInstance, places: list[int], servers: int) -> Iterator[tuple[int, ...]]:
    """Every way to give servers to jobs for a slot."""
    if not places:
        yield ()
        return
    for width in (0, *instance.jobs[places[0]].widths):
        if width <= servers:
            for rest in _shares(instance, places[1:], servers - width):
                yield (width, *rest)
