"""The special exact method for orders of micro-batches, and when ``exact`` asks it."""

from ddlopt.frontier.deployment.microbatches.order_states import OrderStates
from ddlopt.frontier.deployment.microbatches.questions import OrderQuestions
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_SHARE = 0.5
"""Of the time; hardly ever all of it is used, as labels are counted."""


def link(_: MicroBatchInstance, solver: str) -> Method | None:
    """States of a few devices first; what they leave open, questions have the rest of the time for."""
    return WarmStarted("exact", "deployment", OrderStates(), lambda _: OrderQuestions(), lambda _: _SHARE)
