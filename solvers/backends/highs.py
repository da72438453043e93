"""HiGHS, fed with arrays: checked options, a start that may be partial, a trace of both bounds, a clean Ctrl-C."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import highspy
import numpy as np
import pyomo.environ as pyo

from ddlopt.models.contracts import Sense
from ddlopt.models.errors import RangeError, SolverError
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs_options import check_options
from ddlopt.solvers.backends.highs_watch import Watch, finite
from ddlopt.solvers.backends.matrix import LinearModel, Vector, linear_model, load_values
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.building import TimeUpError, building
from ddlopt.solvers.contracts import Limits, ProgressCallback, Status, better

_ENDS: Mapping[str, tuple[Status | None, str]] = {
    # None: FEASIBLE if there is an incumbent, NO_SOLUTION otherwise.
    "kOptimal": (Status.OPTIMAL, ""),
    "kModelEmpty": (Status.OPTIMAL, ""),
    "kInfeasible": (Status.INFEASIBLE, "infeasible"),
    "kUnbounded": (Status.UNBOUNDED, "unbounded"),
    "kUnboundedOrInfeasible": (Status.NO_SOLUTION, "infeasible or unbounded"),
    "kTimeLimit": (None, "time limit"),
    "kInterrupt": (None, "interrupted"),
    "kHighsInterrupt": (None, "interrupted"),
    "kIterationLimit": (None, "iteration limit"),
    "kSolutionLimit": (None, "node or solution limit"),
    "kMemoryLimit": (None, "memory limit"),
    "kObjectiveBound": (None, "objective bound reached"),
    "kObjectiveTarget": (None, "objective target reached"),
    "kUnknown": (None, "HiGHS ended without a conclusion"),
    "kNotset": (Status.ERROR, "HiGHS did not start"),
    "kLoadError": (Status.ERROR, "HiGHS could not load the model"),
    "kModelError": (Status.ERROR, "HiGHS found the model faulty"),
    "kPresolveError": (Status.ERROR, "HiGHS failed in presolve"),
    "kSolveError": (Status.ERROR, "HiGHS failed in the solve"),
    "kPostsolveError": (Status.ERROR, "HiGHS failed in postsolve"),
}
_INTERRUPTS = ("kInterrupt", "kHighsInterrupt")
_FEASIBLE_POINT = 2  # HiGHS' kSolutionStatusFeasible
_DEFAULTS: Mapping[str, Any] = {
    "mip_abs_gap": 0.0,
    # A tenth of its own default, so that rows with large coefficients (big-M) hold as well.
    "mip_feasibility_tolerance": 1e-7,
}
# HiGHS looks at its own limit now and then; after this it is interrupted.
_GRACE_S = 2.0


@dataclass(frozen=True)
class Highs:
    """The HiGHS solver.

    Parameters
    ----------
    options : mapping
        HiGHS options by name, checked here for name, type and range. Time limit, gap, threads and seed come with each
        solve. Unless given, ``mip_abs_gap`` is 0, as whether a gap is small is a matter of the relative one, and
        ``mip_feasibility_tolerance`` 1e-7: with 1e-6 an objective is bought with slack of rows, and with 1e-9 HiGHS
        1.15.1 was seen to prove a wrong optimum.

    Raises
    ------
    UnknownNameError
        For an option that HiGHS does not have.
    OptionError
        For a value that it does not take, or an option that :class:`~ddlopt.solvers.contracts.Limits` governs.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "highs"
    uses: ClassVar[frozenset[str]] = frozenset({"threads", "seed"})

    def __post_init__(self) -> None:
        check_options(self.options)

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"

    def solve(
        self,
        model: pyo.ConcreteModel,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        warm: bool = False,
        want_duals: bool = False,
    ) -> Outcome:
        """Solve a linear ``model``; see :class:`~ddlopt.solvers.backends.contracts.Backend`.

        After Ctrl-C the incumbent is kept and the outcome says ``interrupted``; a second Ctrl-C is a
        ``KeyboardInterrupt``.

        Raises
        ------
        SolverError
            If the model is not linear or HiGHS would alter it.
        """
        started = time.perf_counter()
        try:
            with building(limits.time_s):
                linear = linear_model(model)
        except TimeUpError:
            return _handed_over_late(started, self.version)
        return self.solve_linear(linear, limits, seed, progress, warm, want_duals, started)

    def solve_linear(
        self,
        linear: LinearModel,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        warm: bool = False,
        want_duals: bool = False,
        started: float | None = None,
    ) -> Outcome:
        """The same for a model that is given as arrays; ``started``: reading of the clock from which time counts."""
        started = time.perf_counter() if started is None else started
        highs = SilentHighs()
        settings = {**_DEFAULTS, **self.options, "mip_rel_gap": limits.gap, "threads": limits.threads}
        settings["random_seed"] = seed % 2**31
        for name, value in settings.items():
            _must(highs.setOptionValue(name, value), f"set option {name} to {value!r}")
        pass_model(highs, linear)
        if warm:
            _pass_start(highs, linear)
        watch = Watch(highs, linear, started, progress, warm)
        if limits.time_s is not None:
            left = limits.time_s - watch.elapsed_s
            if left <= 0:
                return _handed_over_late(started, self.version)
            _must(highs.setOptionValue("time_limit", left), "set the time limit")
        deadline_s = None if limits.time_s is None else limits.time_s + _GRACE_S
        watch.run(deadline_s)
        if watch.misled:
            again = self.solve_linear(linear, limits, seed, progress, False, want_duals, started)
            return _better_of(again, watch.in_hand, linear)
        end = highs.getModelStatus()
        if end == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            end = _which(highs, linear, Watch(highs, linear, started, None), deadline_s)
        return self._outcome(end, highs, linear, watch, want_duals)

    def _outcome(self, end: Any, highs: highspy.Highs, linear: LinearModel, watch: Watch, want_duals: bool) -> Outcome:
        status, message = _ENDS.get(
            end.name, (Status.ERROR, f"HiGHS ended with {end.name}, which ddlopt does not know")
        )
        info = highs.getInfo()
        if watch.overdue:
            message = "time limit"
        mip = bool(linear.integer.any()) and not highs.getOptionValue("solve_relaxation")[1]
        incumbent = info.primal_solution_status == _FEASIBLE_POINT or end == highspy.HighsModelStatus.kModelEmpty
        if status is None:
            status = Status.FEASIBLE if incumbent else Status.NO_SOLUTION
        objective = bound = None
        if incumbent and status in (Status.OPTIMAL, Status.FEASIBLE):
            # The solution's own objective, for it may be better than the one HiGHS reports after its last improvement.
            objective = load_values(linear, np.asarray(highs.getSolution().col_value))
        if mip:
            bound = finite(info.mip_dual_bound)
            if bound is not None and objective is not None:
                bound = _honest(bound, objective, highs.getOptionValue("mip_feasibility_tolerance")[1], linear.maximise)
        elif status is Status.OPTIMAL:
            bound = objective
        duals: dict[Any, float] = {}
        if want_duals and not mip and status is Status.OPTIMAL:
            duals = dict(zip(linear.rows, np.asarray(highs.getSolution().row_dual).tolist(), strict=True))
        if status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.ERROR):
            bound = None
        watch.note(objective, bound, final=True)
        return Outcome(
            status,
            objective,
            bound,
            runtime_s=watch.elapsed_s,
            trace=tuple(watch.trace),
            message=message,
            solver=f"HiGHS {self.version}",
            figures=_figures(info, linear, mip),
            duals=duals,
            interrupted=end.name in _INTERRUPTS and not watch.overdue,
        )


def _handed_over_late(started: float, version: str) -> Outcome:
    message = "time limit passed while the model was handed over"
    return Outcome(
        Status.NO_SOLUTION, runtime_s=time.perf_counter() - started, message=message, solver=f"HiGHS {version}"
    )


def pass_model(highs: highspy.Highs, linear: LinearModel) -> None:
    """Hand the arrays over.

    Raises
    ------
    RangeError
        If HiGHS would drop coefficients that it deems too small.
    SolverError
        If it refuses them.
    """
    rows, columns = linear.matrix.shape
    smallest = highs.getOptionValue("small_matrix_value")[1]
    values = np.abs(linear.matrix.data)
    tiny = (values > 0) & (values <= smallest)
    if tiny.any():
        place = int(np.argmax(tiny))
        row = int(np.searchsorted(linear.matrix.indptr, place, side="right")) - 1
        column = linear.columns[linear.matrix.indices[place]].name
        raise RangeError(
            f"constraint '{linear.rows[row].name}' has coefficient {linear.matrix.data[place]:.3g} at '{column}', "
            f"which HiGHS would drop (it keeps what exceeds {smallest:.3g}): figures of the model are too far apart; "
            "use another method, or other units where the row is yours"
        )
    status = highs.passModel(
        columns,
        rows,
        linear.matrix.nnz,
        0,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.HessianFormat.kTriangular),
        int(highspy.ObjSense.kMaximize if linear.maximise else highspy.ObjSense.kMinimize),
        linear.offset,
        linear.cost,
        linear.lower,
        linear.upper,
        linear.row_lower,
        linear.row_upper,
        linear.matrix.indptr,
        linear.matrix.indices,
        linear.matrix.data,
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.int32),
        np.zeros(0),
        linear.integer.astype(np.int32),
    )
    _must(status, "take the model")


def _which(highs: highspy.Highs, linear: LinearModel, watch: Watch, deadline_s: float | None) -> Any:
    """Infeasible or unbounded? Without an objective a model cannot be unbounded, so that one is solved."""
    columns = len(linear.columns)
    highs.changeColsCost(columns, np.arange(columns, dtype=np.int32), np.zeros(columns))
    watch.run(deadline_s)
    statuses = highspy.HighsModelStatus
    known = {statuses.kOptimal: statuses.kUnbounded, statuses.kInfeasible: statuses.kInfeasible}
    return known.get(highs.getModelStatus(), statuses.kUnboundedOrInfeasible)


def _better_of(outcome: Outcome, in_hand: Vector | None, linear: LinearModel) -> Outcome:
    """The outcome, with the solution that was in hand before it where that one is better."""
    if in_hand is None:
        return outcome
    sense: Sense = "maximize" if linear.maximise else "minimize"
    known = float(linear.cost @ in_hand + linear.offset)
    if outcome.objective is not None and not better(known, outcome.objective, sense):
        return outcome
    status = Status.OPTIMAL if outcome.status is Status.OPTIMAL else Status.FEASIBLE
    return replace(outcome, status=status, objective=load_values(linear, in_hand))


def _honest(bound: float, objective: float, tolerance: float, maximise: bool) -> float:
    """The bound less what HiGHS may have pruned: nodes that improve by less than its tolerance, which is absolute.

    That matters for small objectives only; from 1 on it is below the relative accuracy of everything else.
    """
    if objective == 0 or abs(objective) >= 1:
        return bound
    return max(bound, objective + tolerance) if maximise else min(bound, objective - tolerance)


def _pass_start(highs: highspy.Highs, linear: LinearModel) -> None:
    """Give the values that there are; HiGHS completes them by solving what is left."""
    pairs = [(j, variable.value) for j, variable in enumerate(linear.columns) if variable.value is not None]
    if pairs and linear.integer.any():
        places, values = zip(*pairs, strict=True)
        highs.setSolution(len(pairs), np.array(places, dtype=np.int32), np.array(values, dtype=np.float64))


def _must(status: Any, what: str) -> None:
    """HiGHS tells of a refusal in a status only; a warning is as bad, for it means that something was altered."""
    if status != highspy.HighsStatus.kOk:
        raise SolverError(f"HiGHS did not {what} ({status.name})")


def _figures(info: Any, linear: LinearModel, mip: bool) -> dict[str, float]:
    figures = linear.figures
    if mip:
        figures["nodes"] = max(0, info.mip_node_count)
    figures["simplex_iterations"] = max(0, info.simplex_iteration_count)
    return figures
