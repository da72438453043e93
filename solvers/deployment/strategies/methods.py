"""The methods for the problem ``strategies``."""

from functools import partial
from typing import Any

from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "deployment"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)


def best(instance: Any, solver: str) -> Method:
    """The exact method that proves soonest: with HiGHS behind it at the end, or else the program for that solver."""
    if solver != "highs":
        return _formulation("strategy-selection", "strategies.formulations.strategy_selection", "StrategySelection")(
            solver
        )
    from ddlopt.solvers.backends.highs import Highs
    from ddlopt.solvers.deployment.strategies.best import StrategyBest

    behind = backend(solver)
    return StrategyBest(behind if isinstance(behind, Highs) else Highs())


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "strategy-selection",
        FAMILY,
        "exact",
        "strategies: one-hot variables over the local polytope",
        _formulation("strategy-selection", "strategies.formulations.strategy_selection", "StrategySelection"),
    ),
    Entry(
        "tree-decomposition",
        FAMILY,
        "exact",
        "strategies: dynamic programming, with prices where memory binds",
        _heuristic("strategies.tree_decomposition", "StrategyDynamicProgram"),
    ),
    Entry(
        "strategy-search",
        FAMILY,
        "heuristic",
        "strategies: messages, prices of memory, forests and small trees, with a bound",
        _heuristic("strategies.search", "StrategySearch"),
    ),
    Entry(
        "strategy-local-search",
        FAMILY,
        "heuristic",
        "strategies: small trees chosen anew, from the greedy choice",
        _heuristic("strategies.greedy", "StrategyGreedy", improve=True),
    ),
    Entry(
        "strategy-greedy",
        FAMILY,
        "heuristic",
        "strategies: node by node",
        _heuristic("strategies.greedy", "StrategyGreedy"),
    ),
)
