"""Our search for strategies: message passing with prices of memory, and local search."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.strategies.state import KERNELS, SearchState
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    rounds_to_thorough: int = 4
    """Each round with this number also fixes nodes one by one, which takes longer."""
    rounds_to_restart: int = 30
    """Rounds without a better choice after which prices take large steps again."""
    better: float = 1e-4
    """A relative gain that counts there: small trees find smaller ones at any prices."""


_EFFORT = Effort()


@dataclass(frozen=True)
class StrategySearch(CertifiedMethod, uses=("seed", "start")):
    """Bounds by messages and prices (:mod:`.deployment.strategies.dual`), and choices found along the way.

    In every round messages are passed at the present prices of memory, and decoded. Where what comes of it is far from
    the bound, and every few rounds in any case, nodes are fixed a few at a time instead, those with the most neighbours
    first, with messages passed anew in between. What memory the choice uses sets the next
    prices, in steps that shrink; after a while without success prices start again from the best, with large steps. The
    best choice is then improved by random trees of a few nodes, at prices between none and more than the best, which
    count only if memory suffices; a tree over the rows of memory tells. All of this is ours.

    Parameters
    ----------
    rounds : int
        After which the search ends in any case.
    patience : int
        Rounds without progress after which it ends.
    sweeps : int
        Passes of messages in a round.
    """

    rounds: int = 2000
    patience: int = 50
    sweeps: int = 5

    name: ClassVar[str] = "strategy-search"
    kernels: ClassVar[tuple[str, ...]] = KERNELS
    covers = StrategyInstance

    def find(self, instance: StrategyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Answer and certificate."""
        try:
            core = core_of(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        state = SearchState(core, np.random.default_rng(seed))
        places = None if start is None else core.places(start.strategies)
        if places is not None:
            state.offer(places)
        self.go_on(state, clock, math.inf)
        if state.best is None:
            raise NoSolutionError(f"found no strategies for '{instance.name}' that keep the limit of memory")
        answer = StrategyAssignment(instance=instance.name, strategies=core.strategies(state.best))
        figures = {"core_nodes": core.size, "core_edges": len(core.edges), "memory_rows": len(core.memory.limit)}
        return MethodOutput(answer, figures, max(0.0, state.dual.proven))

    def go_on(self, state: SearchState, clock: Clock, until_s: float) -> None:
        """Search until a reading of the clock, or patience is up."""
        state.begin(self.sweeps, clock)
        known, idle, began = (state.cost, state.dual.best), 0, clock.elapsed_s
        since, mark = 0, state.cost
        for number in range(self.rounds):
            if clock.expired or clock.elapsed_s > until_s or state.gap <= clock.gap or idle > self.patience:
                break
            thorough = number % _EFFORT.rounds_to_thorough == _EFFORT.rounds_to_thorough - 1
            state.round(self.sweeps, thorough)
            if clock.expired:
                break
            if thorough:
                state.polish(clock.elapsed_s - began)
                began = clock.elapsed_s
            idle += 1
            since += 1
            if state.cost < (1 - _EFFORT.better) * mark:
                since, mark = 0, state.cost
            if since == _EFFORT.rounds_to_restart or state.dual.settled:
                state.dual.restart()
                since = 0
            # Less of the bound is no progress: it would never be idle, as the ascent always gains a little.
            if state.cost < known[0] or state.dual.best > known[1] + 1e-5 * abs(known[1]):
                known, idle = (state.cost, state.dual.best), 0
                clock.report(state.cost if state.best is not None else None, max(0.0, state.dual.proven))
