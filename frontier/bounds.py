"""Bounds: the entry point ``ddlopt.bounds``."""

from ddlopt.models.announced_bounds import Bound
from ddlopt.models.problem import later

_COMPRESSION = "ddlopt.frontier.compression"
_SCHEDULING, _STRATEGIES = "ddlopt.frontier.scheduling", "ddlopt.frontier.deployment.strategies"

BOUNDS = (
    Bound(
        "scheduling",
        "prices on slots",
        later(f"{_SCHEDULING}.bounds:prices_bound"),
        later(f"{_SCHEDULING}.bounds:kernels_of_prices"),
    ),
    Bound(
        "scheduling",
        "deadlines that cannot be met",
        later(f"{_SCHEDULING}.bounds:times_bound"),
        later(f"{_SCHEDULING}.bounds:kernels_of_prices"),
    ),
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
    Bound("topology", "whole links of blocks", later("ddlopt.frontier.topology.blocks.bounds:blocks_bound")),
    Bound("codesign", "prices of layers", later("ddlopt.frontier.codesign.bounds:prices_bound")),
    Bound(
        "compression/timeline",
        "prices of both lanes and of the error",
        later(f"{_COMPRESSION}.bounds:timeline_prices"),
        later(f"{_COMPRESSION}.bounds:kernels_of_timelines"),
    ),
    *(
        Bound(
            f"compression/{room}",
            "prices of both lanes and of the error",
            later(f"{_COMPRESSION}.bounds:{value}"),
            (f"{_COMPRESSION}.timeline.dual.kernels",),
        )
        for room, value in (("levels", "level_prices"), ("forward", "forward_prices"))
    ),
    Bound(
        "deployment/strategies",
        "messages along edges",
        later(f"{_STRATEGIES}.bounds:strategies_bound"),
        (f"{_STRATEGIES}.kernels.messages",),
    ),
)
