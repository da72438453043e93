"""The integer program of the hot set, after a heuristic."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.aggregation.evaluate_hot import evaluate_hot
from ddlopt.models.aggregation.hot import HotSet
from ddlopt.models.aggregation.hot_parameters import HotParameters
from ddlopt.solvers.aggregation.hot_greedy import HotPrices
from ddlopt.solvers.aggregation.hot_knapsack import FAMILY
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.opened import Opened


@dataclass(frozen=True)
class HotProgram:
    """The integer program, which leaves out what cannot be as good as the start.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "hot-parameters"
    family: ClassVar[str] = FAMILY

    def refuses(self, instance: Any) -> str | None:
        """What the formulation refuses."""
        return HotParameters().refuses(instance)

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        worth = None
        if isinstance(start, HotSet):
            check = evaluate_hot(instance, start)
            worth = float(check.objective) if check.feasible and check.objective is not None else None
        method = Exact(self.name, FAMILY, HotParameters(worth=worth), backend(self.solver))
        return method.solve(instance, limits, seed, progress, start)


def opened(solver: str) -> Method:
    """Prices first, then the integer program."""
    return Opened("hot-parameters", FAMILY, HotPrices(), lambda _: HotProgram(solver))
