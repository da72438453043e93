"""The integer programs for aggregation in trees, and a heuristic that they start from."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation, states_of
from ddlopt.models.aggregation.tree.formulations.tree_message_flow import TreeMessageFlow
from ddlopt.models.aggregation.tree.instance import TreeInstance
from ddlopt.models.contracts import Formulation
from ddlopt.solvers.aggregation.tree.limits import TreeLimits
from ddlopt.solvers.aggregation.tree.prices import TreePrices
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.wrappers.known import known_objective
from ddlopt.solvers.wrappers.limited import FromStart
from ddlopt.solvers.wrappers.warm_started import WarmStarted

MOST_STATES = 20_000
"""Beyond, the program over states takes longer than that over messages."""


@dataclass(frozen=True)
class TreeIntegerProgram(FromStart):
    """The integer program that fits: over states for utilization, over messages for congestion and in deep trees.

    The one for congestion is limited by the start.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "milp"
    family: ClassVar[str] = "aggregation"

    def made(self, instance: Any, start: Any = None, gap: float | None = None) -> Formulation:
        """The program that fits, limited by the start where it can be."""
        if not isinstance(instance, TreeInstance):
            return TreeAggregation()
        if instance.goal == "congestion":
            return TreeMessageFlow(limit_s=known_objective(instance, start))
        return TreeAggregation() if states_of(instance) <= MOST_STATES else TreeMessageFlow()


def opened(instance: TreeInstance, solver: str) -> Method:
    """A heuristic, and the integer program that starts from what it found."""
    opening = TreePrices() if instance.goal == "utilization" else TreeLimits()
    return WarmStarted("milp", "aggregation", opening, lambda _: TreeIntegerProgram(solver))
