"""Baselines for strategies: node by node."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.models.deployment.strategies.bounds import strategies_bound
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.deployment.strategies.ragged import Floats, Ints
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.deployment.strategies.state import SearchState
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

# Between looks at the clock.
_TREES_AT_ONCE_S = 0.5
_MOST_S = 20.0
"""Beyond which the local search, a baseline, hardly gains."""


@dataclass(frozen=True)
class StrategyGreedy(Heuristic, uses=("seed",)):
    """Node by node the cheapest strategy, given those chosen before, that leaves room for the smallest of the others.

    Nodes with many neighbours come first. It fails where a forbidden pair or memory leaves a node nothing.

    Parameters
    ----------
    improve : bool
        Go on with local search on the true costs until the bound of the problem is met, or the time or 20 s are up:
        random trees of a few nodes, chosen anew while all others stay.
    """

    improve: bool = False

    covers = StrategyInstance

    def kernels_for(self, instance: StrategyInstance) -> tuple[str, ...]:
        """Those of the local search, if it goes on with that."""
        return ("ddlopt.solvers.deployment.strategies.kernels.local",) if self.improve else ()

    @property
    def name(self) -> str:
        """``strategy-greedy``, with its option."""
        return spelled("strategy-greedy", self, "improve")

    def answer(self, instance: StrategyInstance, seed: int, clock: Clock, start: Any) -> Answer[StrategyAssignment]:
        """The choice."""
        try:
            core = core_of(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        state = SearchState(core, np.random.default_rng(seed))
        memory = core.memory
        room = memory.limit * (1 + core.rounding())
        chosen = np.zeros(core.size, dtype=np.int64)
        items: list[list[int]] = [[] for _ in range(core.size)]
        for item, node in enumerate(memory.node.tolist()):
            items[node].append(item)
        graph = state.dual.graph
        for i in range(core.size):
            own = core.cost[core.start[i] : core.start[i + 1]].copy()
            for e in graph.around[graph.at[i] : graph.at[i + 1]].tolist():
                if core.edges[e, 1] == i:
                    row = core.table_start[e] + chosen[core.edges[e, 0]] * len(own)
                    own += core.table[row : row + len(own)]
            _without_room(own, items[i], memory.start, memory.use, memory.low, memory.high, room)
            chosen[i] = own.argmin()
            if not np.isfinite(own[chosen[i]]):
                raise NoSolutionError(f"found no strategies for '{instance.name}': node {i} of the order has none left")
            for item in items[i]:
                room[memory.low[item] : memory.high[item]] -= memory.use[memory.start[item] + chosen[i]]
        state.offer(chosen)
        if state.best is None:
            raise NoSolutionError(f"found no strategies for '{instance.name}'")
        if self.improve:
            _improve(state, strategies_bound(instance), clock)
        return StrategyAssignment(instance=instance.name, strategies=core.strategies(state.best)), {}


def _improve(state: SearchState, bound: float, clock: Clock) -> None:
    """Local search until the cost is within the gap of the bound."""
    while state.cost - bound > clock.gap * abs(state.cost) and not clock.expired and clock.elapsed_s < _MOST_S:
        state.polish(_TREES_AT_ONCE_S)
        clock.report(state.cost)


def _without_room(own: Floats, items: list[int], start: Ints, use: Floats, low: Ints, high: Ints, room: Floats) -> None:
    """Make infinite what does not fit."""
    for item in items:
        most = room[low[item] : high[item]].min()
        own[use[start[item] : start[item + 1]] > most] = np.inf
