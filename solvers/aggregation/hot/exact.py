"""The integer program of the hot set, after a heuristic."""

from ddlopt.models.aggregation.hot.formulations.hot_parameters import HotParameters
from ddlopt.solvers.aggregation.hot.greedy import HotPrices
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.wrappers.limited import Limited
from ddlopt.solvers.wrappers.warm_started import WarmStarted


def opened(solver: str) -> Method:
    """Prices first, then the integer program, which leaves out what cannot be as good as their answer."""
    program = Limited("hot-program", "aggregation", lambda worth: HotParameters(worth=worth), solver)
    return WarmStarted("milp", "aggregation", HotPrices(), lambda _: program)
