"""HiPress's selective compression: each gradient is sent as is cheapest for itself."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import CompressionAnswer, CompressionPlan, CompressionProblem
from ddlopt.models.compression.choices import answer_of, as_timeline, choices_of, is_timeline
from ddlopt.solvers.heuristic import Clock, Heuristic

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Secopa(Heuristic):
    """SeCoPa: every gradient takes the option with the least sum of encoding, sending and decoding.

    That is the optimum if nothing overlaps. Of equals the one of less error is taken, then the first.

    Ours: while the error exceeds its budget, the gradient whose next option on its lower convex hull of costs over
    errors takes the least time for the error that it saves moves there. Gradients are not fused.

    References
    ----------
    Y. Bai et al., "Gradient compression supercharged high-performance data parallel DNN training", SOSP 2021, section
    on selective compression and partitioning; the authors' costs are
    :func:`ddlopt.instances.workloads.planner_costs.hipress_menu`.
    """

    family: ClassVar[str] = "compression"

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "secopa"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems, and the other goal."""
        if not is_timeline(instance):
            return f"it is a {instance.kind}, which has no timeline"
        return "its goal is the error; SeCoPa minimises the time" if as_timeline(instance).goal == "error" else None

    def answer(
        self, instance: CompressionProblem, seed: int, clock: Clock, start: Any
    ) -> tuple[CompressionAnswer, Mapping[str, Any]]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`; details: ``separate_s``, the sum that is minimised."""
        timeline = as_timeline(instance)
        options = choices_of(timeline)
        costs = options.encode_s + options.occupation_s
        chosen = np.lexsort((options.error, costs), axis=1)[:, 0].tolist()
        if timeline.error_budget is not None:
            _repair(chosen, costs, options.error, timeline.error_budget)
        separate = costs[np.arange(timeline.size), chosen].sum()
        plan = CompressionPlan(instance=timeline.name, choices=tuple(chosen))
        return answer_of(instance, plan), {"separate_s": float(separate)}


def _repair(chosen: list[int], costs: Floats, errors: Floats, budget: float) -> None:
    """Move along the convex hulls, cheapest step first, until the budget is kept."""
    spent = float(sum(errors[i, k] for i, k in enumerate(chosen)))
    steps: list[tuple[float, int, int]] = []

    def offer(i: int) -> None:
        now = chosen[i]
        better = np.flatnonzero(errors[i] < errors[i, now])
        if len(better):
            prices = (costs[i, better] - costs[i, now]) / (errors[i, now] - errors[i, better])
            least = better[prices <= prices.min() * (1 + 1e-12)]
            heapq.heappush(steps, (float(prices.min()), i, int(least[errors[i, least].argmin()])))

    for i in range(len(chosen)):
        offer(i)
    while spent > budget and steps:
        _, i, wanted = heapq.heappop(steps)
        spent += float(errors[i, wanted] - errors[i, chosen[i]])
        chosen[i] = wanted
        offer(i)
