"""HiPress's selective compression: each gradient is sent as is cheapest for itself."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import CompressionAnswer, CompressionPlan, CompressionProblem
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline, choices_of, why_no_wire
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Secopa(Heuristic, uses=()):
    """SeCoPa: every gradient takes the option with the least sum of encoding, sending and decoding.

    That is the optimum if nothing overlaps. Of equals the one of less error is taken, then the first.

    Ours: while the error exceeds its budget, the gradient whose next option on its lower convex hull of costs over
    errors takes the least time for the error that it saves moves there. With goal ``error`` all such moves are made
    that keep the time budget on the timeline. Gradients are not fused.

    References
    ----------
    Y. Bai et al., "Gradient compression supercharged high-performance data parallel DNN training", SOSP 2021, section
    on selective compression and partitioning; the authors' costs are
    :func:`ddlopt.instances.workloads.compression.planner_costs.hipress_menu`.
    """

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "secopa"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems of the family."""
        return why_no_wire(instance)

    def answer(self, instance: CompressionProblem, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`; details: ``separate_s``, the sum that is minimised."""
        timeline = as_timeline(instance)
        options, rows = choices_of(timeline), np.arange(timeline.size)
        costs = options.encode_s + options.occupation_s
        chosen = np.lexsort((options.error, costs), axis=1)[:, 0]
        spent, late_s = float(options.error[rows, chosen].sum()), timeline.time_budget_s
        if late_s is not None and (time := options.paths_s(chosen).max()) > late_s:
            raise NoSolutionError(f"it ends at {time:g} s, after time_budget_s, {late_s:g}")
        budget = np.inf if timeline.error_budget is None else timeline.error_budget
        for i, choice in _steps(chosen, costs, options.error):
            if late_s is None and spent <= budget:
                break
            if clock.expired:
                if spent > budget:
                    raise NoSolutionError(f"the time is up, and {spent:g} are lost, more than error_budget, {budget:g}")
                break
            before = chosen[i]
            chosen[i] = choice
            if late_s is not None and options.paths_s(chosen).max() > late_s:
                chosen[i] = before
                continue
            spent += float(options.error[i, choice] - options.error[i, before])
        plan = CompressionPlan(instance=timeline.name, choices=tuple(chosen.tolist()))
        return answer_of(instance, plan), {"separate_s": float(costs[rows, chosen].sum())}


def _steps(chosen: Integers, costs: Floats, errors: Floats) -> Iterator[tuple[int, int]]:
    """Gradients and their next options along their convex hulls, least time for the error saved first.

    A gradient goes on from the option that ``chosen`` has after its step, and no further if that is still the old one.
    """
    waiting: list[tuple[float, int, int]] = []

    def offer(i: int) -> None:
        now = chosen[i]
        better = np.flatnonzero(errors[i] < errors[i, now])
        if len(better):
            prices = (costs[i, better] - costs[i, now]) / (errors[i, now] - errors[i, better])
            heapq.heappush(waiting, (float(prices.min()), i, int(better[prices.argmin()])))

    for i in range(len(chosen)):
        offer(i)
    while waiting:
        _, i, choice = heapq.heappop(waiting)
        yield i, choice
        if chosen[i] == choice:
            offer(i)
