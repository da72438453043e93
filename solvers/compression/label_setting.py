r"""Exact choice of compressors on a timeline by dynamic programming over Pareto labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.compression import CompressionAnswer, CompressionPlan, CompressionProblem, evaluate
from ddlopt.models.compression.candidate_messages import Messages, candidate_messages
from ddlopt.models.compression.choices import answer_of, as_timeline, is_timeline, plan_of
from ddlopt.models.compression.timeline import CompressionInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.compression.label_prices import Pricing
from ddlopt.solvers.compression.label_search import Pass, Prices, bounded, run, ways_of
from ddlopt.solvers.contracts import relative_gap
from ddlopt.solvers.heuristic import Clock, Heuristic

SLACK = 1e-11
"""Relative improvement that is not looked for; rounding adds up to less."""
_WIDTHS = (100, 100, 100, 1000, 1000, 10_000, 100_000)
"""Labels of a node that passes keep, one after the other; the last but for the limit of all."""
_LEARNED_AT = 12
"""Nodes at which better prices are looked for after a pass."""


@dataclass(frozen=True)
class LabelSetting(Heuristic):
    r"""Pareto labels along the timeline, from gradient to gradient, with bounds in prices.

    What a plan for the first i gradients means for the rest is in three figures: the encoding D so far, the time F at
    which the wire is free, and the error X. A label (D, F, X) is extended by every message that may follow, over
    gradients i+1 .. j, of encoding e, occupation c and error x:

    .. math:: (D, F, X) \to \bigl(D + e,\; \max(F, R_j + D + e) + c,\; X + x\bigr),

    and one that is nowhere smaller than another of the same i is dropped (F counts only from the earliest start of the
    next message on). That is exact, but the labels may be many, so each has a bound on all ends that it can have: at
    weights :math:`\lambda` of the gradients' terms in the time, :math:`B_i = \lambda_1 + \dots + \lambda_i` of sum 1,
    and a price :math:`\mu` of the error that exceeds its budget E,

    .. math:: T \;\ge\; B_i F + (1 - B_i) D + \mu (X - E) + V_i ,

    where :math:`V_i` is the cheapest way from i to the end at these prices, in which a message costs
    :math:`(B_j - B_i) R_j + (1 - B_i) e + B_j c + \mu x`: every gradient of a message waits for the last. A label
    of which some such bound is not below the best plan known is dropped, and so is beforehand every message on no
    cheap enough way.

    Passes follow each other. Each keeps a limited number of labels, those of the least bounds; the least bound among
    the others is a bound on the optimum. A pass that drops none ends the search. Between passes the prices that suit
    the most promising labels best, at some of the gradients, are added to those in use: for the labels that look good
    only as the prices were made for others.

    Figures are rounded to 50 binary digits of the best value known, so that equal sums in another order compare as
    equal.

    Parameters
    ----------
    widths : tuple of int
        Labels of a node that the passes keep.

    References
    ----------
    Labels with two figures generalise the recursion of Z. Wang et al., "Hi-speed DNN training with Espresso", EuroSys
    2023; bounds in prices and the passes are ours.
    """

    widths: tuple[int, ...] = _WIDTHS

    family: ClassVar[str] = "compression"

    @property
    def name(self) -> str:
        """``label-setting``."""
        return "label-setting"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Sufficient factors have no timeline."""
        return None if is_timeline(instance) else f"a {instance.kind} has no timeline"

    def answer(
        self, instance: CompressionProblem, seed: int, clock: Clock, start: CompressionAnswer | None
    ) -> tuple[CompressionAnswer, Mapping[str, Any]]:
        """The best plan found; the bound is in the trace.

        Raises
        ------
        NoSolutionError
            If none is found; InfeasibleError if it is proven that there is none.
        """
        timeline = as_timeline(instance)
        search = _Search(timeline, clock)
        if start is not None:
            search.begin_at(instance, start)
        for width in self.widths:
            if search.ended:
                break
            search.widen(width)
        if search.plan is None:
            if search.proven:
                raise InfeasibleError(f"nothing keeps the time budget of {timeline.time_budget_s:.12g} s")
            raise NoSolutionError(f"label-setting on '{instance.name}' found no plan that keeps the time budget")
        return answer_of(instance, search.plan), search.details

    def certificate(self, instance: CompressionProblem, solution: CompressionAnswer, clock: Clock) -> float | None:
        """The largest bound of a pass."""
        return max((point.bound for point in clock.trace if point.bound is not None), default=None)


class _Search:
    """The passes: the best plan so far, and what is proven."""

    def __init__(self, timeline: CompressionInstance, clock: Clock) -> None:
        self.timeline, self.clock = timeline, clock
        self.messages: Messages = candidate_messages(timeline)
        self.pricing = Pricing(timeline)
        self.base = 0.0 if self.pricing.timed else timeline.least_error
        self.plan: CompressionPlan | None = None
        self.value = np.inf
        self.bound = -np.inf
        self.proven = False
        self.prices: list[Prices] = []
        self.details: dict[str, float] = {"labels": 0, "labels_of_a_gradient": 0, "passes": 0, "prices": 0}
        self.last: Pass | None = None

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do, or no time."""
        if self.clock.expired and self.details["passes"] > 0:
            return True
        gap = relative_gap(self.value + self.base, self.bound)
        return self.proven or (self.plan is not None and gap is not None and gap <= self.clock.gap)

    @property
    def slack(self) -> float:
        """What an improvement must exceed."""
        return SLACK * (self.value + self.base) if self.plan is not None else 0.0

    def begin_at(self, instance: CompressionProblem, start: CompressionAnswer) -> None:
        """Take a start for the best plan, if it keeps the budgets."""
        found = evaluate(instance, start)
        if found.feasible and found.objective is not None:
            self.plan, self.value = plan_of(instance, start), float(found.objective) - self.base

    def widen(self, width: int) -> None:
        """One pass more."""
        if not self.prices:
            self.prices = self.pricing.first()
        elif self.last is not None:
            self._learn(self.last)
        pricing, errors = self.pricing, (self.pricing.room if self.pricing.timed else self.value)
        known = self.plan is not None
        scales = (self.value if pricing.timed else pricing.time_limit_s, errors) if known else (None, None)
        messages = self.messages._replace(excess=0 * self.messages.excess) if pricing.flat else self.messages
        ways = ways_of(self.timeline.ready_s, messages, *scales)
        self.prices.sort(key=lambda each: not each.goal)
        ways, bounds = bounded(ways, self.prices, self.value - self.slack, pricing.time_limit_s)
        goals = sum(each.goal for each in self.prices)
        room = None if pricing.flat else pricing.room or np.inf
        found = run(ways, bounds, goals, room, pricing.timed, width, self.clock)
        self._note(found)
        self._forget(found)

    def _note(self, found: Pass) -> None:
        if found.value < self.value - self.slack:
            self.value, self.plan = found.value, self._plan(found)
        self.proven = found.dropped >= self.value - self.slack
        least = min(found.dropped, self.value) + self.base
        self.bound = max(self.bound, least - SLACK * abs(least))
        self.last = found
        self.details["passes"] += 1
        self.details["labels"] += found.total
        self.details["labels_of_a_gradient"] = max(self.details["labels_of_a_gradient"], found.largest)
        self.details["prices"] = len(self.prices)
        if np.isfinite(self.bound):
            self.clock.report(None if self.plan is None else self.value + self.base, self.bound)

    def _learn(self, found: Pass) -> None:
        """Add the best prices for the label of least bound at some nodes."""
        nodes = np.unique(np.linspace(0, self.timeline.size, _LEARNED_AT + 2)[1:-1].astype(np.int64))
        for node in nodes[nodes > 0]:
            first, end = found.firsts[node], found.firsts[node + 1]
            if first < end and not self.clock.expired:
                label = int(first + np.argmin(found.labels.bound[first:end]))
                self.prices.append(self.pricing.at(found, label, int(node)))

    def _forget(self, found: Pass) -> None:
        """Keep the prices that mattered, most often first, and the first that there were."""
        order = np.argsort(-found.active, kind="stable")
        self.prices = [self.prices[place] for place in order if found.active[place] > 0]

    def _plan(self, found: Pass) -> CompressionPlan:
        choices: list[int] = []
        sizes = []
        for message in found.messages:
            first, last, option = (int(each[message]) for each in self.messages[:3])
            label = self.timeline.option(first, option).label
            for gradient in range(first, last + 1):
                menu = self.timeline.menus[self.timeline.gradients[gradient].menu]
                choices.append(next(place for place, each in enumerate(menu) if each.label == label))
            sizes.append(last - first + 1)
        buckets = tuple(sizes) if self.timeline.fusion else ()
        return CompressionPlan(instance=self.timeline.name, choices=tuple(choices), buckets=buckets)
