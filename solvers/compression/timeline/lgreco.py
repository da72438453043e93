"""L-GreCo: the least data under an error budget, by dynamic programming over a grid of errors."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, choices_of, is_timeline, why_no_wire
from ddlopt.models.compression.timeline.instance import CompressionPlan
from ddlopt.models.errors import OptionError, a_or_an
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LGreco(Heuristic, uses=()):
    r"""A multiple-choice knapsack: each gradient one option, the sum of sizes least, the sum of errors within E.

    Errors are rounded up to multiples of E / steps, so that the budget is kept for certain. With s the sizes and e the
    errors in steps,

    .. math:: t_i(b) = \min_o\ t_{i-1}(b - e_{io}) + s_{io},\qquad b = 0 .. steps.

    That is the paper's. Ours: sizes are measured by how long they keep the wire busy, as options differ in more than
    bytes; of equal sizes the smaller error is taken; an error of 0 takes no step; and where nothing fits after rounding
    up, every gradient takes its least error. What overlaps, what encoding delays and what fusion saves is not seen.

    Parameters
    ----------
    steps : int

    References
    ----------
    I. Markov, K. Alim, E. Frantar, D. Alistarh, "L-GreCo: Layerwise-adaptive gradient compression for efficient
    data-parallel deep learning", MLSys 2024, algorithm 1; 10 000 steps as in the authors' code.
    """

    steps: int = 10_000

    name: ClassVar[str] = "lgreco"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise OptionError(f"steps must be at least 1, got {self.steps}")

    def refuses(self, instance: CompressionProblem) -> str | None:
        """The other goal, and timelines without an error budget."""
        if not is_timeline(instance):
            return f"it chooses how gradients are compressed; {a_or_an(instance.kind)} is about operators"
        timeline = as_timeline(instance)
        if timeline.lanes:
            return why_no_wire(instance)
        if timeline.goal == "error":
            return "the goal is the error; L-GreCo minimises the size under an error budget"
        return "there is no error_budget to spend" if timeline.error_budget is None else None

    def answer(self, instance: CompressionProblem, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See the class; details: ``wire_busy_s``, which is minimised, comes with every answer."""
        timeline = as_timeline(instance)
        choices = choices_of(timeline)
        budget = timeline.error_budget
        assert budget is not None
        chosen = knapsack(choices.occupation_s, _steps(choices.error, budget, self.steps), self.steps)
        fitted = chosen is not None
        if chosen is None:
            chosen = np.lexsort((choices.occupation_s, choices.error), axis=1)[:, 0]
        plan = CompressionPlan(instance=instance.name, choices=tuple(chosen.tolist()))
        return answer_of(instance, plan), {"fitted": fitted}


def knapsack(sizes: Floats, errors: Places, steps: int) -> Places | None:
    """(n,) options of least size in all, for (n, m) sizes and errors in steps; None if nothing fits."""
    count, offered = sizes.shape
    least = np.zeros(steps + 1)
    choices = np.zeros((count, steps + 1), dtype=np.int32)
    for i in range(count):
        before, least = least, np.full(steps + 1, np.inf)
        for k in range(offered):
            error = int(errors[i, k])
            if error > steps:
                continue
            reached = before[: steps + 1 - error] + sizes[i, k]
            better = reached < least[error:]
            least[error:][better] = reached[better]
            choices[i, error:][better] = k
    if not np.isfinite(least[steps]):
        return None
    spent, chosen = int(np.argmin(least)), np.zeros(count, dtype=np.int64)
    for i in reversed(range(count)):
        chosen[i] = choices[i, spent]
        spent -= int(errors[i, chosen[i]])
    return chosen


def _steps(errors: Floats, budget: float, steps: int) -> Places:
    """(n, m) errors in steps, rounded up; beyond all steps where they exceed the budget."""
    parts = np.where(errors <= 0, 0.0, np.inf) if budget == 0 else errors / budget * steps
    return np.minimum(np.ceil(parts), steps + 1).astype(np.int64)
