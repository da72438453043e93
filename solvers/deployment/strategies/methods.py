"""The methods for the problem ``strategies``."""

from typing import Any

from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

ROOM = "deployment/strategies"


_selection = formulation(ROOM, "strategy-selection", "formulations.strategy_selection:StrategySelection")


def best(instance: Any, solver: str) -> Method:
    """What links of the chain say; else the program."""
    return chain.exact(ROOM, instance, solver, lambda _, behind: _selection(behind))


ENTRIES = entries(
    ROOM,
    ("strategy-selection", "exact", "one-hot variables over the local polytope", "models:formulations.strategy_selection:StrategySelection"),
)  # fmt: skip
