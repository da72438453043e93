r"""Exact choice of compressors on a timeline by dynamic programming over Pareto labels."""

import math
from dataclasses import dataclass
from typing import ClassVar

from ddlopt.frontier.compression.timeline.label_setting.tree import WIDTHS, Search
from ddlopt.models.compression import CompressionAnswer, CompressionProblem, evaluate
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, plan_of, why_no_wire
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class LabelSetting(Heuristic, uses=("start",)):
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
    only as the prices were made for others. Where a gap stays large, the relaxation behind the prices mixes options of
    some gradient that differ much; the plans are then parted by that gradient's options, each part with prices of its
    own, and the part of least bound is searched next. Some optimal plan compresses of gradients of the same figures the
    later ones no less (:mod:`ddlopt.models.compression.timeline.interchangeable_gradients`); so what a part decides on
    one of them limits the others.

    Figures are rounded to 50 binary digits of the best value known, so that equal sums in another order compare as
    equal.

    Parameters
    ----------
    widths : tuple of int
        Labels of a gradient that the passes over a part keep.
    most_parts : int, optional
        Parts after which the search ends; None: only when it is done or its time is up.

    References
    ----------
    Labels with two figures generalise the recursion of Z. Wang et al., "Hi-speed DNN training with Espresso", EuroSys
    2023; bounds in prices, passes and parts are ours.
    """

    proves_infeasible: ClassVar[bool] = True

    widths: tuple[int, ...] = WIDTHS
    most_parts: int | None = None

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.frontier.compression.timeline.label_setting.kernels",)

    @property
    def name(self) -> str:
        """``label-setting``."""
        return "label-setting"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Sufficient factors have no timeline."""
        return why_no_wire(instance)

    def answer(
        self, instance: CompressionProblem, seed: int, clock: Clock, start: CompressionAnswer | None
    ) -> Answer[CompressionAnswer]:
        """The best plan found; the bound is in the trace.

        Raises
        ------
        NoSolutionError
            If none is found; InfeasibleError if it is proven that there is none.
        """
        timeline = as_timeline(instance)
        search = Search(timeline, clock)
        if start is not None:
            found = evaluate(instance, start)
            if found.feasible and found.objective is not None:
                search.begin_at(plan_of(instance, start), float(found.objective))
        self._explore(search)
        if search.plan is None and search.open.bound == math.inf:
            raise InfeasibleError(f"nothing keeps the time budget of {timeline.time_budget_s:.12g} s")
        if search.plan is not None and not evaluate(instance, answer_of(instance, search.plan)).feasible:
            # By a hair more than the check lets pass: the bound holds, and what every check lets pass is looked for.
            surely = Search(_with_less(timeline), Clock(Limits(clock.part(), clock.gap), None))
            self._explore(surely)
            search.plan = surely.plan
        if search.plan is None:
            raise NoSolutionError(f"label-setting on '{instance.name}' found no plan that keeps the budget")
        return answer_of(instance, search.plan), search.details

    def _explore(self, search: Search) -> None:
        most = math.inf if self.most_parts is None else self.most_parts
        while not search.ended and search.details["parts"] < most:
            search.explore(self.widths)

    def certificate(self, instance: CompressionProblem, solution: CompressionAnswer, clock: Clock) -> float | None:
        """The largest bound of a pass."""
        return clock.best_bound(instance.sense)


def _with_less(timeline: CompressionInstance) -> CompressionInstance:
    """The same with half a tolerance less of its budget."""
    part = 1 - FEASIBILITY_TOL / 2
    if timeline.goal == "error":
        assert timeline.time_budget_s is not None
        return timeline.model_copy(update={"time_budget_s": part * timeline.time_budget_s})
    assert timeline.error_budget is not None
    return timeline.model_copy(update={"error_budget": max(part * timeline.error_budget, timeline.least_error)})
