"""Bounds: the entry point ``ddlopt.bounds``."""

from ddlopt.models.announced_bounds import Bound
from ddlopt.models.problem import later

_STRATEGIES = "ddlopt.frontier.deployment.strategies"

BOUNDS = (
    Bound(
        "deployment/strategies",
        "messages along edges",
        later(f"{_STRATEGIES}.bounds:strategies_bound"),
        (f"{_STRATEGIES}.kernels.messages",),
    ),
)
