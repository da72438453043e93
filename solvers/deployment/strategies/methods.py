"""The methods for the problem ``strategies``."""

from typing import Any

from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

ROOM = "deployment/strategies"


def best(instance: Any, solver: str) -> Method:
    """The exact method that proves soonest: with HiGHS behind it at the end, or else the program for that solver."""
    if solver != "highs":
        return formulation(ROOM, "strategy-selection", "formulations.strategy_selection:StrategySelection")(solver)
    from ddlopt.frontier.deployment.strategies.best import StrategyBest
    from ddlopt.solvers.backends.highs import Highs

    behind = backend(solver)
    return StrategyBest(behind if isinstance(behind, Highs) else Highs())


ENTRIES = entries(
    ROOM,
    ("strategy-selection", "exact", "one-hot variables over the local polytope", "models:formulations.strategy_selection:StrategySelection"),
    ("tree-decomposition", "exact", "dynamic programming, with prices where memory binds", "tree_decomposition:StrategyDynamicProgram"),
    ("strategy-search", "heuristic", "messages, prices of memory, forests and small trees, with a bound", "search:StrategySearch"),
)  # fmt: skip
