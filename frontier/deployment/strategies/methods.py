"""The special exact method for strategies, and when ``exact`` asks it."""

from ddlopt.frontier.deployment.strategies.best import StrategyBest
from ddlopt.models.deployment.strategies.instance import StrategyInstance
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Method


def link(_: StrategyInstance, solver: str) -> Method | None:
    """Bounds and search, with HiGHS behind them at the end; another solver has the whole program."""
    if solver != "highs":
        return None
    behind = backend(solver)
    return StrategyBest(behind if isinstance(behind, Highs) else Highs())
