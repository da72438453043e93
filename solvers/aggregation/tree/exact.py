"""The integer programs for aggregation in trees, with what a heuristic says of the instance."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation, states_of
from ddlopt.models.aggregation.tree.formulations.tree_message_flow import TreeMessageFlow
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, refusal
from ddlopt.models.contracts import Formulation
from ddlopt.solvers.aggregation.tree.limits import TreeLimits
from ddlopt.solvers.aggregation.tree.prices import TreePrices
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.contracts import uses_of_backend
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result, compiled, kernels_of
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.limited import known_objective
from ddlopt.solvers.warm_started import WarmStarted

MOST_STATES = 20_000
"""Beyond, the program over states takes longer than that over messages."""


@dataclass(frozen=True)
class TreeIntegerProgram:
    """The integer program that fits: over states for utilization, over messages for congestion and in deep trees.

    The one for congestion is limited by the start; without one, by a heuristic.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "milp"
    family: ClassVar[str] = "aggregation"

    def refuses(self, instance: Any) -> str | None:
        """Other problems."""
        return refusal(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the heuristic calls that is asked without a start."""
        return kernels_of(TreeLimits(), instance) if refusal(instance, "congestion") is None else ()

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(backend(self.solver))

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The program that fits, as it is without a start."""
        return fitting(instance, None)

    def solver_for(self, instance: Any) -> str | None:
        """The one behind the formulation."""
        return self.solver

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        compile_s = compiled(self, instance)
        if refusal(instance, "congestion") is None and start is None:
            start = TreeLimits().solve(instance, limits, seed).solution
        formulation = fitting(instance, start)
        name = "tree" if isinstance(formulation, TreeAggregation) else "tree-plain"
        method = Exact(name, self.family, formulation, backend(self.solver))
        result = method.solve(instance, limits, seed, progress, start)
        return told_anew(result, compile_s=compile_s + result.compile_s)


def fitting(instance: Any, start: AggregatingSwitches | None) -> Formulation:
    """The formulation that fits, limited by a start where it can be."""
    if not isinstance(instance, TreeInstance):
        return TreeAggregation()
    if instance.goal == "congestion":
        return TreeMessageFlow(limit_s=known_objective(instance, start))
    return TreeAggregation() if states_of(instance) <= MOST_STATES else TreeMessageFlow()


def opened(instance: TreeInstance, solver: str) -> Method:
    """A heuristic, and the integer program that starts from what it found."""
    opening = TreePrices() if instance.goal == "utilization" else TreeLimits()
    return WarmStarted("milp", "aggregation", opening, lambda _: TreeIntegerProgram(solver))
