"""Bounds: the entry point ``ddlopt.bounds``."""

from ddlopt.models.announced_bounds import Bound
from ddlopt.models.problem import later

_SCHEDULING, _STRATEGIES = "ddlopt.frontier.scheduling", "ddlopt.frontier.deployment.strategies"

BOUNDS = (
    Bound(
        "scheduling",
        "plans of jobs at prices",
        later(f"{_SCHEDULING}.bounds:plans_bound"),
        later(f"{_SCHEDULING}.bounds:kernels_of_plans"),
    ),
    Bound(
        "scheduling",
        "plans at prices, for times from arrival to end",
        later(f"{_SCHEDULING}.prices.completion_prices:completion_bound"),
    ),
    Bound(
        "scheduling",
        "work at prices by type, for makespans",
        later(f"{_SCHEDULING}.prices.makespan_prices:typed_makespan_bound"),
    ),
    Bound(
        "deployment/strategies",
        "messages along edges",
        later(f"{_STRATEGIES}.bounds:strategies_bound"),
        (f"{_STRATEGIES}.kernels.messages",),
    ),
)
