"""A bound from slots that are counted together, and a search that solves more and more slots at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlans
from ddlopt.frontier.scheduling.shares.bandwidths import best_with_bandwidths, feasible
from ddlopt.frontier.scheduling.shares.fair_shares import FairSharing
from ddlopt.frontier.scheduling.slot_counts.program import Program, SlotModel, utility_of
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.pool import Workers, schedule_of_places
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.rings.rings import Ring
from ddlopt.solvers.backends.matrix import Vector
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """Parts of the time for the parts of the search."""

    most_choices: int = 20_000
    """Choices of a width in a slot beyond which the integer program does not get below its relaxation."""
    first_share: float = 0.15
    """Part of the time for a first schedule, most of which it seldom needs."""
    bound_share: float = 0.4
    """Part of the time for the bound; the solutions on the way to it are good beginnings."""
    plans_share: float = 0.3
    """Part of the time for the bound by plans of jobs, which mostly takes some seconds."""
    neighbourhood_s: float = 20.0
    """Seconds for the program of some slots, at most, as long as it is not that of all slots."""


_EFFORT = Effort()


@dataclass(frozen=True)
class SlotCounts(Heuristic, uses=("seed", "start")):
    r"""Slots between two arrivals or deadlines counted together, then some slots at a time, then all.

    Let :math:`A z \le b` be the model of one slot
    (:class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding`: widths, places and
    rings), and :math:`n_k` the slots of interval k. The sum of :math:`n_k` solutions of it is an integer solution of
    :math:`A z_k \le n_k b`, so that

    .. math::
        \max\ & \textstyle\sum_i \bar u_i(p_i) \\
        & A z_k \le n_k b,\qquad z_k \in \mathbb{Z}^m,\qquad
          p_i \le \textstyle\sum_{kw} \min\bigl(1, \varphi_i(w) / F_i\bigr)\, x_{iwk}(z_k),\qquad 0 \le p_i \le 1

    bounds all schedules. There is no symmetry between slots left, and that jobs want no more than :math:`F_i` is
    counted with whole slots, which no relaxation of one job or one slot alone does. It is exact for intervals of one
    slot; its widths are a schedule, where a longer interval is given the best :math:`n_k` slots of its own.

    Before that, plans of jobs within patterns of slots bound all schedules on one pool of all servers that only so many
    rings leave (:class:`~ddlopt.frontier.scheduling.job_plans.patterned_plans.PatternedPlans`).

    From there, or from :class:`~ddlopt.frontier.scheduling.shares.fair_shares.FairSharing` if that is better, some
    slots at a time are solved anew beside all others: first each by itself, then as many at once as do not gain by
    fewer, drawn at random, and in the end all, which proves the optimum.

    Where bandwidth is shared, every ring has its own in all of this but the bound by plans; the best schedule, and that
    of ``FairSharing``, is given the best bandwidths in the end.

    Parameters
    ----------
    bound : bool
        If not, the bound is left out, and it is a search alone.

    References
    ----------
    P. Shaw, 1998 (large neighbourhood search). Counting whole slots together is ours.
    """

    bound: bool = True

    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.scheduling.prices.plan_kernels",
        "ddlopt.frontier.scheduling.prices.row_kernels",
    )

    @property
    def name(self) -> str:
        """``slot-counts``."""
        return "slot-counts"

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """Those of the combinatorial bound and of the first schedule."""
        return tuple(dict.fromkeys((*self.kernels, *PROBLEM.kernels_for(instance), *FairSharing.kernels)))

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """What the model of a slot does not cover, and objectives that are no sums over jobs."""
        if (reason := refusal(instance)) is not None:
            return reason
        if not instance.goal.counts_utilities:
            return f"the objective is {instance.objective!r}, not 'utility'"
        if not instance.preemptive:
            return "jobs run in one piece, but its slots come in any order"
        if instance.changes.cost_time:
            return "changes cost time, but its slots come in any order"
        if instance.energy_price_per_j:
            return "energy has a price, and it counts progress alone"
        if not all(job.utility.concave for job in instance.jobs):
            return "a utility is all or nothing, and it takes concave ones"
        choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
        if choices > _EFFORT.most_choices:
            return f"there are {choices} choices of a width in a slot, more than {_EFFORT.most_choices}"
        jobs = tuple(job.model_copy(update={"arrival": 0, "deadline": None}) for job in instance.jobs)
        return SlotEmbedding().refuses(instance.changed(slots=1, jobs=jobs, bandwidth="reserved"))

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule found, and how many programs it took."""
        search = _Search(instance, clock, seed)
        if start is not None:
            start.belongs_to(instance)
        if start is not None and not search.shared:
            search.take(start)
        else:
            search.begin()
        if self.bound:
            search.bound_by_plans()
            search.count_together()
        search.improve()
        found = search.schedule()
        if search.shared:
            candidates = [feasible(instance, one) for one in (found, start, search.first) if one is not None]
            found = best_with_bandwidths(instance, candidates, search.limits(math.inf), clock, search.bound)
        return found, {"programs": search.programs}

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """The least of the bounds reported."""
        return clock.best_bound(instance.sense)


class _Search:
    """Widths, places and rings of all slots, and the best bound."""

    def __init__(self, instance: SchedulingInstance, clock: Clock, seed: int) -> None:
        self.instance, self.clock, self.seed = instance, clock, seed
        self.shared = instance.bandwidth == "shared"
        self.reserved = instance.changed(bandwidth="reserved") if self.shared else instance
        self.spans = intervals(instance)
        self.models = [SlotModel.of(self.reserved, span) for span in self.spans]
        self.slots = [(t, k) for k, span in enumerate(self.spans) for t in range(span.first, span.last)]
        self.places: list[dict[int, Workers]] = [{} for _ in range(instance.slots)]
        self.rings: list[dict[int, Ring]] = [{} for _ in range(instance.slots)]
        bound = PROBLEM.tightest_bound(instance)
        assert bound is not None, "utilities have one"
        self.bound = bound
        self.value, self.programs = 0.0, 0
        self.first: Schedule | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time is up, or the schedule as near to the bound as is wanted."""
        return self.clock.expired or self.bound - self.value <= self.clock.gap * abs(self.value)

    def schedule(self) -> Schedule:
        """The one that the search is at."""
        return schedule_of_places(self.instance, self.places, self.rings)

    def begin(self) -> None:
        """Go on from shares of time, rounded: a second or two, where programs of all slots may take the whole time."""
        found = self._rounded_shares(self.reserved)
        if found is not None:
            self.take(found)
        if self.shared and not self.is_over:
            self.first = self._rounded_shares(self.instance)

    def _rounded_shares(self, instance: SchedulingInstance) -> Schedule | None:
        method = FairSharing()
        if method.refuses(instance) is not None:
            return None
        try:
            found = method.solve(instance, self.limits(_EFFORT.first_share * self.clock.left_s), self.seed)
        except NoSolutionError:
            return None
        self.clock.interrupted |= found.interrupted
        return found.solution if isinstance(found.solution, Schedule) else None

    def take(self, start: Schedule) -> None:
        """Go on from a schedule."""
        for run in start.runs:
            for t in range(run.start, run.end):
                self.places[t][run.job], self.rings[t][run.job] = run.workers, run.ring
        self._note()

    def _note(self, bound: float | None = None) -> None:
        self.value = utility_of(self.instance, self._done(()))
        if bound is not None:
            self.bound = min(self.bound, bound)
        self.clock.report(self.value, self.bound)

    def _widths(self, t: int) -> dict[int, int]:
        return {i: sum(count for _, count in workers) for i, workers in self.places[t].items()}

    def _done(self, without: Sequence[int]) -> Vector:
        """(I,) part of its mini-batches that each job does in all other slots."""
        done = np.zeros(len(self.instance.jobs))
        for t, k in self.slots:
            if t not in without:
                for i, part in self.models[k].done(self._widths(t)).items():
                    done[i] += part
        return done

    def limits(self, most_s: float) -> Limits:
        """Those of one program."""
        return Limits(self.clock.part(most_s=most_s), gap=self.clock.gap / 2)

    def _solve(self, program: Program, most_s: float) -> tuple[Any, Vector]:
        """The outcome and values of a program; its bound is one for rings that have their own bandwidth."""
        self.programs += 1
        with self.clock.lending_ctrl_c():
            outcome, values = program.solve(self.limits(most_s), self.seed)
        self.clock.interrupted |= outcome.interrupted
        return outcome, values

    def bound_by_plans(self) -> None:
        """The bound by whole plans of jobs within patterns of slots."""
        jobs = None if self.is_over else PatternedJobs.of(self.instance)
        if jobs is None:
            return
        reserve_s = 0.0 if self.clock.left_s == np.inf else (1 - _EFFORT.plans_share) * self.clock.left_s
        patterned = PatternedPlans(jobs, self.clock)
        try:
            patterned.improve(self.value * (1 + self.clock.gap), reserve_s)
        finally:
            patterned.master.close()
        self._note(patterned.best.bound)

    def count_together(self) -> None:
        """The bound, and slots of the widths that it has."""
        if self.is_over:
            return
        program = Program(self.instance, np.zeros(len(self.instance.jobs)))
        first = [program.add_slots(model, span.slots) for span, model in zip(self.spans, self.models, strict=True)]
        outcome, values = self._solve(program, _EFFORT.bound_share * self.clock.left_s)
        if outcome.bound is not None and not self.shared:
            self._note(outcome.bound)
        if outcome.objective is None or outcome.objective <= self.value:
            return
        kept = self.value, self.places, self.rings
        self.places, self.rings = [{} for _ in self.places], [{} for _ in self.rings]
        longer: list[tuple[int, dict[tuple[int, int], int]]] = []
        for k, (span, model) in enumerate(zip(self.spans, self.models, strict=True)):
            here = values[first[k] : first[k] + len(model.linear.columns)]
            if span.slots == 1:
                self._put(span.first, k, here)
            else:
                longer.append((k, {pair: round(here[j]) for pair, j in model.column.items() if here[j] > 0.5}))
        self.value = utility_of(self.instance, self._done(()))
        for k, often in longer:
            if not self.clock.expired:
                self._anew([slot for slot in self.slots if slot[1] == k], _EFFORT.neighbourhood_s, often)
        if self.value <= kept[0]:
            self.value, self.places, self.rings = kept
        self._note()

    def _put(self, t: int, k: int, values: Vector) -> None:
        self.places[t], self.rings[t] = self.models[k].places(values)

    def _anew(
        self, slots: Sequence[tuple[int, int]], most_s: float, counts: Mapping[tuple[int, int], int] | None = None
    ) -> bool:
        """Solve these slots beside all others, of one interval if ``counts`` says how often each width may occur.

        Returns whether that was to the end.
        """
        program = Program(self.instance, self._done([t for t, _ in slots]))
        first = [program.add_slots(self.models[k], 1, None if counts else self._widths(t)) for t, k in slots]
        if counts is not None:
            program.limit(self.models[slots[0][1]], first, counts)
        outcome, values = self._solve(program, most_s)
        if counts is None and len(slots) == len(self.slots) and outcome.bound is not None and not self.shared:
            self._note(outcome.bound)
        if outcome.objective is not None and (counts is not None or outcome.objective > self.value):
            for (t, k), begin in zip(slots, first, strict=True):
                self._put(t, k, values[begin : begin + len(self.models[k].linear.columns)])
            self._note()
        return outcome.status is Status.OPTIMAL

    def improve(self) -> None:
        """More and more slots at a time."""
        draw, count, failed = np.random.default_rng(self.seed), 1, 0
        order = list(range(len(self.slots)))
        while not self.is_over:
            whole = count == len(self.slots)
            chosen = order[failed : failed + 1] if count == 1 else draw.permutation(order)[:count].tolist()
            before = self.value
            ended = self._anew([self.slots[p] for p in sorted(chosen)], np.inf if whole else _EFFORT.neighbourhood_s)
            if whole:
                return
            failed = failed + 1 if self.value <= before else 0
            if not ended and count > 1 and failed:
                count, failed = count - 1, 0
            elif failed >= len(self.slots):
                count, failed = count + 1, 0
