import os
import random
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import highspy
import pyomo.environ as pyo
import pytest
from hard_network import lay_circulant, network
from refusals import one_line
from volume import for_each

import ddlopt
from ddlopt.models.errors import OptionError, RangeError, UnknownNameError
from ddlopt.solvers.backends import highs as highs_module
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.highs_options import option_names
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.contracts import Limits, Status

FAULTS = Path(__file__).resolve().parents[3] / "docs/reference/highs"


def knapsack(items=30, rows=5, seed=1):
    rng = random.Random(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(items), domain=pyo.Binary)
    weights = [[rng.randint(5, 60) for _ in range(items)] for _ in range(rows)]
    model.fits = pyo.Constraint(
        range(rows), rule=lambda m, k: sum(w * m.x[i] for i, w in enumerate(weights[k])) <= sum(weights[k]) // 2
    )
    model.o = pyo.Objective(expr=sum(rng.randint(10, 70) * model.x[i] for i in range(items)), sense=pyo.maximize)
    return model


@for_each(
    ("options", "error", "message"),
    [
        ({"mip_rel_gp": 0.1}, UnknownNameError, "has no option 'mip_rel_gp'; did you mean mip_rel_gap"),
        ({"zzz": 1}, UnknownNameError, "has no option 'zzz'; see https://"),
        ({"mip_max_nodes": 1.5}, OptionError, "option 'mip_max_nodes' must be an integer, got 1.5"),
        ({"mip_max_nodes": True}, OptionError, "option 'mip_max_nodes' must be an integer, got True"),
        ({"mip_heuristic_effort": "0.1"}, OptionError, "must be a number, got '0.1'"),
        ({"mip_heuristic_effort": 2.0}, OptionError, "does not take the value 2.0"),
        ({"presolve": "maybe"}, OptionError, "option 'presolve' does not take the value 'maybe'"),
        ({"presolve": False}, OptionError, "option 'presolve' must be a text"),
        ({"output_flag": 1}, OptionError, "option 'output_flag' must be true or false"),
        ({"threads": 2}, OptionError, "option 'threads' is set by Limits.threads"),
        ({"time_limit": 2.0}, OptionError, "option 'time_limit' is set by Limits.time_s"),
        ({"mip_rel_gap": 0.1}, OptionError, "option 'mip_rel_gap' is set by Limits.gap"),
        ({"random_seed": 1}, OptionError, "set by the seed of the solve"),
    ],
)
def test_options_are_checked_before_anything_is_solved(options, error, message):
    with one_line(error, match=message):
        Highs(options)


def test_options_arrive():
    outcome = Highs({"mip_max_improving_sols": 1}).solve(network(n=6), Limits())
    assert (outcome.status, outcome.message) == (Status.FEASIBLE, "node or solution limit")
    assert {"mip_lp_solver", "presolve", "threads"} <= set(option_names())


def test_every_end_that_highs_knows_has_a_status():
    assert set(highs_module._ENDS) == set(highspy.HighsModelStatus.__members__)


def test_an_end_that_is_not_known_is_an_error(monkeypatch):
    monkeypatch.setattr(highs_module, "_ENDS", {})
    outcome = Highs().solve(knapsack(items=5), Limits())
    assert outcome.status is Status.ERROR
    assert "kOptimal" in outcome.message


@pytest.mark.slow
def test_time_limit_without_a_solution():
    outcome = Highs({"mip_heuristic_effort": 0.0}).solve(network(n=24), Limits(time_s=1.5))
    assert (outcome.status, outcome.objective, outcome.message) == (Status.NO_SOLUTION, None, "time limit")
    assert outcome.bound is None or outcome.bound >= 0


def test_time_limit_that_the_handing_over_uses_up():
    outcome = Highs().solve(network(), Limits(time_s=1e-6))
    assert (outcome.status, outcome.bound) == (Status.NO_SOLUTION, None)
    assert outcome.message == "time limit passed while the model was handed over"


@pytest.mark.slow
def test_time_limit_with_a_solution():
    model = network()
    lay_circulant(model)
    outcome = Highs().solve(model, Limits(time_s=2.0), warm=True)
    assert (outcome.status, outcome.message) == (Status.FEASIBLE, "time limit")
    assert outcome.bound < outcome.objective == pytest.approx(model.z.value)


@pytest.mark.slow
def test_overdue_solve_is_stopped(monkeypatch):
    """HiGHS is told to stop by us, too, should it not look at its own clock."""
    monkeypatch.setattr(highs_module, "_GRACE_S", -29.0)
    outcome = Highs().solve(network(), Limits(time_s=30.0))
    assert outcome.message == "time limit"
    assert outcome.runtime_s < 30


def test_threads_change_within_a_process():
    best = [Highs().solve(knapsack(), Limits(threads=threads)).objective for threads in (1, 2, 1, 2)]
    assert best == [best[0]] * 4


@pytest.mark.slow
def test_same_seed_same_search():
    def nodes(seed):
        return Highs().solve(knapsack(items=40), Limits(gap=0.0), seed=seed).figures["simplex_iterations"]

    assert nodes(1) == nodes(1)
    assert len({nodes(seed) for seed in range(4)}) > 1


def test_trace_is_monotone():
    heard = []
    outcome = Highs().solve(knapsack(items=60, rows=10), Limits(gap=0.0), progress=heard.append)
    assert tuple(heard) == outcome.trace
    assert len(heard) > 2
    incumbents = [point.incumbent for point in heard if point.incumbent is not None]
    bounds = [point.bound for point in heard if point.bound is not None]
    times = [point.time_s for point in heard]
    assert incumbents == sorted(incumbents)
    assert bounds == sorted(bounds, reverse=True)
    assert times == sorted(times)
    assert incumbents[-1] == pytest.approx(outcome.objective, rel=1e-12)
    assert outcome.objective <= outcome.bound == bounds[-1]


def test_partial_start_is_completed():
    model = network()
    lay_circulant(model)
    complete = Highs().solve(model, Limits(time_s=20.0, gap=0.99), warm=True).objective
    model = network()
    lay_circulant(model)
    for (i, _), link in model.x.items():
        if i > 7:
            link.set_value(None)
    heard = []
    outcome = Highs({"mip_heuristic_effort": 0.0}).solve(
        model, Limits(time_s=20.0, gap=0.99), warm=True, progress=heard.append
    )
    first = next(point.incumbent for point in heard if point.incumbent is not None)
    assert outcome.objective <= first
    assert outcome.objective <= complete * 2


def test_start_is_the_first_incumbent():
    model = knapsack()
    for variable in model.x.values():
        variable.set_value(0)
    model.x[3].set_value(1)
    value = pyo.value(model.o)
    cold = Highs().solve(knapsack(), Limits()).trace[0].incumbent
    outcome = Highs().solve(model, Limits(), warm=True)
    assert outcome.trace[0].incumbent == pytest.approx(value) != cold
    assert outcome.objective >= value


def test_the_objective_of_a_start_is_no_bound():
    """HiGHS says so of some starts before it has solved anything."""
    result = ddlopt.solve("deployment/tiny-g3-m2-s2", "makespan-bound", time_limit=20.0)
    assert max(point.bound for point in result.trace if point.bound is not None) == pytest.approx(result.bound)


def test_wrong_continuous_values_in_a_start_do_no_harm():
    model = network()
    lay_circulant(model)
    model.z.set_value(0.0)
    model.f[0, 1, 2].set_value(99.0)
    outcome = Highs({"mip_max_nodes": 0}).solve(model, Limits(time_s=20.0), warm=True)
    assert outcome.trace[0].incumbent is not None
    assert outcome.objective > 0


def test_values_are_no_start_unless_asked():
    model = knapsack()
    model.x[3].set_value(1)
    assert Highs().solve(model, Limits()).trace[0].incumbent == Highs().solve(knapsack(), Limits()).trace[0].incumbent


def test_exception_in_the_progress_callback_ends_the_solve():
    def fail(point):
        raise LookupError("seen enough")

    with pytest.raises(LookupError, match="seen enough"):
        Highs().solve(network(), Limits(time_s=60.0), progress=fail)


def test_interrupt_keeps_the_incumbent():
    model, pressed = network(), []
    lay_circulant(model)

    def press(point):
        if not pressed:
            pressed.append(point)
            os.kill(os.getpid(), signal.SIGINT)

    outcome = Highs().solve(model, Limits(time_s=120.0), warm=True, progress=press)
    assert (outcome.status, outcome.message, outcome.interrupted) == (Status.FEASIBLE, "interrupted", True)
    assert outcome.bound < outcome.objective == pytest.approx(model.z.value)


def test_unbounded_and_infeasible_are_told_apart():
    """HiGHS' presolve says only that it is one of the two."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], domain=pyo.NonNegativeIntegers)
    model.c = pyo.Constraint(expr=model.x[1] - model.x[2] <= 3)
    model.o = pyo.Objective(expr=model.x[1] + model.x[2], sense=pyo.maximize)
    assert Highs().solve(model, Limits()).status is Status.UNBOUNDED
    model.d = pyo.Constraint(expr=2 * model.x[1] - 2 * model.x[2] == 1)
    assert Highs().solve(model, Limits()).status is Status.INFEASIBLE


def test_duals_of_a_linear_program():
    model = pyo.ConcreteModel()
    model.a = pyo.Var(bounds=(0, 3))
    model.b = pyo.Var(bounds=(0, None))
    model.enough = pyo.Constraint(expr=model.a + model.b >= 4)
    model.slack = pyo.Constraint(expr=model.a - model.b <= 10)
    model.o = pyo.Objective(expr=2 * model.a + 3 * model.b)
    outcome = Highs().solve(model, Limits(), want_duals=True)
    assert outcome.duals == {model.enough: pytest.approx(3), model.slack: pytest.approx(0)}
    assert Highs().solve(model, Limits()).duals == {}


def test_coefficient_that_highs_would_drop():
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], bounds=(0, 1))
    model.c = pyo.Constraint([7], rule=lambda m, i: m.x[1] + 1e-10 * m.x[2] >= 0.5)
    model.o = pyo.Objective(expr=model.x[1])
    with pytest.raises(RangeError, match=r"constraint 'c\[7\]' has coefficient 1e-10 at 'x\[2\]'.*too far apart"):
        Highs().solve(model, Limits())


@pytest.mark.parametrize("tolerance", [1e-6, 1e-7])
def test_bound_of_a_small_objective_allows_for_the_tolerance(tolerance):
    """HiGHS prunes what is better by less than its tolerance, so nothing smaller is proven."""
    model = knapsack(items=8)
    model.o.expr = 1e-3 * model.o.expr
    outcome = Highs({"mip_feasibility_tolerance": tolerance}).solve(model, Limits(gap=0.0))
    assert outcome.status is Status.OPTIMAL
    assert outcome.bound == pytest.approx(outcome.objective + tolerance, abs=1e-9)


def test_absolute_gap_does_not_end_a_search_unless_asked():
    def gap(options):
        model = knapsack(items=30)
        model.o.expr = model.o.expr / 1000 + 100
        outcome = Highs({**options, "mip_heuristic_effort": 0.0}).solve(model, Limits(gap=0.0))
        return outcome.bound - outcome.objective

    assert gap({}) == pytest.approx(0, abs=1e-6)
    assert gap({"mip_abs_gap": 0.5}) > 1e-3


def test_empty_model():
    assert Highs().solve(pyo.ConcreteModel(), Limits()).objective == 0


@pytest.mark.parametrize(("name", "optimum"), [("infeasible", 261.97), ("not_optimal", 0.55402), ("solve_error", 0.0)])
@pytest.mark.parametrize("seed", [0, 5])
def test_models_on_which_presolve_was_wrong_are_solved(name, optimum, seed):
    """The solution is checked in rational arithmetic; with 1.15.1 both seeds were wrong."""
    script = runpy.run_path(str(FAULTS / "faults.py"))
    highs = script["solved"](FAULTS / f"{name}.mps", "on", seed)
    assert highs.modelStatusToString(highs.getModelStatus()) == "Optimal"
    assert highs.getInfo().objective_function_value == pytest.approx(optimum, rel=1e-4, abs=1e-9)
    assert script["violation"](highs) < 1e-9


def test_nothing_is_printed_by_the_first_solver_of_a_process():
    code = "from ddlopt.solvers.backends.silent_highs import SilentHighs; SilentHighs().run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_a_start_that_comes_back_as_optimal_is_not_believed():
    """Presolve sets the item that weighs nothing; HiGHS 1.16.0 then hands over the start, in which it is left out."""
    model = knapsack(items=20, seed=2)
    model.free = pyo.Var(domain=pyo.Binary)
    model.o.set_value(model.o.expr + 7 * model.free)
    best = Highs().solve(model, Limits(gap=0.0))
    assert model.free.value == 1
    model.free.set_value(0)
    again = Highs().solve(model, Limits(gap=0.0), warm=True)
    assert again.status is Status.OPTIMAL
    assert again.objective == pytest.approx(best.objective)
    assert model.free.value == 1
    incumbents = [point.incumbent for point in again.trace if point.incumbent is not None]
    assert max(incumbents) == pytest.approx(best.objective)


def test_runs_after_another_number_of_threads_in_the_same_thread():
    """As of somebody who has used HiGHS in the session before."""
    try:
        for threads in (1, 2, 1):
            highs = SilentHighs()
            highs.readModel(str(FAULTS / "not_optimal.mps"))
            highs.setOptionValue("threads", threads)
            assert highs.run() == highspy.HighsStatus.kOk
            assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    finally:
        highspy.Highs.resetGlobalScheduler(False)
