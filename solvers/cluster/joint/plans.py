"""What is known of the plans of every choice: a best plan, a time that no plan is below, and how they are sharpened."""

import itertools
import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.models.cluster.joint.bounds import simple_step_bound
from ddlopt.models.cluster.joint.instance import NESTED, Choice, JointInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import ContradictionError, DdloptError, InstanceError, SolutionError
from ddlopt.models.files import write_whole
from ddlopt.models.problem import path_of
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.cluster.joint.crew import Crew, Outcome, Task
from ddlopt.solvers.heuristic import Clock

OPENING = {"codesign": "alternating", "deployment/step": "megatron-rule", "deployment/pipeline": "piper"}
"""Quick heuristics of papers, for a first plan; by problem."""
_FIRST_S = 2.0
"""Seconds for a problem the first time; each further time twice as many."""
_SAME = 1e-9
"""What a bound of a floating-point solver may be above a plan: the same number."""
Pair = tuple[int, int]
"""A workload and a number of servers."""


@dataclass
class Known:
    """Of one inner problem.

    Parameters
    ----------
    lower, upper : float
        No plan is below the one; the plan takes the other. Infinite: there is no plan, or none is known.
    answer : Solution, optional
    budget_s : float
        For the next solve.
    opened, closed : bool
        Whether the quick heuristic was asked, and whether the plan is within the gap asked for.
    """

    lower: float
    upper: float = math.inf
    answer: Solution | None = None
    budget_s: float = _FIRST_S
    opened: bool = False
    closed: bool = False

    def within(self, gap: float) -> bool:
        """Whether there is a plan within a relative gap of what no plan is below."""
        return math.isfinite(self.upper) and self.upper - self.lower <= gap * self.upper


class Plans:
    """Intervals of step times of all choices.

    Parameters
    ----------
    instance : JointInstance
    clock : Clock
    gap : float
        At which an inner problem counts as solved.
    seed : int
    kept : str
        A folder, in which what is found is kept by the digest of the problem, and looked for; empty: nowhere.
    crew : Crew, optional
        Who solves inner problems; None: this process.
    """

    def __init__(
        self,
        instance: JointInstance,
        clock: Clock,
        gap: float,
        seed: int = 0,
        kept: str = "",
        crew: Crew | None = None,
    ) -> None:
        self.instance, self.clock, self.gap, self.seed, self.crew = instance, clock, gap, seed, crew or Crew()
        self._kept = Path(kept) if kept else None
        self.solves = 0
        self.spare_s = 0.0
        """At the end, in which nothing is solved: for a schedule with what was found."""
        self._known: dict[tuple[int | None, int | None], Known] = {}
        self.pairs: dict[Pair, Choice] = {
            (place, choice.servers): choice
            for place, workload in enumerate(instance.workloads)
            for choice in workload.choices
        }
        for choice in self.pairs.values():
            if choice.problem is not None and (key := _key(choice)) not in self._known:
                self._known[key] = self._first(choice)
        self._spread()

    def _first(self, choice: Choice) -> Known:
        simple = simple_step_bound(self.instance, choice)
        found = Known(math.inf, closed=True) if simple is None else Known(simple)
        before = None if self._kept is None else self._found_before(choice)
        if before is not None:
            with suppress(SolutionError):
                self._take(found, choice, before)
        return found

    def _found_before(self, choice: Choice) -> Outcome | None:
        """What an earlier run has kept; None where there is nothing, or a file that somebody has spoiled."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(self._file(choice).read_text(encoding="utf-8"))
            lower = float(told["lower"])
            if math.isfinite(lower):  # that there is no plan is not kept, and would be believed
                return Outcome(lower, told["answer"], False, False)
        return None

    def _file(self, choice: Choice) -> Path:
        inner = self.instance.inner(choice)
        assert inner is not None
        assert self._kept is not None
        return self._kept / f"{inner.digest}.json"

    def known(self, pair: Pair) -> Known | None:
        """What is known of a pair; None where nothing is to be planned."""
        return self._known.get(_key(self.pairs[pair])) if self.pairs[pair].problem is not None else None

    def runs(self, pair: Pair) -> bool:
        """Whether there is a plan, or nothing to plan."""
        own = self.known(pair)
        return own is None or own.answer is not None

    def all_known(self) -> list[Known]:
        """Of every inner problem."""
        return list(self._known.values())

    def lower(self, workload: int, choice: Choice) -> float | None:
        """For :meth:`JointInstance.at`: a time that no plan is below."""
        found = self._known[_key(choice)].lower
        return None if math.isinf(found) else found

    def upper(self, workload: int, choice: Choice) -> float | None:
        """Likewise: the time of the best plan; None where there is none yet."""
        found = self._known[_key(choice)].upper
        return None if math.isinf(found) else found

    def low(self) -> JobsInstance:
        """Jobs at times that no plan is below: every schedule of these bounds every one with plans."""
        return self.instance.at(self.lower, "least", crossing=True)

    def high(self) -> JobsInstance | None:
        """Jobs at the times of plans; None where a job has none yet."""
        try:
            return self.instance.at(self.upper, "jobs", crossing=True)
        except InstanceError:
            return None

    def sharpen(self, wanted: Iterable[Pair], until: Callable[[], bool]) -> int:
        """Solve inner problems, in this order, until the time is up; how many were solved."""
        queue = list({_key(self.pairs[pair]): pair for pair in wanted}.values())
        queue = [pair for pair in queue if (own := self.known(pair)) is not None and not own.closed]
        done = 0
        while queue and not self._late() and not (done and until()):
            batch, queue = queue[: self.crew.size], queue[self.crew.size :]
            tasks = [self._task(pair) for pair in batch]
            for pair, task, outcome in zip(batch, tasks, self.crew.outcomes(tasks, self._late), strict=True):
                own = self._known[_key(self.pairs[pair])]
                if task.method:
                    own.opened = True
                else:
                    own.budget_s *= 2
                self._take(own, self.pairs[pair], outcome)
                self._keep(self.pairs[pair], own)
                done += 1
                self.clock.interrupted |= outcome.interrupted
            self._spread()
        self.solves += done
        return done

    def _late(self) -> bool:
        return self.clock.expired or self.clock.left_s <= self.spare_s

    def _task(self, pair: Pair) -> Task:
        choice = self.pairs[pair]
        inner, own = self.instance.inner(choice), self._known[_key(choice)]
        assert inner is not None
        method = "" if own.opened else OPENING[path_of(inner)]
        seconds = max(0.01, min(own.budget_s, self.clock.left_s - self.spare_s))
        return Task(inner.model_dump(mode="json"), method, seconds, self.gap, self.seed)

    def _take(self, own: Known, choice: Choice, outcome: Outcome) -> None:
        own.lower = max(own.lower, outcome.lower * (1 - ROUNDING))
        if outcome.answer is not None:
            inner = self.instance.inner(choice)
            assert inner is not None
            self._offer(own, choice, problem_of(inner).solution.from_data(outcome.answer))
        if own.lower > own.upper * (1 + _SAME):
            inner = self.instance.inner(choice)
            raise ContradictionError(f"'{inner and inner.name}': a plan takes {own.upper!r} s, and none {own.lower!r}")
        own.lower = own.lower if math.isinf(own.upper) else min(own.lower, own.upper)
        own.closed |= outcome.closed or own.within(self.gap)

    def _offer(self, own: Known, choice: Choice, answer: Solution) -> None:
        """Keep a plan if it is feasible here, and better: its time is that of the check."""
        inner = self.instance.inner(choice)
        assert inner is not None
        answer = answer.changed(instance=inner.name, instance_digest=None)
        with suppress(DdloptError):
            told = problem_of(inner).evaluate(inner, answer)
            if told.feasible and told.objective is not None:
                # What is reserved is more than 0, also for a plan that takes no time.
                upper = max(float(told.objective), 1e-12) * (1 + ROUNDING)
                if upper < own.upper:
                    own.upper, own.answer = upper, answer

    def _spread(self) -> None:
        """Where plans are nested: a plan for fewer devices is one for more, and what bounds more bounds fewer."""
        for place, each in enumerate(self.instance.problems):
            if path_of(each) not in NESTED:
                continue
            own = [choice for choice in self.pairs.values() if choice.problem == place]
            chain = sorted({_key(choice): choice for choice in own}.values(), key=lambda c: c.devices or each.devices)
            for one, next_ in itertools.pairwise(chain):
                less, more = self._known[_key(one)], self._known[_key(next_)]
                if less.answer is not None and less.upper < more.upper:
                    self._offer(more, next_, less.answer)
            for one, next_ in zip(chain[-2::-1], chain[:0:-1], strict=True):
                less, more = self._known[_key(one)], self._known[_key(next_)]
                less.lower = max(less.lower, more.lower)
                less.closed |= less.within(self.gap)

    def _keep(self, choice: Choice, own: Known) -> None:
        if self._kept is None or own.answer is None:
            return
        data = {"lower": own.lower, "answer": own.answer.model_dump(mode="json")}
        with suppress(OSError):
            self._kept.mkdir(parents=True, exist_ok=True)
            write_whole(self._file(choice), json.dumps(data))


def _key(choice: Choice) -> tuple[int | None, int | None]:
    return choice.problem, choice.devices
