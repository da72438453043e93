"""The special exact method for orders of micro-batches, and when ``exact`` asks it."""

from ddlopt.frontier.deployment.microbatches.order_states import OrderStates
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.microbatches.methods import search_and_starts
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_SHARE = 0.2
"""Of the time. On two chunks a device labels take all of it and tell nothing, and the search finds better orders."""


def link(_: MicroBatchInstance, solver: str) -> Method | None:
    """States of a few devices first; what they leave open, the search and the program have the rest of the time for."""
    return WarmStarted(
        "exact", "deployment", OrderStates(), lambda asked: search_and_starts(asked, solver), lambda _: _SHARE
    )
