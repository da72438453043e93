"""Options of the timeline that is interrupted at will, then parts and the best order, then single changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.compression import evaluate
from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import Sent, plan, planned, sent_by, served
from ddlopt.models.compression.timeline.choices import paths
from ddlopt.models.compression.timeline.instance import CompressionPlan
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.solvers import chain
from ddlopt.solvers.compression.forward.schedulers import STEPS, chosen_on
from ddlopt.solvers.compression.forward.wire_order import best_order
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

_MOST_NODES, _FEW_NODES = 1000, 20
"""Of the search for an order: of the plan of the relaxation, and of each change."""


@dataclass(frozen=True)
class ForwardSearch(Heuristic, uses=("start",)):
    """The best options if the wire may be interrupted; their best parts and order; then one gradient after the other.

    The options are those of :func:`~ddlopt.models.compression.forward.bounds.priority_timeline`, whose bound holds for
    every order and all parts. Label setting chooses them, without the frontier the timeline's model. The plan is sent
    in parts, what is needed first first, or whole in the best order
    (:func:`~ddlopt.solvers.compression.forward.wire_order.best_order`): a long gradient may go before others that are
    needed sooner, while none of them is urgent yet, or the wire waits for one. Where the better of the two takes longer
    than the bound, single gradients change their option or their number of parts for as long as that helps. The
    relaxation is exact, the search ours.

    Parameters
    ----------
    passes : int
        Over all gradients, at most.
    """

    name: ClassVar[str] = "forward-search"
    covers: ClassVar[type] = ForwardInstance

    passes: int = 3

    def kernels_for(self, instance: ForwardInstance) -> tuple[str, ...]:
        """Those of the steps that choose options."""
        return chain.kernels_of_steps(STEPS, instance)

    def answer(self, instance: ForwardInstance, seed: int, clock: Clock, start: Any) -> Answer[ForwardPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`; the bound is in the trace."""
        relaxed = chosen_on(priority_timeline(instance), clock, seed)
        if not isinstance(relaxed.solution, CompressionPlan):
            raise NoSolutionError(f"no options were found for '{instance.name}' in its time")
        found, bound = planned(instance, relaxed.solution.choices), relaxed.bound or 0.0
        time = _time_s(instance, found)
        whole = self._ordered(instance, relaxed.solution.choices, (1,) * instance.size, _MOST_NODES, bound, time)
        if whole is not None:
            found, time = whole, _time_s(instance, whole)
        if start is not None:
            given = evaluate(instance, start)
            if given.feasible and given.objective is not None and float(given.objective) < time:
                found, time = start, float(given.objective)
        clock.report(time, relaxed.bound)
        details: dict[str, Any] = {"relaxation": relaxed.bound, "changes": 0}
        for _ in range(self.passes):
            before = time
            for choices, parts in _changes(instance, found):
                if clock.expired or time <= bound * (1 + ROUNDING):
                    return found, details
                if _least_s(instance, sent_by(instance, choices), parts) >= time * (1 - IMPROVEMENT_TOL):
                    continue
                other = self._ordered(instance, choices, parts, _FEW_NODES, bound, time * (1 - IMPROVEMENT_TOL))
                if other is not None and evaluate(instance, other).feasible:
                    found, time = other, _time_s(instance, other)
                    details["changes"] += 1
                    clock.report(time, relaxed.bound)
            if time == before:
                break
        return found, details

    def _ordered(
        self,
        instance: ForwardInstance,
        choices: Sequence[int],
        parts: Sequence[int],
        nodes: int,
        bound_s: float,
        below_s: float,
    ) -> ForwardPlan | None:
        """The best order that is found for options and parts; None if none is below ``below_s``."""
        sent = sent_by(instance, choices)
        found = best_order(instance, sent, parts, nodes, bound_s * (1 + ROUNDING), below_s)
        if found is not None:
            return plan(instance, choices, parts, found.order)
        lasts, order = served(instance, sent, parts, "needed")
        return plan(instance, choices, parts, order) if lasts < below_s else None

    def certificate(self, instance: ForwardInstance, solution: ForwardPlan, clock: Clock) -> float | None:
        """That of the relaxation."""
        return clock.best_bound(instance.sense)


def _least_s(instance: ForwardInstance, sent: Sent, parts: Sequence[int]) -> float:
    """The time if the wire may be interrupted: the closed form."""
    launch, payload = np.array(sent.launch_s), np.array(sent.payload_s)
    return float(
        paths(np.array(sent.encoded_s) + instance.tails_s, np.zeros(instance.size), launch * parts + payload).max()
    )


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
