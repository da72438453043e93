"""Nothing compressed, and everything compressed as far as may be: what every plan is compared with."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.compression import evaluate
from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.forward.schedule import planned
from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, choices_of, plain_option
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.compression.timeline.units import sure_room
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Nothing(Heuristic, uses=()):
    """Data parallelism as it is.

    No operator is duplicated. Every gradient takes its option of compressor ``none`` that keeps the wire busy for the
    shortest time; where there is none, or the error budget does not allow these, the option (level) of least error.
    Gradients are not fused; before a forward pass they are sent as it needs them, in parts that suit. Where a time
    budget is not kept so, there is no solution of this kind.
    """

    name: ClassVar[str] = "none"

    def answer(self, instance: CompressionProblem, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See the class.

        Raises
        ------
        NoSolutionError
            If it takes more than the time budget.
        """
        if isinstance(instance, SfbInstance):
            return SfbSelection(instance=instance.name, instance_digest=instance.digest), {}
        timeline = _timeline_of(instance)
        choices = choices_of(timeline)
        least = np.lexsort((choices.occupation_s, choices.error), axis=1)[:, 0].tolist()
        options = [plain_option(timeline.menus[gradient.menu]) for gradient in timeline.gradients]
        plain = [otherwise if k is None else k for k, otherwise in zip(options, least, strict=True)]
        error = sum(float(choices.error[i, k]) for i, k in enumerate(plain))
        allowed = timeline.error_budget is None or error <= timeline.error_budget
        return _checked(instance, timeline, plain if allowed else least), {}


@dataclass(frozen=True)
class Everything(Heuristic, uses=()):
    """As much compression as there is.

    Every operator with a gradient that may be duplicated is; under budgets one after the other by decreasing size of
    the gradient, those that still fit. Every gradient takes the option (level) that keeps the wire busy for the
    shortest time, of equals the one that is encoded soonest; under an error budget one after the other by decreasing
    size, among the options that leave the others their least errors. Gradients are not fused. Where a time budget is
    not kept so, as encoding takes too long, there is no solution of this kind.
    """

    name: ClassVar[str] = "all"

    def answer(self, instance: CompressionProblem, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See the class.

        Raises
        ------
        NoSolutionError
            If it takes more than the time budget.
        """
        if isinstance(instance, SfbInstance):
            return _all_duplicated(instance), {}
        timeline = _timeline_of(instance)
        choices = choices_of(timeline)
        order = np.lexsort((choices.encode_s, choices.occupation_s), axis=1)
        excess = choices.error - choices.error.min(axis=1, keepdims=True)
        room = sure_room(timeline)
        left = np.inf if room is None else room
        chosen = [0] * timeline.size
        for i in np.argsort(-choices.bytes, kind="stable").tolist():
            chosen[i] = next(k for k in order[i].tolist() if excess[i, k] <= left)
            left -= float(excess[i, chosen[i]])
        return _checked(instance, timeline, chosen), {}


def _timeline_of(instance: CompressionProblem) -> CompressionInstance:
    return instance.timeline if isinstance(instance, ForwardInstance) else as_timeline(instance)


def _checked(instance: CompressionProblem, timeline: CompressionInstance, chosen: list[int]) -> CompressionAnswer:
    """The answer, if it keeps the time budget."""
    if isinstance(instance, ForwardInstance):
        return planned(instance, chosen)
    answer = answer_of(instance, CompressionPlan(instance=instance.name, choices=tuple(chosen)))
    found = evaluate(instance, answer)
    if timeline.goal == "error" and not found.feasible:
        time = float(found.details["time_s"])
        raise NoSolutionError(f"it takes {time:.12g} s, but time_budget_s is {timeline.time_budget_s:.12g}")
    return answer


def _all_duplicated(instance: SfbInstance) -> SfbSelection:
    sizes = np.array([operator.gradient_bytes for operator in instance.operators])
    memory = np.array([operator.memory_bytes for operator in instance.operators])
    taken = np.stack([memory, instance.extra_s], axis=1)
    left = np.array([inf if b is None else b for b in (instance.memory_budget_bytes, instance.compute_budget_s)])
    chosen: list[int] = []
    for i in np.argsort(-sizes, kind="stable").tolist():
        if instance.eligible[i] and sizes[i] > 0 and (taken[i] <= left).all():
            chosen.append(i)
            left -= taken[i]
    return SfbSelection(instance=instance.name, instance_digest=instance.digest, duplicated=tuple(sorted(chosen)))
