"""A bound for the problem ``strategies`` that needs no solver."""

from ddlopt.models.deployment.strategies import StrategyInstance


def strategies_bound(instance: StrategyInstance) -> float | None:
    """None so far."""
    return None
