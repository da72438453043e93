"""A timeline with some options left out, its prices, and what a sweep at these finds."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.compression.timeline.dual.fusion import fused_bound, rests
from ddlopt.frontier.compression.timeline.dual.relaxation import (
    DualBound,
    affordable,
    allowed,
    error_bound,
    least_occupation_s,
    option_prices,
    time_bound,
)
from ddlopt.frontier.compression.timeline.priced_choices.kernels import Ending, Lanes, Prices, Sweep, sweep
from ddlopt.models.compression import evaluate
from ddlopt.models.compression.family import Goal
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING

Floats = npt.NDArray[np.float64]

_MIXED = 1e-6
"""Weight from which an option counts as one of those mixed."""


class Found(NamedTuple):
    """A plan and its objective."""

    plan: CompressionPlan
    objective: float


class Question:
    """What is asked of a timeline, which may be other than what its goal says.

    Raises
    ------
    InfeasibleError
        If nothing keeps the budget.
    """

    def __init__(self, timeline: CompressionInstance, goal: Goal, budget: float | None) -> None:
        self.timeline, self.goal, self.budget = timeline, goal, budget
        self.size = timeline.size
        self.choices = choices_of(timeline)
        largest = timeline.largest_bucket_bytes
        self.largest_bucket_bytes = 0.0 if not timeline.fusion else math.inf if largest is None else largest
        self.occupation_s = least_occupation_s(self.choices, timeline.fusion, largest)
        self.most = math.inf if budget is None else allowed(budget)
        self.limit = self._limit()
        self.root = Node(self, self.choices)

    def _limit(self) -> Prices:
        """The bound on what the budget limits."""
        none = np.zeros(self.size + 1)
        if self.goal == "time":
            least = none if self.budget is None else after(self.choices.error.min(axis=1))
            return Prices(none, none, self._alike(least), 0.0 if self.budget is None else 1.0)
        fastest = self.bound(self.choices, "time", None)
        if fastest.value > self.most:
            raise InfeasibleError(
                f"no choice keeps the time budget of {self.budget:.12g} s: all take at least {fastest.value:.12g} s"
            )
        return self.priced(self.choices, fastest._replace(mu=0.0), "time", None, 0.0)

    def bound(self, choices: Choices, goal: Goal, budget: float | None) -> DualBound:
        """The dual bound where some options are left out."""
        if self.timeline.fusion:
            return fused_bound(choices, self.occupation_s, goal, budget)
        if goal == "time" or budget is None:
            return time_bound(choices, self.occupation_s, budget)
        return error_bound(choices, self.occupation_s, budget)

    def options(self, choices: Choices, dual: DualBound, goal: Goal, budget: float | None) -> Floats:
        """(n, m) prices, infinite where an option is left out or can be part of nothing within an error budget."""
        wire = choices.wire_s if self.timeline.fusion else self.occupation_s
        prices = option_prices(choices, wire, dual.lambdas, dual.mu)
        return np.where(affordable(choices, budget if goal == "time" else None), prices, np.inf)

    def priced(self, choices: Choices, dual: DualBound, goal: Goal, budget: float | None, credit: float) -> Prices:
        """The dual bound of what begins in a known way."""
        upto = np.cumsum(dual.lambdas)
        options = self.options(choices, dual, goal, budget)
        rest = after(dual.lambdas * choices.ready_s) - credit
        if self.timeline.fusion:
            rests_of_all = rest[:, None] + rests(choices, options, upto)
        else:
            rests_of_all = self._alike(rest + after(options.min(axis=1)))
        return Prices(np.concatenate(([0.0], upto)), after(dual.lambdas), rests_of_all, dual.mu)

    def _alike(self, rest: Floats) -> Floats:
        """The same for all labels."""
        labels = int(self.choices.labels.max()) + 1 if self.timeline.fusion else 1
        return np.repeat(rest[:, None], labels, axis=1)

    def objective(self, plan: CompressionPlan) -> float:
        """Of a plan that makes sense."""
        details = evaluate(self.timeline, plan).details
        return float(details["time_s" if self.goal == "time" else "error"])

    def frugal(self) -> CompressionPlan:
        """The least errors where they have a budget, otherwise the least prices; nothing fused."""
        ranks = self.root.prices if self.budget is None else self.choices.error
        return CompressionPlan(instance=self.timeline.name, choices=tuple(ranks.argmin(axis=1).tolist()))

    def ending(self, plan: CompressionPlan) -> Ending:
        """What a plan's last messages take, by the gradients before them."""
        picked = np.arange(self.size), np.array(plan.choices)
        wire, encode = self.choices.wire_s[picked], self.choices.encode_s[picked]
        launch, error = self.choices.launch_s[picked], after(self.choices.error[picked])
        busy, latest = np.full(self.size + 1, np.inf), np.full(self.size + 1, np.inf)
        busy[-1], latest[-1] = 0.0, -np.inf
        last = self.size
        for size in reversed(plan.buckets or (1,) * self.size):
            first = last - size
            busy[first] = busy[last] + wire[first:last].sum() + launch[first:last].max()
            alone = self.choices.ready_s[last - 1] + busy[first]
            latest[first] = encode[first:last].sum() + max(alone, latest[last])
            last = first
        return Ending(busy, latest, error)


@dataclass(frozen=True)
class Node:
    """The question with some options left out, those of infinite error.

    Parameters
    ----------
    question : Question
    choices : Choices

    Raises
    ------
    InfeasibleError
        By ``dual``, if nothing keeps the error budget.
    """

    question: Question
    choices: Choices

    @cached_property
    def dual(self) -> DualBound:
        """The bound and its multipliers."""
        return self.question.bound(self.choices, self.question.goal, self.question.budget)

    @cached_property
    def prices(self) -> Floats:
        """(n, m) of the options, infinite where one is left out or can be part of nothing within the error budget."""
        return self.question.options(self.choices, self.dual, self.question.goal, self.question.budget)

    def improved(self, found: Found, width: int) -> tuple[Found, float]:
        """The better of a plan and what a sweep finds, and a bound on what this node holds that is better."""
        asked, credit = self.question, 0.0
        if asked.budget is not None:
            credit = asked.most * (self.dual.mu if asked.goal == "time" else float(self.dual.lambdas.sum()))
        swept = sweep(
            self._lanes(),
            asked.priced(self.choices, self.dual, asked.goal, asked.budget, credit),
            asked.goal == "time",
            asked.limit,
            asked.most,
            math.inf if asked.budget is None else asked.budget * (1 + ROUNDING),
            found.objective,
            asked.ending(found.plan),
            width,
        )
        if swept.step >= 0:
            found = Found(_joined(asked.timeline, swept, found.plan), swept.best)
        return found, max(self.dual.value, min(swept.cut, swept.best) - BOUND_MARGIN * (swept.best + credit))

    def _lanes(self) -> Lanes:
        choices, fusion = self.choices, self.question.timeline.fusion
        order = np.argsort(self.prices, axis=1, kind="stable")
        above = np.take_along_axis(self.prices, order, axis=1)
        # Where a launch can be shared, an option's price alone says too little.
        above = np.where(np.isfinite(above), 0.0, np.inf) if fusion else above - above[:, :1]
        return Lanes(
            choices.ready_s,
            np.ascontiguousarray(choices.encode_s),
            np.ascontiguousarray(choices.wire_s),
            np.ascontiguousarray(choices.launch_s),
            np.ascontiguousarray(choices.error),
            choices.counts,
            choices.labels if fusion else np.zeros_like(choices.labels),
            choices.bytes,
            order,
            above,
            self.question.largest_bucket_bytes,
        )

    def halves(self) -> tuple["Node", ...]:
        """Two nodes that hold together what this one does; none if the relaxation mixes no options that differ.

        They part the options of one gradient by one of their figures, where what is mixed differs most at the prices.
        """
        there = np.isfinite(self.choices.error)
        weights = np.where(there & (self.dual.weights > _MIXED), self.dual.weights, 0.0)
        weights = np.where(weights.any(axis=1, keepdims=True), weights, there)
        weights /= weights.sum(axis=1, keepdims=True)
        upto, since = np.cumsum(self.dual.lambdas), after(self.dual.lambdas)[:-1]
        figures = np.where(there, (self.choices.wire_s, self.choices.encode_s, self.choices.error), 0.0)
        means = (weights * figures).sum(axis=2, keepdims=True)
        spreads = np.sqrt((weights * (figures - means) ** 2).sum(axis=2))
        spreads *= np.array([upto, since, np.full(len(upto), self.dual.mu)])
        figure, place = np.unravel_index(spreads.argmax(), spreads.shape)
        if spreads[figure, place] <= 0:
            return ()
        low = figures[figure, place] <= means[figure, place]
        if not (there[place] & low).any() or not (there[place] & ~low).any():
            return ()
        return self._without(int(place), low), self._without(int(place), ~low)

    def _without(self, place: int, options: npt.NDArray[np.bool_]) -> "Node":
        error = self.choices.error.copy()
        error[place, options] = np.inf
        return Node(self.question, self.choices._replace(error=error))


def after(figures: Floats) -> Floats:
    """(n + 1,) sums of what comes after the first k."""
    return np.concatenate((np.cumsum(figures[::-1])[::-1], [0.0]))


def _joined(timeline: CompressionInstance, swept: Sweep, plan: CompressionPlan) -> CompressionPlan:
    """The best beginning of a sweep with the end of the plan that it was tried with."""
    chosen, sizes, place, size = list(plan.choices), list[int](), swept.place, 0
    for k in range(swept.step - 1, -1, -1):
        chosen[k] = int(swept.options[k, place])
        size += 1
        if not swept.joins[k, place]:
            sizes.append(size)
            size = 0
        place = int(swept.parents[k, place])
    sizes.reverse()
    covered = 0
    for size in plan.buckets or (1,) * len(chosen):
        if covered >= swept.step:
            sizes.append(size)
        covered += size
    buckets = tuple(sizes) if timeline.fusion else ()
    return CompressionPlan(instance=timeline.name, choices=tuple(chosen), buckets=buckets)
