"""Convex programs through CVXPY, with the solver named and no verdict taken for more than it is.

CVXPY picks a solver by what is installed, hands back a vector of zeros where a limit stops the solver (one of them even
calls that "optimal, inaccurate"), and keeps the time limit of a solve for the next one of the same problem. Here the
solver is named, every solve starts afresh, and what it finds is a point to be checked and multipliers to be turned into
a bound by somebody else.
"""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import cvxpy as cp
from cvxpy.error import DCPError
from cvxpy.error import SolverError as CvxpySolverError

from ddlopt.models.errors import SolverError, SolverMissingError, UnknownNameError
from ddlopt.solvers.contracts import Limits, Status

_STATUS: Mapping[str, Status] = {
    cp.OPTIMAL: Status.OPTIMAL,
    cp.OPTIMAL_INACCURATE: Status.FEASIBLE,
    cp.INFEASIBLE: Status.INFEASIBLE,
    cp.UNBOUNDED: Status.UNBOUNDED,
    cp.USER_LIMIT: Status.NO_SOLUTION,
}

_TIME_LIMIT: Mapping[str, str] = {"clarabel": "time_limit", "scs": "time_limit_secs"}
_FIXED: Mapping[str, Mapping[str, Any]] = {
    # Where it gets no further, the point that it has. With its own least step lengths it gave up on most programs with
    # some hundred logarithms of ten thousand columns; with these it solves them.
    "clarabel": {"accept_unknown": True, "min_terminate_step_length": 1e-8, "min_switch_step_length": 1e-4},
    "scs": {},
}


@dataclass(frozen=True)
class ConvexOutcome:
    """How the solve of a CVXPY problem ended.

    Parameters
    ----------
    status : Status
        ``OPTIMAL``: within the solver's tolerances, nothing more; its variables and constraints have values.
        ``FEASIBLE``: the solver gave up early; they have values that may be worth little. ``ERROR``: no verdict.
    value : float or None
        Objective that the solver claims.
    runtime_s : float
        Wall-clock seconds, restating the problem for the solver included.
    solver : str
        Name and version.
    message : str
        One line for people.
    figures : mapping
        Iterations.
    """

    status: Status
    value: float | None
    runtime_s: float
    solver: str
    message: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Convex:
    """A solver of convex programs behind CVXPY.

    Parameters
    ----------
    name : {"clarabel", "scs"}
    options : mapping
        The solver's own options.

    Raises
    ------
    UnknownNameError
        For another solver.
    SolverMissingError
        If it is not installed.
    """

    name: str = "clarabel"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in _TIME_LIMIT:
            raise UnknownNameError(f"there is no convex solver '{self.name}'; there are: {', '.join(_TIME_LIMIT)}")
        if find_spec(self.name) is None:
            raise SolverMissingError(f"solver '{self.name}' is not installed; pip install {self.name}")
        if _TIME_LIMIT[self.name] in self.options:
            raise UnknownNameError(f"option '{_TIME_LIMIT[self.name]}' of {self.name} is set by Limits.time_s")

    def solve(self, problem: cp.Problem, limits: Limits) -> ConvexOutcome:
        """Solve, and load values into the problem's variables and multipliers into its constraints.

        Raises
        ------
        SolverError
            If the solver does not take the problem or an option, or breaks down.
        """
        started = time.perf_counter()
        label = f"{self.name} {version(self.name)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in the status
            try:
                options = {**_FIXED[self.name], **self.options}
                geometric = not problem.is_dcp() and problem.is_dgp()
                data, chain, inverse = problem.get_problem_data(self.name.upper(), gp=geometric, solver_opts=options)
                left = None if limits.time_s is None else limits.time_s - (time.perf_counter() - started)
                if left is not None and left <= 0:
                    spent = time.perf_counter() - started
                    return ConvexOutcome(Status.NO_SOLUTION, None, spent, label, "time limit while restating")
                timed = {} if left is None else {_TIME_LIMIT[self.name]: left}
                found = chain.solve_via_data(problem, data, False, False, {**options, **timed})
                problem.unpack_results(found, chain, inverse)
            except (CvxpySolverError, DCPError, TypeError, ValueError, ArithmeticError) as problem_found:
                line = str(problem_found).strip().split("\n")[0]
                raise SolverError(f"{self.name} did not solve a convex program: {line}") from None
        status = _STATUS.get(problem.status, Status.ERROR)
        loaded = status in (Status.OPTIMAL, Status.FEASIBLE)
        iterations = getattr(problem.solver_stats, "num_iters", None)
        return ConvexOutcome(
            status=status,
            value=float(problem.value) if loaded else None,
            runtime_s=time.perf_counter() - started,
            solver=label,
            message="" if status is Status.OPTIMAL else f"{self.name} says: {problem.status}",
            figures={} if iterations is None else {"iterations": float(iterations)},
        )
