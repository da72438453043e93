"""A bound from the best prices, and plans from those that are least at prices on the way."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.parts import Parts
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import NoSolutionError, SolutionError
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import MOST_SETS, lists_all_sets
from ddlopt.solvers.deployment.plan.annealing import Annealing, Plan
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_MOVES = 10_000
"""Of annealing for a plan to begin with: less than half a second for ten groups."""
_MOST_CHOICES = 1000
"""Of a group, for which a turn takes about a second."""


@dataclass(frozen=True)
class Effort:
    """What steers the method.

    Parameters
    ----------
    opening, priced : float
        Parts of the time until the search before the prices, and the prices, are to have ended. Annealing needs
        seconds where groups are few, and prices gain less and less: of ten groups the bound rises by a tenth of the gap
        in the first second, and by as much again in half a minute.
    """

    opening: float = 0.2
    priced: float = 0.6


EFFORT = Effort()


@dataclass(frozen=True)
class PlanPrices(CertifiedMethod, uses=("seed", "start")):
    """Prices of rows (:class:`~.BestPrices`), and the best of the plans met on the way, improved by annealing.

    The bound holds for all deployments and every order of work; parts of the plans have prices of their own. A plan
    that is least at prices has parts that fit each other, where a search that changes one group after the other pays
    for transfers on the way to it. From the best of these plans and the best one known
    :class:`~ddlopt.solvers.deployment.plan.annealing.Annealing` goes on.

    Parameters
    ----------
    turns : int
        Of the prices, at most.
    parts : int
        How many parts of the plans are parted again for a better bound (:class:`~.Parts`), at most.
    moves : int
        Of annealing after the prices, where these have not proven a plan; fewer where the time is up.
    """

    turns: int = 1000
    parts: int = 1000
    moves: int = 20_000

    covers: ClassVar[type[DeploymentInstance]] = DeploymentInstance
    name: ClassVar[str] = "plan-prices"
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.deployment.plan.simulator.run",
        "ddlopt.frontier.deployment.plan.prices.kernels",
    )

    def refuses(self, instance: DeploymentInstance) -> str | None:
        """Too many choices of a group."""
        if not lists_all_sets(instance):
            return f"{len(instance.device_groups)} device groups make more than {MOST_SETS} sets"
        most = max(map(len, instance.members))
        layouts, machines = 2 ** len(instance.device_groups) - 1, len(instance.device_groups)
        if machines**most + (layouts << (most + 1)) + 2 * layouts > _MOST_CHOICES:
            return f"a group of {most} operators has more than {_MOST_CHOICES} choices"
        return None

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan found, and the bound.

        Raises
        ------
        NoSolutionError
            If no plan that was tried fits in memory.
        """
        until_s = math.inf if limits.time_s is None else limits.time_s
        annealing = Annealing(instance, Simulator(instance), np.random.default_rng(seed), clock)
        self._open(annealing, limits, seed, start)
        priced_s = until_s * (EFFORT.priced if self.moves else 1.0)
        with threadpool_limits(1):
            prices, parts = self._priced(instance, annealing, priced_s, limits.gap)
        for plan in zip(*prices.figures.choices.rows(np.array(parts.plans)), strict=True):
            annealing.meet(Plan(*plan))
        if parts.found is not None:
            annealing.meet(Plan(*parts.found))
        if annealing.best_s * (1.0 - limits.gap) > parts.bound_s:
            annealing.run(self.moves)
        if annealing.best is None:
            raise NoSolutionError("no plan that was tried fits in the memory of the devices")
        details = {
            "turns": float(prices.turns),
            "parted": float(parts.parted),
            "plans": float(len(parts.plans)),
            "moves": float(annealing.moves),
        }
        # Where every part ends at plans that do not fit or are slower, none is better than the best one.
        bound_s = min(parts.bound_s, annealing.best_s * (1.0 - BOUND_MARGIN))
        return MethodOutput(annealing.deployment(), details, bound=bound_s)

    def _priced(
        self, instance: DeploymentInstance, annealing: Annealing, until_s: float, gap: float
    ) -> tuple[BestPrices, Parts]:
        """Prices of all plans, and of parts of them."""
        prices, clock = BestPrices(instance), annealing.clock
        time_s = annealing.best_s if annealing.best is not None else None
        while prices.turn() and prices.turns < self.turns and clock.elapsed_s < until_s:
            clock.report(time_s, prices.bound_s)
        parts, enough_s = Parts(prices), math.inf if time_s is None else time_s * (1.0 - gap)
        while parts.parted < self.parts and parts.bound_s < enough_s and clock.elapsed_s < until_s and parts.step():
            clock.report(time_s, parts.bound_s)
        return prices, parts

    def _open(self, annealing: Annealing, limits: Limits, seed: int, start: Any) -> None:
        """Meet a plan to begin with."""
        if not isinstance(start, Deployment):
            share = None if limits.time_s is None else EFFORT.opening * limits.time_s
            start = PlanSearch(_MOVES).solve(annealing.instance, Limits(share), seed).solution
        if isinstance(start, Deployment):
            try:
                annealing.meet(Plan(*annealing.simulator.choice(start)))
            except (SolutionError, KeyError):
                return
