"""Options of the timeline that is interrupted at will, then parts and order, then single changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.compression import evaluate
from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import plan, planned, sent_by, served
from ddlopt.models.compression.timeline.instance import CompressionPlan
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.solvers.compression.forward.schedulers import chosen_on
from ddlopt.solvers.compression.timeline.label_setting.label_setting import LabelSetting
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class ForwardSearch(Heuristic, uses=("start",)):
    """The best options if the wire may be interrupted; their best parts; then one gradient after the other changes.

    Label setting solves :func:`~ddlopt.models.compression.forward.bounds.priority_timeline`, whose bound holds for
    every order and all parts. Where its plan, in parts and needed first, takes longer than the bound, single gradients
    change their option or their number of parts for as long as that helps; the order stays that of need. The relaxation
    is exact, the search ours.

    Parameters
    ----------
    passes : int
        Over all gradients, at most.
    """

    name: ClassVar[str] = "forward-search"
    covers: ClassVar[type] = ForwardInstance
    kernels: ClassVar[tuple[str, ...]] = LabelSetting.kernels

    passes: int = 3

    def answer(self, instance: ForwardInstance, seed: int, clock: Clock, start: Any) -> Answer[ForwardPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`; the bound is in the trace."""
        relaxed = chosen_on(priority_timeline(instance), clock, seed)
        if not isinstance(relaxed.solution, CompressionPlan):
            raise NoSolutionError(f"label-setting found no options for '{instance.name}' in its time")
        found = planned(instance, relaxed.solution.choices)
        time = _time_s(instance, found)
        if start is not None:
            given = evaluate(instance, start)
            if given.feasible and given.objective is not None and float(given.objective) < time:
                found, time = start, float(given.objective)
        clock.report(time, relaxed.bound)
        details: dict[str, Any] = {"relaxation": relaxed.bound, "changes": 0}
        for _ in range(self.passes):
            before = time
            for choices, parts in _changes(instance, found):
                if clock.expired or time <= (relaxed.bound or 0.0) * (1 + ROUNDING):
                    return found, details
                lasts, order = served(instance, sent_by(instance, choices), parts, "needed")
                if lasts < time * (1 - IMPROVEMENT_TOL):
                    other = plan(instance, choices, parts, order)
                    if evaluate(instance, other).feasible:
                        found, time = other, lasts
                        details["changes"] += 1
                        clock.report(time, relaxed.bound)
            if time == before:
                break
        return found, details

    def certificate(self, instance: ForwardInstance, solution: ForwardPlan, clock: Clock) -> float | None:
        """That of the relaxation."""
        return clock.best_bound(instance.sense)


def _time_s(instance: ForwardInstance, found: ForwardPlan) -> float:
    return float(evaluate(instance, found).details["time_s"])


def _changes(instance: ForwardInstance, found: ForwardPlan) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Plans that differ in one gradient's option or parts, the last gradients first, since all wait for them."""
    for place in reversed(range(instance.size)):
        menu = instance.timeline.menus[instance.timeline.gradients[place].menu]
        for choice in range(len(menu)):
            for cut in instance.parts:
                if (choice, cut) != (found.choices[place], found.parts[place]):
                    yield (
                        (*found.choices[:place], choice, *found.choices[place + 1 :]),
                        (*found.parts[:place], cut, *found.parts[place + 1 :]),
                    )
