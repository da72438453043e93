"""A search for plans on several lanes: starts at prices of the lanes, then changes of single gradients."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.choices import answer_of, plan_of
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.compression.timeline.lane_arrays import LaneArrays, lane_arrays_of
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_PARTS = 6
"""Prices of the lanes are multiples of one over so much that add up to 1."""
_ERROR_PRICES = (0.0, *(10.0**power for power in range(-3, 4)))
"""In parts of what all options' mean time costs for their mean error."""
_KEPT = 3
"""Starts that are improved."""
_CELLS = 4_000_000
"""Choices of all plans that are timed at once, at most: some hundred megabytes."""


@dataclass(frozen=True)
class LaneSearch(Heuristic, uses=("seed", "start")):
    """Each gradient's best option at prices of the lanes; then one gradient after the other changes its option.

    For prices that add up to 1 over the lanes, and some prices of error, each gradient takes the option of the least
    encoding, occupation and error. The best of these plans within the budgets are improved: all changes of one gradient
    are timed at once; the best ones are made together, as many of them as help. When no change helps, some gradients
    take other options at random and it goes on from there; what is not better in the end is forgotten. Time first, then
    the sum of all that the plan does, as lanes that are not the longest may be relieved for what comes later; with goal
    ``error`` the error first. Gradients are not fused. The search is ours.

    Parameters
    ----------
    rounds : int
        How often gradients change at random.
    """

    name: ClassVar[str] = "lane-search"

    rounds: int = 30

    def refuses(self, instance: CompressionProblem) -> str | None:
        """What has no lanes."""
        if isinstance(instance, CompressionInstance) and instance.lanes:
            return None
        return "it searches among lanes, and there are none; use exact"

    def answer(self, instance: CompressionInstance, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`.

        Raises
        ------
        NoSolutionError
            If nothing within the time budget is found.
        """
        state = _Search(instance, lane_arrays_of(instance))
        begin = [] if start is None else [np.array(plan_of(instance, start).choices)]
        plans = np.array([*state.starts(), *begin])
        ranks = [state.rank(*figures) for figures in zip(*state.figures(plans), strict=True)]
        order = sorted(range(len(plans)), key=ranks.__getitem__)[:_KEPT]
        found = [state.improved(plans[place], clock) for place in order]
        best = min(found, key=state.rank_of)
        rng, changes = np.random.default_rng(seed), 0
        for _ in range(self.rounds):
            if clock.expired:
                break
            shaken = state.shaken(best, rng)
            other = state.improved(shaken, clock)
            if state.rank_of(other) < state.rank_of(best):
                best, changes = other, changes + 1
        late = state.rank_of(best)[0]
        if late > 0:
            raise NoSolutionError(f"no plan within the budgets was found; the best exceeds them by {late:.3g} of them")
        plan = CompressionPlan(instance=instance.name, choices=tuple(best.tolist()))
        return answer_of(instance, plan), {"rounds_that_helped": changes}


class _Search:
    """Plans (n,) of choices, and what they are worth."""

    def __init__(self, instance: CompressionInstance, arrays: LaneArrays) -> None:
        self.instance, self.arrays = instance, arrays
        self.exists = np.isfinite(arrays.error)
        self.rows = np.arange(instance.size)
        self.total_s = np.where(self.exists, arrays.encode_s + arrays.stage_s.sum(axis=2), np.inf)

    def starts(self) -> list[Places]:
        """A plan for every vector of prices, and that of least error."""
        arrays, lanes = self.arrays, self.arrays.busy_s.shape[2]
        total, encode, error = (np.where(self.exists, of, 0.0) for of in (self.total_s, arrays.encode_s, arrays.error))
        scale = total.sum() / error.sum() if error.any() else 0.0
        plans = [arrays.error.argmin(axis=1)]
        for prices in itertools.product(range(_PARTS + 1), repeat=lanes):
            if sum(prices) != _PARTS:
                continue
            busy = arrays.stage_s @ (np.array(prices) / _PARTS)
            for encoding, price in itertools.product((0.0, 0.5, 1.0), _ERROR_PRICES):
                cost = encoding * encode + busy + price * scale * error
                plans.append(np.where(self.exists, cost, np.inf).argmin(axis=1))
        return list(np.unique(np.array(plans), axis=0))

    def figures(self, plans: Places) -> tuple[Floats, Floats, Floats]:
        """Time, error and sum of all that (b, n) plans do."""
        step = max(1, _CELLS // (self.instance.size * self.arrays.busy_s.shape[2]))
        parts = [self.arrays.times_s(plans[at : at + step]) for at in range(0, len(plans), step)]
        error, total = (each[self.rows, plans].sum(axis=1) for each in (self.arrays.error, self.total_s))
        return np.concatenate(parts), error, total

    def rank(self, time_s: float, error: float, total_s: float) -> tuple[float, float, float]:
        """By how much a plan exceeds its budget, then its objective, then all that it does; less is better."""
        if self.instance.goal == "error":
            budget, objective, used = self.instance.time_budget_s, error, time_s
        else:
            budget, objective, used = self.instance.error_budget, time_s, error
        over = 0.0 if budget is None else max(0.0, used - budget)
        return over if budget is None or over > ROUNDING * budget else 0.0, objective, total_s

    def rank_of(self, plan: Places) -> tuple[float, float, float]:
        """Of one plan."""
        time, error, total = self.figures(plan[None])
        return self.rank(float(time[0]), float(error[0]), float(total[0]))

    def improved(self, plan: Places, clock: Clock) -> Places:
        """The plan after changes of single gradients, until none helps."""
        rank = self.rank_of(plan)
        while not clock.expired:
            gradients, options = np.nonzero(self.exists)
            other = plan[gradients] != options
            gradients, options = gradients[other], options[other]
            if not len(gradients):
                break
            changed = np.repeat(plan[None], len(gradients), axis=0)
            changed[np.arange(len(gradients)), gradients] = options
            ranks = [self.rank(*figures) for figures in zip(*self.figures(changed), strict=True)]
            order = [k for k in sorted(range(len(ranks)), key=ranks.__getitem__) if ranks[k] < rank]
            if not order:
                break
            together = self._together(plan, [(int(gradients[k]), int(options[k])) for k in order])
            ranks = [self.rank(*figures) for figures in zip(*self.figures(together), strict=True)]
            place = min(range(len(ranks)), key=ranks.__getitem__)
            if _less(ranks[place], rank):
                plan, rank = together[place], ranks[place]
            else:
                break
        return plan

    def _together(self, plan: Places, changes: list[tuple[int, int]]) -> Places:
        """(b, n) the plan with the first 1, 2, 4 … changes, the first for each gradient."""
        first: dict[int, int] = {}
        for gradient, option in changes:
            first.setdefault(gradient, option)
        made, after = [], plan.copy()
        for count, (gradient, option) in enumerate(first.items(), start=1):
            after[gradient] = option
            if count & (count - 1) == 0 or count == len(first):
                made.append(after.copy())
        return np.array(made)

    def shaken(self, plan: Places, rng: np.random.Generator) -> Places:
        """The plan with other options for a few gradients."""
        after = plan.copy()
        for gradient in rng.choice(len(plan), size=min(len(plan), 2 + int(rng.integers(6))), replace=False).tolist():
            after[gradient] = rng.choice(np.flatnonzero(self.exists[gradient]))
        return after


def _less(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether a rank is smaller by more than rounding, in the first figure that differs."""
    for a, b in zip(one, other, strict=True):
        if abs(a - b) > ROUNDING * max(abs(a), abs(b)):
            return a < b
    return False
