"""What is made of figures that HiGHS gives: bounds that it may have overstated, a trace, solutions in hand."""

from types import SimpleNamespace

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from ddlopt.solvers.backends import highs as highs_module
from ddlopt.solvers.backends import highs_watch
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import _better_of, _honest
from ddlopt.solvers.backends.highs_watch import Watch, finite
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status

KINDS = highspy.cb.HighsCallbackType


def linear(sense=pyo.minimize, offset=1.0):
    """Worth 2 x + 3 y + 1."""
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(domain=pyo.Integers), pyo.Var()
    model.o = pyo.Objective(expr=2 * model.x + 3 * model.y + offset, sense=sense)
    return linear_model(model)


@pytest.mark.parametrize(
    ("bound", "objective", "least"),
    [(0.5, 0.5, 0.4), (0.45, 0.5, 0.4), (0.3, 0.5, 0.3), (0.999, 0.999, 0.899), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0),
     (-0.5, -0.5, -0.6), (-1.0, -1.0, -1.0)],
)  # fmt: skip
def test_a_bound_of_a_small_objective_gives_way_by_the_tolerance(bound, objective, least):
    assert _honest(bound, objective, 0.1, maximise=False) == pytest.approx(least)
    assert _honest(-bound, -objective, 0.1, maximise=True) == pytest.approx(-least)


@pytest.mark.parametrize(("sense", "worse", "better"), [(pyo.minimize, 7.0, 5.0), (pyo.maximize, 5.0, 7.0)])
def test_a_solution_in_hand_is_kept_where_it_is_better(sense, worse, better):
    model, known = linear(sense), np.array([1.0, 1.0])  # worth 6
    for found in (Outcome(Status.OPTIMAL, better, better), Outcome(Status.OPTIMAL, 6.0, 6.0)):
        assert _better_of(found, None, model) is _better_of(found, known, model) is found
    kept = _better_of(Outcome(Status.OPTIMAL, worse, worse), known, model)
    assert (kept.status, kept.objective, kept.bound) == (Status.OPTIMAL, 6.0, worse)
    nothing = _better_of(Outcome(Status.NO_SOLUTION, None, better), known, model)
    assert (nothing.status, nothing.objective, nothing.bound) == (Status.FEASIBLE, 6.0, better)
    assert [column.value for column in model.columns] == [1.0, 1.0]


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [0.0]
    monkeypatch.setattr(highs_watch, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def hears(watch, values, said, dual, primal=None):
    """HiGHS tells a solution, what it says that it is worth, and its bounds."""
    told = SimpleNamespace(mip_solution=values, objective_function_value=said, mip_dual_bound=dual,
                           mip_primal_bound=said if primal is None else primal)  # fmt: skip
    watch._hear(KINDS.kCallbackMipImprovingSolution, "", told, None, None)


@pytest.mark.parametrize(
    ("sense", "warm", "said", "misled"),
    [
        (pyo.minimize, True, 6.0, False), (pyo.minimize, True, 7.0, False), (pyo.minimize, True, 5.0, True),
        (pyo.maximize, True, 6.0, False), (pyo.maximize, True, 5.0, False), (pyo.maximize, True, 7.0, True),
        (pyo.minimize, False, 5.0, False), (pyo.minimize, True, 6 - 5.9e-6, False),
        (pyo.minimize, True, 6 - 6.1e-6, True),
    ],
)  # fmt: skip
def test_a_solution_that_is_not_what_highs_says_ends_a_run_with_a_start(clock, sense, warm, said, misled):
    watch = Watch(None, linear(sense), 0.0, None, warm)
    hears(watch, [1.0, 1.0], said, 0.0)
    assert (watch.misled, watch._stop.is_set(), watch.in_hand is None) == (misled,) * 3
    assert [point.incumbent for point in watch.trace] == ([] if misled else [6.0])
    into = SimpleNamespace(user_interrupt=False)
    watch._hear(KINDS.kCallbackSimplexInterrupt, "", None, into, None)
    assert into.user_interrupt == misled


def test_parts_that_cancel_are_off_by_their_own_size(clock):
    for offset, misled in ((2e9, False), (0.0, True)):
        watch = Watch(None, linear(offset=offset), 0.0, None, True)
        values = [-offset / 2, 0.0]
        hears(watch, values, -1e-3, 0.0)
        assert watch.misled == misled


def test_points_of_a_trace_are_some_time_apart_and_never_fall_back(clock):
    watch = Watch(None, linear(), 0.0, None)

    def bounds(at, dual, primal=9.0):
        clock[0] = at
        told = SimpleNamespace(mip_dual_bound=dual, mip_primal_bound=primal)
        watch._hear(KINDS.kCallbackMipInterrupt, "", told, None, None)

    bounds(1.0, 2.0)
    bounds(1.2, 3.0)
    bounds(1.25, 4.0)
    bounds(1.5, 1.0)
    bounds(1.75, 9.0)  # of a start HiGHS says at first that its own objective is the bound
    bounds(2.0, -np.inf)
    hears(watch, [1.0, 2.0], 9.0, 5.0)
    hears(watch, [1.0, 3.0], 12.0, 4.5)
    assert [(point.time_s, point.incumbent, point.bound) for point in watch.trace] == [
        (1.0, None, 2.0), (1.25, None, 4.0), (2.0, 9.0, 5.0),
    ]  # fmt: skip
    watch.note(8.0, 4.9, final=True)  # less what may have been pruned
    assert (watch.trace[-1].incumbent, watch.trace[-1].bound) == (8.0, 4.9)
    watch.misled = True
    bounds(3.0, 7.0)
    assert watch.trace[-1].bound == 4.9


def test_a_maximum_has_its_trace_turned_round(clock):
    watch = Watch(None, linear(pyo.maximize), 0.0, None)
    for incumbent, bound in ((1.0, 9.0), (3.0, 8.0), (2.0, 8.5), (None, 7.0)):
        watch.note(incumbent, bound)
    assert [(point.incumbent, point.bound) for point in watch.trace] == [(1.0, 9.0), (3.0, 8.0), (3.0, 7.0)]


def test_a_run_that_does_not_end_is_stopped_after_its_deadline(clock):
    watch = Watch(None, linear(), 0.0, None)
    seen = []

    def wait(_):
        seen.append(watch.overdue)
        clock[0] += 1.0
        return len(seen) == 6

    watch._wait(SimpleNamespace(wait=wait), 3.0)
    assert (seen, watch._stop.is_set()) == ([False] * 4 + [True] * 2, True)
    watch = Watch(None, linear(), 0.0, None)
    watch._wait(SimpleNamespace(wait=lambda _: clock[0] > 100 or clock.__setitem__(0, clock[0] + 50)), None)
    assert (watch.overdue, watch._stop.is_set()) == (False, False)


def test_what_is_infinite_or_no_number_is_none():
    assert [finite(value) for value in (np.inf, -np.inf, np.nan, -1e300, 0.0)] == [None, None, None, -1e300, 0.0]


class Ended:
    """HiGHS after a run, with what it says of it."""

    def __init__(self, dual=4.0, feasible=2, relaxed=False):
        self.info = SimpleNamespace(
            mip_dual_bound=dual, primal_solution_status=feasible, mip_node_count=-1, simplex_iteration_count=3
        )
        self.options = {"solve_relaxation": relaxed, "mip_feasibility_tolerance": 1e-7}

    def getInfo(self):  # noqa: N802 - as HiGHS calls it
        return self.info

    def getOptionValue(self, name):  # noqa: N802
        return None, self.options[name]

    def getSolution(self):  # noqa: N802
        return SimpleNamespace(col_value=[1.0, 1.0], row_dual=[])


@pytest.mark.parametrize(
    ("end", "options", "expected"),
    [
        ("kOptimal", {}, (Status.OPTIMAL, 6.0, 4.0, "")),
        ("kOptimal", {"relaxed": True}, (Status.OPTIMAL, 6.0, 6.0, "")),
        ("kOptimal", {"dual": np.inf}, (Status.OPTIMAL, 6.0, None, "")),
        ("kTimeLimit", {}, (Status.FEASIBLE, 6.0, 4.0, "time limit")),
        ("kTimeLimit", {"relaxed": True}, (Status.FEASIBLE, 6.0, None, "time limit")),
        ("kTimeLimit", {"feasible": 1}, (Status.NO_SOLUTION, None, 4.0, "time limit")),
        ("kTimeLimit", {"feasible": 0}, (Status.NO_SOLUTION, None, 4.0, "time limit")),
        ("kInfeasible", {}, (Status.INFEASIBLE, None, None, "infeasible")),
        ("kUnbounded", {}, (Status.UNBOUNDED, None, None, "unbounded")),
        ("kUnboundedOrInfeasible", {}, (Status.NO_SOLUTION, None, 4.0, "infeasible or unbounded")),
        ("kSolveError", {}, (Status.ERROR, None, None, "HiGHS failed in the solve")),
        ("kInterrupt", {}, (Status.FEASIBLE, 6.0, 4.0, "interrupted")),
    ],
)
def test_an_end_says_as_much_as_it_proves(end, options, expected):
    model = linear()
    watch = Watch(None, model, 0.0, None)
    outcome = highs_module.Highs()._outcome(
        highspy.HighsModelStatus.__members__[end], Ended(**options), model, watch, want_duals=True
    )
    assert (outcome.status, outcome.objective, outcome.bound, outcome.message) == expected
    assert outcome.interrupted == (end == "kInterrupt")
    assert outcome.figures.get("nodes", 0) == 0
    assert outcome.figures["simplex_iterations"] == 3


def test_an_overdue_run_was_not_interrupted_by_anybody():
    model = linear()
    watch = Watch(None, model, 0.0, None)
    watch.overdue = True
    outcome = highs_module.Highs()._outcome(highspy.HighsModelStatus.kInterrupt, Ended(), model, watch, False)
    assert (outcome.message, outcome.interrupted) == ("time limit", False)


def test_highs_is_told_what_is_left_of_the_time_the_seed_the_gap_and_the_start(monkeypatch):
    told = {}

    class Told:
        def setOptionValue(self, name, value):  # noqa: N802
            told[name] = value
            return highspy.HighsStatus.kOk

        def setSolution(self, *start):  # noqa: N802
            told["start"] = [part if isinstance(part, int) else part.tolist() for part in start]

    class StopError(Exception):
        pass

    def run(watch, deadline_s):
        told["deadline"] = deadline_s
        raise StopError

    monkeypatch.setattr(highs_module, "SilentHighs", Told)
    monkeypatch.setattr(highs_module, "pass_model", lambda *_: None)
    monkeypatch.setattr(Watch, "elapsed_s", 4.0)
    monkeypatch.setattr(Watch, "run", run)
    model = linear()
    model.columns[0].set_value(7)
    limits = Limits(time_s=4.5, gap=0.125, threads=3)
    with pytest.raises(StopError):
        highs_module.Highs({"mip_abs_gap": 0.5}).solve_linear(model, limits, seed=2**31 + 5, warm=True)
    assert told == {
        "mip_abs_gap": 0.5, "mip_feasibility_tolerance": 1e-7, "mip_rel_gap": 0.125, "threads": 3, "random_seed": 5,
        "time_limit": 0.5, "deadline": 6.5, "start": [1, [0], [7.0]],
    }  # fmt: skip
    told.clear()
    with pytest.raises(StopError):
        highs_module.Highs().solve_linear(model, Limits())
    assert (told["mip_abs_gap"], told["deadline"], "time_limit" in told, "start" in told) == (0.0, None, False, False)
    late = highs_module.Highs().solve_linear(model, Limits(time_s=4.0))
    assert (late.status, late.message) == (Status.NO_SOLUTION, "time limit passed while the model was handed over")


def test_the_coefficient_that_highs_would_drop_is_named():
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2, 3], bounds=(0, 1))
    least = highs_module.SilentHighs().getOptionValue("small_matrix_value")[1]
    model.c = pyo.Constraint([1, 2], rule=lambda m, i: m.x[1] + 2 * m.x[2] + 0 * m.x[3] >= i)
    highs_module.pass_model(highs_module.SilentHighs(), linear_model(model))
    model.d = pyo.Constraint(expr=model.x[1] - least * model.x[3] >= 0)
    with pytest.raises(highs_module.RangeError, match=rf"constraint 'd' has coefficient -{least:.3g} at 'x\[3\]'"):
        highs_module.pass_model(highs_module.SilentHighs(), linear_model(model))
