"""The search of label setting: passes over the timeline, and parts of the problem where passes alone do not suffice."""

import math
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.compression.timeline.label_setting.kernels import Marks
from ddlopt.frontier.compression.timeline.label_setting.prices import Pricing
from ddlopt.frontier.compression.timeline.label_setting.search import Pass, Prices, bounded, run, ways_of
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.models.compression.timeline.candidate_messages import Messages, candidate_messages
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.compression.timeline.interchangeable_gradients import Interchangeable, interchangeable
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.contracts import relative_gap
from ddlopt.solvers.heuristic import Clock

SLACK = 10 * ROUNDING
"""Relative improvement that is not looked for; rounding adds up to less."""
WIDTHS = (100, 100, 300, 1000, 3000, 10_000)
"""Labels of a node that passes over a part keep, one after the other."""
_LEARNED_AT = 8
"""Nodes at which better prices are looked for after a pass."""
_LARGE_GAP = 1e-5
"""Relative gap above which a part is divided after a pass, unless errors do not matter: then labels are few."""
_FIRST_WIDTH = 1000
"""The whole problem is not divided before a pass with this many labels: often they are enough, in a second."""
_FAR = 5e-4
"""Relative gap of a part that a pass hardly closes."""
_PASSED_OVER = 4
"""Of this number of such parts only one gets a pass; of the others there is the relaxation's bound."""


@dataclass
class Part:
    """Some of the plans: those with the options ``allowed`` (n, m); ``messages`` (k,): which they may have."""

    bound: float
    number: int
    pricing: Pricing
    messages: Marks
    prices: list[Prices]


class Search:
    """The best plan so far, and what is proven.

    Parameters
    ----------
    timeline : CompressionInstance
    clock : Clock
        Gets the bounds as well as the plans' values.
    """

    def __init__(self, timeline: CompressionInstance, clock: Clock) -> None:
        self.timeline, self.clock = timeline, clock
        self.messages: Messages = candidate_messages(timeline)
        pricing = Pricing(timeline, None if timeline.fusion else self._candidates())
        self.timed, self.flat, self.labels = pricing.timed, pricing.flat, pricing.choices.labels
        if self.flat:
            self.messages = self.messages._replace(excess=0 * self.messages.excess)
        self.base = 0.0 if self.timed else timeline.least_error
        self.groups: list[Interchangeable] = [] if self.flat or timeline.fusion else interchangeable(self.messages)
        self.plan: CompressionPlan | None = None
        self.value = math.inf
        self.bound = -math.inf
        self.open: OpenNodes[Part] = OpenNodes()
        self._push(Part(-math.inf, 0, pricing, np.ones(len(self.messages.first), dtype=np.bool_), []))
        self.parts = 0
        self.details = {"labels": 0, "labels_of_a_gradient": 0, "passes": 0, "prices": 0, "parts": 0}

    def _push(self, part: Part) -> None:
        self.open.push(part.bound, part)

    def begin_at(self, plan: CompressionPlan, objective: float) -> None:
        """Take a plan that keeps the budgets for the best one."""
        self.plan, self.value = plan, objective - self.base

    @property
    def limit(self) -> float:
        """What a better plan must not exceed."""
        return math.inf if self.plan is None else self.value - SLACK * (self.value + self.base)

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do, or no time."""
        if self.clock.expired and self.details["passes"] > 0:
            return True
        return not self.open or self._near

    @property
    def _near(self) -> bool:
        """Whether the gap asked for is reached."""
        gap = None if self.plan is None else relative_gap(self.value + self.base, self.bound)
        return gap is not None and gap <= self.clock.gap

    def _candidates(self) -> Marks:
        """(n, m) options that some message of one gradient has."""
        result = np.zeros((self.timeline.size, self.timeline.most_options), dtype=np.bool_)
        result[self.messages.first, self.messages.option] = True
        return result

    def explore(self, widths: tuple[int, ...]) -> None:
        """Make passes over the part of least bound until it is done with, or divide it."""
        _, part = self.open.pop()
        self.details["parts"] += 1
        last = None
        try:
            for width in () if self._passed_over(part) else widths:
                if last is None:
                    best = part.pricing.first(others=not part.prices)
                    part.prices = [*best, *part.prices]
                else:
                    self._learn(part, last)
                last = self._pass(part, width)
                self._note(part)
                if self.clock.expired or self._near or part.bound >= self.limit:
                    break
                if self._divides(part) and (part.number > 0 or width >= _FIRST_WIDTH):
                    break
        except InfeasibleError:
            part.bound = math.inf
        if part.bound < self.limit:
            if self.clock.expired:
                self._push(part)
            else:
                self._divide(part)
        self._note(None)

    def _pass(self, part: Part, width: int) -> Pass:
        pricing = part.pricing
        errors = pricing.room if self.timed else self.value
        scales = (None, None) if self.plan is None else (self.value if self.timed else pricing.time_limit_s, errors)
        ways = ways_of(self.timeline.ready_s, self.messages, part.messages, *scales)
        part.prices.sort(key=lambda each: not each.goal)
        ways, bounds = bounded(ways, part.prices, self.limit, pricing.time_limit_s)
        goals = sum(each.goal for each in part.prices)
        room = None if self.flat else math.inf if pricing.room is None else pricing.room
        part.messages = np.zeros_like(part.messages)
        part.messages[ways.message] = True
        found = run(ways, bounds, goals, room, self.timed, width, self.clock)
        if found.value < self.limit:
            self.value, self.plan = found.value, self._plan(found)
        part.bound = max(part.bound, found.dropped)
        self.details["passes"] += 1
        self.details["labels"] += found.total
        self.details["labels_of_a_gradient"] = max(self.details["labels_of_a_gradient"], found.largest)
        self.details["prices"] = max(self.details["prices"], len(part.prices))
        matters = found.active > 0
        matters[goals : goals + 1] = True  # one that keeps the time budget
        order = np.argsort(-found.active, kind="stable")
        part.prices = [part.prices[place] for place in order if matters[place]]
        return found

    def _note(self, part: Part | None) -> None:
        """Bring the bound up to date, where ``part`` is open beside the others."""
        least = min(self.open.bound, self.value, part.bound if part else math.inf) + self.base
        bound = least - SLACK * abs(least)
        if math.isfinite(bound) and bound > self.bound:
            self.bound = bound
            self.clock.report(None if self.plan is None else self.value + self.base, bound)

    def _learn(self, part: Part, found: Pass) -> None:
        """Add the best prices for the label of least bound at some nodes."""
        nodes = np.unique(np.linspace(0, self.timeline.size, _LEARNED_AT + 2)[1:-1].astype(np.int64))
        for node in nodes[nodes > 0].tolist():
            first, end = int(found.firsts[node]), int(found.firsts[node + 1])
            if first < end and not self.clock.expired:
                label = first + int(np.argmin(found.labels.bound[first:end]))
                part.prices.append(part.pricing.at(found, label, node))

    def _divides(self, part: Part) -> bool:
        """Whether more labels would help less than a decision on one gradient."""
        if self.flat:
            return False
        return self._gap(part) > _LARGE_GAP

    def _passed_over(self, part: Part) -> bool:
        """Whether it is divided without a pass."""
        if part.number % _PASSED_OVER == 0 or self.plan is None or self.flat or part.pricing.split is None:
            return False
        return self._gap(part) > _FAR

    def _gap(self, part: Part) -> float:
        gap = None if self.plan is None else relative_gap(self.value + self.base, part.bound + self.base)
        return math.inf if gap is None else gap

    def _divide(self, part: Part) -> None:
        """Part the options of the gradient whose mixture matters most in the linear relaxation."""
        split = part.pricing.split
        if split is None:  # the labels of its buckets were too many
            self.open.put_off(part.bound)
            return
        for options in (split.low, ~split.low):
            before = np.isfinite(part.pricing.choices.error)
            allowed = before.copy()
            allowed[split.gradient] &= options
            self._keep_order(allowed, split.gradient)
            if not allowed.any(axis=1).all():
                continue
            self.parts += 1
            messages = part.messages.copy()
            for gradient in np.flatnonzero((allowed != before).any(axis=1)).tolist():
                messages &= self._with_labels(gradient, allowed[gradient])
            pricing = Pricing(self.timeline, allowed)
            try:
                bound = max(part.bound, pricing.relaxed.value)
            except InfeasibleError:
                continue
            if bound < self.limit:
                self._push(Part(bound, self.parts, pricing, messages, list(part.prices)))

    def _keep_order(self, allowed: Marks, gradient: int) -> None:
        """Leave out what is out of order with all that is ``allowed`` (n, m) at a gradient."""
        for group in self.groups:
            if gradient not in group.gradients:
                continue
            options = self.messages.option[group.messages[0]]
            here = allowed[gradient, options]
            for other in group.gradients:
                if other != gradient:
                    out = group.comes_before if other > gradient else group.comes_before.T
                    allowed[other, options[out[:, here].all(axis=1)]] = False

    def _with_labels(self, gradient: int, options: Marks) -> Marks:
        """(k,) messages that are without a gradient, or send it with one of its options."""
        labels = self.labels
        first, last, option = self.messages.first, self.messages.last, self.messages.option
        without = (gradient < first) | (gradient > last)
        result: Marks = without | np.isin(labels[first, option], labels[gradient, options])
        return result

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
