"""Strategies by dynamic programming over a tree decomposition, with prices where memory binds."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.strategies.junction_tree import JunctionTree
from ddlopt.frontier.deployment.strategies.state import KERNELS, SearchState
from ddlopt.frontier.deployment.strategies.tree_dual import TreeDual
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.deployment.strategies.ragged import Ints
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_TABLES = 5
"""Entries of all tables together, in largest tables."""


@dataclass(frozen=True)
class StrategyDynamicProgram(CertifiedMethod, uses=()):
    """Exact where no row of memory binds; otherwise exact at prices of memory, for a number of rounds.

    Nodes are eliminated one after the other, always the one with the smallest table. At prices the answer of the
    program is a bound, and prices are the best that there are
    (:class:`~ddlopt.frontier.deployment.strategies.tree_dual.TreeDual`); of the answers that keep the limits the best
    is kept.

    Parameters
    ----------
    largest : float
        Entries of a table.
    rounds : int
        Of prices.
    """

    largest: float = 2e7
    rounds: int = 300

    name: ClassVar[str] = "tree-decomposition"
    kernels: ClassVar[tuple[str, ...]] = KERNELS
    covers = StrategyInstance

    def find(self, instance: StrategyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Answer and certificate.

        Raises
        ------
        NotApplicableError
            If a table would be too large.
        """
        try:
            core = core_of(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        tree = JunctionTree.of(core, self.largest, _TABLES * self.largest)
        if tree is None:
            raise NotApplicableError(
                f"{self.name} does not cover '{instance.name}': eliminating its nodes needs a table of more than "
                f"{self.largest:g} entries, or {_TABLES * self.largest:g} in all"
            )
        state, dual, done = SearchState(core, np.random.default_rng(seed)), TreeDual(tree), 0

        def offer(chosen: Ints) -> None:
            nonlocal done
            state.offer(chosen)
            done += 1
            clock.report(None if state.best is None else state.cost, max(0.0, dual.proven))

        def stop() -> bool:
            return clock.expired or state.cost - dual.proven <= clock.gap * abs(state.cost)

        dual.ascend(offer, lambda: state.cost, stop, self.rounds)
        if state.best is None:
            raise NoSolutionError(f"met no strategies for '{instance.name}' that keep the limit of memory")
        answer = StrategyAssignment(instance=instance.name, strategies=core.strategies(state.best))
        return MethodOutput(answer, {"programs": done}, max(0.0, dual.proven))
