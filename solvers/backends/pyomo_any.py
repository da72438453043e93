"""Any other solver that Pyomo drives, by name: the same outcome, and no verdict believed without values.

A model is restated in plain rows before Pyomo hands it over, because the interfaces differ in what they make of the
rest: that of SCIP gets the sides of a range wrong where its body has a constant (Pyomo 6.10.1 with PySCIPOpt 6.3), and
others leave variables without a value or refuse a row without variables.
"""

import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.opt import SolverStatus, TerminationCondition

from ddlopt.models.errors import SolverError, SolverMissingError, UnknownNameError
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.matrix import LinearModel, Vector, linear_model, load_values, plain_model
from ddlopt.solvers.backends.quiet import quiet
from ddlopt.solvers.backends.solution_fit import misfit
from ddlopt.solvers.backends.starts import completed
from ddlopt.solvers.contracts import Limits, ProgressCallback, Status, TracePoint

_LEAST_S = 1e-3
"""What is left of a time limit that has passed; none of the solvers takes 0."""


@dataclass(frozen=True)
class Driver:
    """How Pyomo reaches a solver, and the solver's own names for what every solve needs.

    Parameters
    ----------
    plugin : str
        Pyomo's name of the interface.
    install : str
        How to install the solver.
    time, gap, seed : str
        Options for the time limit in seconds, the relative gap and the random seed.
    threads : str or None
        Option for the number of threads; None where there is only one.
    from_log : bool
        The interface reads the dual bound from a log, where it is rounded, so it is not used.
    fixed_options : mapping
        Options that every solve gets.
    """

    plugin: str
    install: str
    time: str
    gap: str
    threads: str | None
    seed: str
    from_log: bool = False
    fixed_options: Mapping[str, Any] = field(default_factory=dict)


DRIVERS: Mapping[str, Driver] = {
    "cbc": Driver(
        plugin="cbc",
        install="apt-get install coinor-cbc",
        time="sec",
        gap="ratio",
        threads="threads",
        seed="randomCbcSeed",
        from_log=True,
        fixed_options={"timeMode": "elapsed", "allow": 0},
    ),
    "cplex": Driver(
        plugin="cplex_direct",
        install="pip install cplex",
        time="timelimit",
        gap="mip_tolerances_mipgap",
        threads="threads",
        seed="randomseed",
    ),
    "glpk": Driver(
        plugin="glpk",
        install="apt-get install glpk-utils",
        time="tmlim",
        gap="mipgap",
        threads=None,
        seed="seed",
        from_log=True,
    ),
    "gurobi": Driver(
        plugin="gurobi_direct",
        install="pip install gurobipy",
        time="TimeLimit",
        gap="MIPGap",
        threads="Threads",
        seed="Seed",
        fixed_options={"MIPGapAbs": 0},
    ),
    "scip": Driver(
        plugin="scip_direct",
        install="pip install pyscipopt",
        time="limits/time",
        gap="limits/gap",
        threads="lp/threads",
        seed="randomization/randomseedshift",
        # Pyomo reads its log through a pipe in a thread, which waits for the lock that SCIP holds: a log that fills the
        # pipe stops both for good.
        fixed_options={"display/verblevel": 0},
    ),
    "xpress": Driver(
        plugin="xpress_direct",
        install="pip install xpress",
        time="maxtime",
        gap="miprelstop",
        threads="threads",
        seed="randomseed",
        fixed_options={"mipabsstop": 0},
    ),
}

_EITHER = "infeasible or unbounded"
_VERDICTS: Mapping[Any, tuple[Status, str]] = {
    TerminationCondition.optimal: (Status.OPTIMAL, ""),
    TerminationCondition.globallyOptimal: (Status.OPTIMAL, ""),
    TerminationCondition.infeasible: (Status.INFEASIBLE, "infeasible"),
    TerminationCondition.unbounded: (Status.UNBOUNDED, "unbounded"),
    TerminationCondition.infeasibleOrUnbounded: (Status.NO_SOLUTION, _EITHER),
    TerminationCondition.error: (Status.ERROR, "the solver failed"),
    TerminationCondition.internalSolverError: (Status.ERROR, "the solver failed"),
    TerminationCondition.invalidProblem: (Status.ERROR, "the solver refused the model"),
    TerminationCondition.solverFailure: (Status.ERROR, "the solver failed"),
    TerminationCondition.licensingProblems: (Status.ERROR, "the solver has no licence for this model"),
}
_STOPS: Mapping[Any, str] = {
    TerminationCondition.maxTimeLimit: "time limit",
    TerminationCondition.userInterrupt: "interrupted",
    TerminationCondition.feasible: "stopped by a limit",
}


@dataclass(frozen=True)
class PyomoSolver:
    """A solver by the name that Pyomo knows it under.

    Parameters
    ----------
    name : str
        One of :data:`DRIVERS`, or any other interface of Pyomo; those take no limits.
    options : mapping
        The solver's own options, passed on as they are.

    Raises
    ------
    UnknownNameError
        If Pyomo has no interface of that name.
    SolverMissingError
        If the solver is not installed.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in DRIVERS and self.name not in set(pyo.SolverFactory):
            known = ", ".join(sorted({"highs", *DRIVERS}))
            raise UnknownNameError(f"there is no solver '{self.name}'; there are: {known}")
        if not self.installed():
            hint = f"; try: {DRIVERS[self.name].install}" if self.name in DRIVERS else ""
            raise SolverMissingError(f"the solver '{self.name}' is not installed{hint}")

    def installed(self) -> bool:
        """Whether the solver can be run here."""
        with quiet():
            try:
                return bool(self._plugin().available(exception_flag=False))
            except Exception:  # each interface has its own kinds
                return False

    @property
    def uses(self) -> frozenset[str]:
        """Whether the solver can be told a number of threads, and a seed."""
        driver = DRIVERS.get(self.name)
        if driver is None:
            return frozenset()
        return frozenset({"seed"} if driver.threads is None else {"threads", "seed"})

    def solve(
        self,
        model: pyo.ConcreteModel,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        warm: bool = False,
    ) -> Outcome:
        """Solve a linear ``model``; see :class:`~ddlopt.solvers.backends.contracts.Backend`.

        ``progress`` hears of the end only. A start is completed first, see
        :func:`~ddlopt.solvers.backends.starts.completed`; where the solver takes none, or nothing completes it, the
        outcome's message says so.

        Raises
        ------
        SolverError
            If the model is not linear, or the solver fails or cannot be told the limits.
        """
        started = time.perf_counter()
        linear = linear_model(model)
        plugin = self._plugin()
        start, note = _start(self.name, plugin, linear, limits) if warm and linear.integer.any() else (None, "")
        plain = plain_model(linear, start)
        if plain is None:
            message = "a constraint without variables does not hold"
            return Outcome(Status.INFEASIBLE, runtime_s=time.perf_counter() - started, message=message)
        if limits.time_s is not None and start is not None:
            limits = dataclasses.replace(limits, time_s=max(_LEAST_S, limits.time_s - (time.perf_counter() - started)))
        settings = self._settings(limits, seed)
        results = self._run(plugin, plain, settings, **(_pass_on(plugin, plain) if start is not None else {}))
        status, message = self._verdict(results)
        if message == _EITHER:
            # A model without an objective cannot be unbounded, so that one tells which of the two.
            plain.objective.set_value(0.0)
            told = {Status.OPTIMAL: Status.UNBOUNDED, Status.INFEASIBLE: Status.INFEASIBLE}
            status = told.get(self._verdict(self._run(plugin, plain, settings))[0], status)
            message = str(status) if status in told.values() else message
        objective = None
        if status in (Status.OPTIMAL, Status.NO_SOLUTION):
            objective = _load(linear, plain, results, proven=status is Status.OPTIMAL)
            if objective is not None and status is Status.NO_SOLUTION:
                status = Status.FEASIBLE
            elif objective is None and status is Status.OPTIMAL:
                status, message = Status.ERROR, f"{self.name} says optimal but gives no values"
        bound = None
        if status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION):
            gap = limits.gap if linear.integer.any() else 0.0
            bound = self._bound(results, status, objective, gap, linear.maximise)
        point = TracePoint(time.perf_counter() - started, objective, bound)
        known = objective is not None or bound is not None
        if known and progress is not None:
            progress(point)
        return Outcome(
            status,
            objective,
            bound,
            runtime_s=time.perf_counter() - started,
            trace=(point,) if known else (),
            message="; ".join(filter(None, [message, note])),
            solver=" ".join([self.name, ".".join(str(part) for part in plugin.version() or ())]).strip(),
            figures=linear.figures,
            interrupted=results.solver.termination_condition == TerminationCondition.userInterrupt,
        )

    def _plugin(self) -> Any:
        return pyo.SolverFactory(DRIVERS[self.name].plugin if self.name in DRIVERS else self.name)

    def _run(self, plugin: Any, plain: pyo.ConcreteModel, settings: Mapping[str, Any], **start: bool) -> Any:
        try:
            with quiet():
                return plugin.solve(plain, load_solutions=False, options=dict(settings), **start)
        except Exception as problem:  # each interface has its own kinds
            raise SolverError(f"{self.name} failed: {_first_line(problem)}") from problem

    def _settings(self, limits: Limits, seed: int) -> dict[str, Any]:
        """The solver's options for these limits."""
        driver = DRIVERS.get(self.name)
        if driver is None:
            if limits.time_s is not None:
                raise SolverError(
                    f"ddlopt does not know how to tell '{self.name}' its time limit; set it in its options"
                )
            return dict(self.options)
        # A solver whose bound is not known exactly must get closer than asked, see _bound.
        gap = limits.gap / 2 if driver.from_log else limits.gap
        settings = {**driver.fixed_options, driver.gap: gap, driver.seed: seed % 2**31}
        if driver.threads is not None:
            settings[driver.threads] = limits.threads
        if limits.time_s is not None:
            settings[driver.time] = math.ceil(limits.time_s) if self.name == "glpk" else limits.time_s
        return {**settings, **self.options}

    def _verdict(self, results: Any) -> tuple[Status, str]:
        condition = results.solver.termination_condition
        stop = _STOPS.get(condition, f"{self.name} ended with: {condition}")
        status, message = _VERDICTS.get(condition, (Status.NO_SOLUTION, stop))
        if self.name == "glpk" and status is Status.UNBOUNDED:
            # Pyomo takes GLPK's "no feasible solution" of an LP for unbounded.
            return Status.NO_SOLUTION, _EITHER
        return status, message

    def _bound(
        self, results: Any, status: Status, objective: float | None, gap: float, maximises: bool
    ) -> float | None:
        driver = DRIVERS.get(self.name)
        if driver is not None and not driver.from_log:
            reported = results.problem.upper_bound if maximises else results.problem.lower_bound
            return float(reported) if isinstance(reported, int | float) and math.isfinite(reported) else None
        if driver is None or status is not Status.OPTIMAL or objective is None:
            return None
        # |objective - bound| <= gap/2 max(|objective|, |bound|) is what the solver promised.
        slack = gap / (2 - gap) * abs(objective)
        return objective + slack if maximises else objective - slack


def _load(linear: LinearModel, plain: pyo.ConcreteModel, results: Any, proven: bool) -> float | None:
    """Give the incumbent's values to the model and return its objective; None where there is none.

    CBC, stopped before it has a solution, hands over those of a relaxation: they count only if they fit the model.
    """
    if not len(results.solution) or not len(results.solution[0].variable):
        return None
    # Pyomo refuses the values that come with an end it does not know; the verdict here is not its status.
    results.solver.status = SolverStatus.ok
    plain.solutions.load_from(results)
    values = np.array([np.nan if plain.x[j].value is None else plain.x[j].value for j in range(len(linear.columns))])
    # Pyomo leaves out what occurs nowhere; any value within its bounds will do.
    values = np.where(np.isnan(values), np.clip(0.0, linear.lower, linear.upper), values)
    if not proven and misfit(linear, values) is not None:
        return None
    return load_values(linear, values)


def _start(name: str, plugin: Any, linear: LinearModel, limits: Limits) -> tuple[Vector | None, str]:
    """Values to start from; where there are none, why."""
    if not (_takes_discrete_start(plugin) or getattr(plugin, "warm_start_capable", bool)()):
        return None, f"{name} takes no start"
    values = completed(linear, limits)
    return values, "nothing completes the start to a solution of the model" if values is None else ""


def _takes_discrete_start(plugin: Any) -> bool:
    return "warmstart_discrete_vars" in getattr(plugin, "config", ())


def _pass_on(plugin: Any, plain: pyo.ConcreteModel) -> dict[str, bool]:
    """What tells the interface to start from the variables' values."""
    if not _takes_discrete_start(plugin):
        return {"warmstart": True}
    plugin.config.warmstart_discrete_vars = True
    # Pyomo hands SCIP the whole-numbered ones alone, to be completed by a heuristic that comes late or not at all.
    plugin._mipstart = lambda: _whole_start(plugin, plain)
    return {}


def _whole_start(plugin: Any, plain: pyo.ConcreteModel) -> None:
    """Give SCIP all values, also that of the column which Pyomo adds for the objective."""
    scip, columns = plugin._solver_model, plugin._pyomo_var_to_solver_var_map
    start = scip.createSol()
    for column in scip.getVars():
        scip.setSolVal(start, column, pyo.value(plain.objective))
    for variable, column in columns.items():
        scip.setSolVal(start, column, variable.value)
    scip.addSol(start)


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
