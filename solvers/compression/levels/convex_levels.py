"""The convex program over real levels, certified by its multipliers, and rounded."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.compression import CompressionProblem, LevelInstance, LevelPlan
from ddlopt.models.compression.levels.arrays import Floats, LevelArrays, Places, arrays_of
from ddlopt.models.compression.levels.formulations.continuous_levels import ContinuousLevels
from ddlopt.models.compression.levels.prices import price_bound, sharpest_prices
from ddlopt.solvers.backends.convex import Convex, ConvexOutcome
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.compression.levels.rounding import Rounding, places_of, plan, price_details, rounding_gap
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class ConvexLevels(CertifiedMethod, uses=("start",)):
    """:class:`~.ContinuousLevels`, rounded to levels that are allowed.

    Exponential curves are solved twice: as they are, which says what error is worth, and with the allowed levels joined
    by lines, whose optimum is nearer to the whole one. The bound is the best of those at the multipliers of both
    programs, calculated anew (:func:`~ddlopt.models.compression.levels.prices.price_bound`), with the best price of
    error at those of the timeline. Rounding, from both optima:
    :class:`~ddlopt.solvers.compression.levels.rounding.Rounding`.

    Details: ``relaxation``, the solver's value over real levels; ``rounding_gap``, what the answer is above it,
    relative to the answer; ``price_of_error`` in seconds, or ``price_of_time`` in error for a second.

    Parameters
    ----------
    solver : {"clarabel", "scs"}
    """

    proves_infeasible: ClassVar[bool] = True

    solver: str = "clarabel"

    name: ClassVar[str] = "convex-levels"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """What the formulation does not cover."""
        return ContinuousLevels().refuses(instance)

    def find(
        self, instance: LevelInstance, limits: Limits, seed: int, clock: Clock, start: LevelPlan | None
    ) -> MethodOutput:
        """See the class.

        Raises
        ------
        InfeasibleError
            If the time budget is less than the least time.
        """
        search = _Search(instance, Convex(self.solver), clock)
        if start is not None:
            search.starts.append(places_of(instance, search.arrays, start))
        outcome = search.relax(ContinuousLevels(), limits)
        if (search.arrays.scale > 0).any():
            search.relax(ContinuousLevels(chords=True), limits)
        places = search.rounded()
        return MethodOutput(
            plan(instance, search.arrays, places),
            details={**search.details, **outcome.figures},
            bound=search.bound,
            versions={"solver": outcome.solver},
            message=outcome.message,
        )


class _Search:
    """What is known of an instance so far: whole levels to start from, prices of the rows, a bound."""

    def __init__(self, instance: LevelInstance, backend: Convex, clock: Clock) -> None:
        self.instance, self._backend, self._clock = instance, backend, clock
        self.arrays: LevelArrays = arrays_of(instance)
        self.bound = 0.0
        self.rows: Floats = np.ones(len(self.arrays.counts))
        self.starts: list[Places] = []
        self.details: dict[str, Any] = {}

    def relax(self, model: ContinuousLevels, limits: Limits) -> ConvexOutcome:
        """Solve a relaxation, and take from it what is better."""
        instance, arrays = self.instance, self.arrays
        problem = model.problem(instance)
        left = limits if limits.time_s is None else replace(limits, time_s=max(self._clock.left_s / 2, 1e-3))
        outcome = self._backend.solve(problem, left)
        if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
            return outcome
        prices = model.prices(problem, instance)
        reached = max(price_bound(arrays, each) for each in (prices, sharpest_prices(arrays, prices.rows)))
        if reached >= self.bound:
            self.bound = reached
            self.rows = prices.rows if prices.rows.any() else self.rows
        if not self.details:
            self.details = {"relaxation": model.value(problem, instance), **price_details(arrays.goal, prices)}
        rounding = Rounding(arrays, self.rows, self._clock)
        self.starts += rounding.starts(model.read(problem, instance))
        return outcome

    def rounded(self) -> Places:
        """The best whole levels from all starts."""
        rounding = Rounding(self.arrays, self.rows, self._clock)
        places = rounding.best(self.starts or [np.zeros(len(self.arrays.counts), dtype=np.int64)])
        objective = rounding.objective(places)
        if "relaxation" in self.details:
            self.details["rounding_gap"] = rounding_gap(objective, self.details["relaxation"])
        self._clock.report(objective, self.bound)
        return places
