"""The independent check of a choice of strategies."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.strategies import StrategyAssignment, StrategyInstance


def evaluate_strategies(instance: StrategyInstance, solution: StrategyAssignment, exact: bool = False) -> Evaluation:
    """Cost, and moments at which memory does not suffice."""
    raise NotImplementedError
