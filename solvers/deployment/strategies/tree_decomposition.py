"""Strategies by dynamic programming over a tree decomposition, with prices where memory binds."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.dual import rounded_up
from ddlopt.models.deployment.strategies.elimination import eliminate
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.strategies.state import KERNELS, SearchState
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_ROUNDING = 10 * ROUNDING
"""Relative excess of a sum over the true one."""


@dataclass(frozen=True)
class StrategyDynamicProgram(CertifiedMethod, uses=("seed",)):
    """Exact where no row of memory binds; otherwise exact at prices of memory, for a number of rounds.

    Nodes are eliminated one after the other, always the one with the smallest table. At prices the answer of the
    program is a bound; if it also keeps the limits and uses all of what has a price, it is optimal.

    Parameters
    ----------
    largest : float
        Entries of a table.
    rounds : int
        Of prices.
    """

    largest: float = 2e7
    rounds: int = 200

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
        state = SearchState(core, np.random.default_rng(seed))
        dual = state.dual
        done = 0
        for _ in range(self.rounds if len(core.memory.limit) else 1):
            rest = eliminate(core, dual.cost, None, self.largest, memory_free=False)
            if rest.left:
                raise NotApplicableError(
                    f"{self.name} does not cover '{instance.name}': {len(rest.left)} nodes are left whose elimination "
                    f"needs a table of more than {self.largest:g} entries"
                )
            done += 1
            chosen = rest.extended(np.zeros(core.size, dtype=np.int64))
            excess = state.offer(chosen)
            value, paid = float(rest.tables[()]), float((dual.prices * core.memory.limit).sum())
            bound = value - paid - _ROUNDING * (abs(value) + paid)
            if bound > dual.best:
                dual.best, dual.best_prices = bound, dual.prices
            proven = rounded_up(dual.best) if core.whole else dual.best
            clock.report(None if state.best is None else state.cost, max(0.0, proven))
            if state.gap <= clock.gap or clock.expired:
                break
            dual.next_prices(excess)
        if state.best is None:
            raise NoSolutionError(f"met no strategies for '{instance.name}' that keep the limit of memory")
        answer = StrategyAssignment(instance=instance.name, strategies=core.strategies(state.best))
        return MethodOutput(answer, {"programs": done}, max(0.0, dual.proven))
