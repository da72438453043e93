"""Our search for compressors on a timeline: branch and bound with the prices of both lanes and of the error."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.frontier.compression.timeline.dual.relaxation import allowed
from ddlopt.frontier.compression.timeline.priced_choices.node import Found, Node, Question
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.models.compression import evaluate
from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, plan_of, why_no_wire
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

# Root and its children at least, whatever the budget of work.
_FEWEST_NODES = 3
_WIDER_AFTER = 8
"""Nodes after which twice as many beginnings are kept, and again."""
_WIDEST = 16
"""Times as many beginnings as at first."""


@dataclass(frozen=True)
class PricedChoices(Heuristic, uses=("start",)):
    r"""Branch and bound on the timeline's dual bound, with a beam search at every node.

    Beginnings (an option for each of the first k gradients and, with fusion, their messages) are made longer by one
    gradient at a time. A beginning that delays computation by D, keeps the wire until F and has the error
    :math:`\epsilon` is ranked by

    .. math:: B_k F + (1 - B_k) D + \mu \epsilon + \text{what the rest costs at least at these prices},

    a bound on the time of every plan that begins so (with the other goal, on its error), and the ``width`` first are
    kept, less those that another is no worse than in anything. Each is also tried with the end of the best plan known.

    The bound is that of the linear relaxation, which mixes options. A large gradient whose options it mixes leaves a
    gap, and prices that suit none of these; its options are parted in two, and both halves have bounds and prices of
    their own. The half with the least bound is always the next. Few gradients are that large; after a few steps the
    prices are right, and the small ones fill what room there is.

    The search is ours; the bound: :mod:`ddlopt.frontier.compression.timeline.dual.bound`.

    Parameters
    ----------
    width : int
        Beginnings kept at the first nodes; later ones keep up to 16 times as many.
    work : int
        After so many beginnings kept, of all lengths, the search ends; three nodes there are in any case.
    """

    proves_infeasible: ClassVar[bool] = True

    width: int = 16
    work: int = 800_000

    name = "priced-choices"
    kernels = (
        "ddlopt.frontier.compression.timeline.priced_choices.kernels",
        "ddlopt.frontier.compression.timeline.dual.fusion",
    )

    def refuses(self, instance: Any) -> str | None:
        """Only timelines and levels are covered."""
        return why_no_wire(instance)

    def answer(
        self, instance: CompressionProblem, seed: int, clock: Clock, start: CompressionAnswer | None
    ) -> Answer[CompressionAnswer]:
        """See the class; the seed is not used.

        Raises
        ------
        InfeasibleError
            If nothing keeps the time budget.
        NoSolutionError
            If nothing was found that does.
        """
        timeline = as_timeline(instance)
        plan = None if start is None else plan_of(instance, start)
        if plan is not None and not evaluate(timeline, plan).feasible:
            plan = None
        if timeline.goal == "time":
            question = Question(timeline, "time", timeline.error_budget)
            plan = plan or question.frugal()
        else:
            question = Question(timeline, "error", timeline.time_budget_s)
            plan = plan or self._fast_enough(timeline, clock)
        search = _Search(self, question, plan)
        search.run(clock, clock.gap, told=clock)
        details = {"relaxation": question.root.dual.value, "nodes": search.nodes}
        return answer_of(instance, search.found.plan), details

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """The least bound of what was still open."""
        return clock.best_bound(instance.sense)

    def _fast_enough(self, timeline: CompressionInstance, clock: Clock) -> CompressionPlan:
        """A plan within the time budget."""
        budget = timeline.time_budget_s or math.inf
        question = Question(timeline, "time", None)
        search = _Search(self, question, question.frugal())
        search.run(clock, 0.0, target=budget)
        if search.bound > allowed(budget):
            raise InfeasibleError(f"no choice keeps the time budget of {budget:.12g} s: all take {search.bound:.12g} s")
        if search.found.objective > budget * (1 + ROUNDING):
            raise NoSolutionError(
                f"the fastest plan found takes {search.found.objective:.12g} s, of {budget:.12g} s allowed"
            )
        return search.found.plan


class _Search:
    """The best plan found, and the nodes that may hold a better one."""

    def __init__(self, options: PricedChoices, question: Question, plan: CompressionPlan) -> None:
        self.options, self.question = options, question
        self.found = Found(plan, question.objective(plan))
        self.nodes, self._kept = 0, 0
        self._open: OpenNodes[Node] = OpenNodes()
        self._open.push(question.root.dual.value, question.root)

    @property
    def bound(self) -> float:
        """On the objective of every plan: that of the root, and that of what is left and of what was searched."""
        return max(self.question.root.dual.value, min(self.found.objective, self._open.bound))

    def run(self, clock: Clock, gap: float, told: Clock | None = None, target: float = -math.inf) -> None:
        """Search until the gap or the target is reached, or time or work is up."""
        while self._open and self.found.objective > target:
            if self.nodes >= _FEWEST_NODES and self._kept >= self.options.work:
                return
            if self.bound >= self.found.objective * (1 - gap) or (self.nodes > 0 and clock.expired):
                return
            self._step()
            if told is not None:
                told.report(self.found.objective, self.bound)

    def _step(self) -> None:
        """Search in the open node of the least bound, and part it."""
        _, node = self._open.pop()
        width = self.options.width * min(_WIDEST, 2 ** (self.nodes // _WIDER_AFTER))
        self.found, least = node.improved(self.found, width)
        self.nodes, self._kept = self.nodes + 1, self._kept + width * self.question.size
        if least >= self.found.objective:
            return
        halves = node.halves()
        if not halves:
            self._open.put_off(least)
        for half in halves:
            try:
                bound = max(least, half.dual.value)
            except InfeasibleError:
                continue
            if bound < self.found.objective:
                self._open.push(bound, half)
