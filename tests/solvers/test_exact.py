import contextlib
import dataclasses
from types import SimpleNamespace

import pytest
from stand_ins import Canned

from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import InfeasibleError, NotApplicableError, SolutionError, SolverError, SolverMissingError
from ddlopt.solvers import exact as exact_module
from ddlopt.solvers.backends import Highs, Outcome, backend
from ddlopt.solvers.contracts import Limits, Method, Status, TracePoint
from ddlopt.solvers.exact import Exact, lp_relaxation


def exact(formulation, solver=None):
    return Exact("cover-exact", "cover", formulation, solver or Highs())


def test_is_a_method(cover):
    assert isinstance(exact(cover.minimise()), Method)


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
@pytest.mark.parametrize("solver", ["highs", "scip", "cbc", "glpk"])
def test_optimum_is_that_of_brute_force(cover, sense, solver):
    try:
        chosen = backend(solver)
    except SolverMissingError as missing:
        pytest.skip(str(missing))
    result = exact(getattr(cover, sense)(), chosen).solve(cover.instance, Limits())
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.objective == cover.brute_force(cover.instance)
    assert result.bound == pytest.approx(result.objective, rel=1e-4)
    assert result.bound <= result.objective
    assert result.scope is None
    assert result.scope_bound is None
    assert result.provenance["solver"].lower().startswith(solver)


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
def test_trace_speaks_of_the_instance(cover, sense):
    heard = []
    result = exact(getattr(cover, sense)()).solve(cover.instance, Limits(), progress=heard.append)
    assert tuple(heard) == result.trace
    incumbents = [point.incumbent for point in result.trace if point.incumbent is not None]
    bounds = [point.bound for point in result.trace if point.bound is not None]
    assert incumbents == sorted(incumbents, reverse=True)
    assert bounds == sorted(bounds)
    assert incumbents[-1] == pytest.approx(result.objective)
    assert all(
        0 <= a.time_s <= b.time_s <= result.runtime_s for a, b in zip(result.trace, result.trace[1:], strict=False)
    )


def test_bound_within_a_scope_is_no_bound_of_the_instance(cover):
    result = exact(cover.minimise(only_pairs=True)).solve(cover.instance, Limits())
    assert result.objective == cover.brute_force(cover.instance, size=2) > cover.brute_force(cover.instance)
    assert result.scope == "pairs"
    assert result.scope_bound == pytest.approx(result.objective)
    assert result.bound == 1.0  # the combinatorial one
    assert result.status is Status.FEASIBLE


def test_infeasible(cover):
    heavy = cover.instance.model_copy(update={"need": 100})
    result = exact(cover.minimise()).solve(heavy, Limits())
    assert (result.status, result.objective, result.solution) == (Status.INFEASIBLE, None, None)


def test_infeasible_within_a_scope_proves_nothing(cover):
    heavy = cover.instance.model_copy(update={"need": 30})
    assert exact(cover.minimise()).solve(heavy, Limits()).status is Status.OPTIMAL
    result = exact(cover.minimise(only_pairs=True)).solve(heavy, Limits())
    assert result.status is Status.NO_SOLUTION
    assert result.message == "there is no solution among those searched (pairs)"


def test_what_the_formulation_refuses(cover):
    empty = cover.Instance(name="empty", weights=(), costs=(), need=1)
    with pytest.raises(NotApplicableError, match="cover-exact does not cover 'empty': nothing to choose from"):
        exact(cover.minimise()).solve(empty, Limits())


def test_claim_that_is_not_what_evaluate_finds(cover):
    with pytest.raises(SolverError, match=r"claims 28, but evaluate finds 18"):
        exact(cover.minimise(lie=10.0)).solve(cover.instance, Limits())


@pytest.mark.parametrize(("bound", "fits"), [(20.0, True), (26.5, False)])
def test_what_a_solver_left_open_may_be_found(cover, bound, fits):
    """It claims that 27 is optimal, and its values are worth 26: no contradiction to a bound of 20."""
    coarse = exact(cover.minimise(), Canned(Outcome(Status.OPTIMAL, 27.0, bound), values=(0, 1, 1, 0, 1)))
    if fits:
        result = coarse.solve(cover.instance, Limits(gap=0.0))
        assert (result.objective, result.bound, result.status) == (26.0, 20.0, Status.FEASIBLE)
    else:
        with pytest.raises(SolverError):
            coarse.solve(cover.instance, Limits(gap=0.0))


@pytest.mark.parametrize(
    ("status", "claimed", "bound", "gap", "fits"),
    [
        ("optimal", 27.0, None, 0.04, True),  # 26 is within the gap of what it says
        ("optimal", 27.0, None, 0.03, False),
        ("feasible", 27.0, None, 0.0, True),
        ("feasible", 25.0, 20.0, 0.5, False),  # less than it says is never right
        ("optimal", 25.0, None, 0.5, False),
    ],
)
def test_values_may_be_worth_more_than_a_solver_says_and_never_less(cover, status, claimed, bound, gap, fits):
    coarse = exact(cover.minimise(), Canned(Outcome(Status(status), claimed, bound), values=(0, 1, 1, 0, 1)))
    if fits:
        assert coarse.solve(cover.instance, Limits(gap=gap)).objective == 26.0
    else:
        with pytest.raises(SolverError, match="but evaluate finds 26"):
            coarse.solve(cover.instance, Limits(gap=gap))


def estimated(formulation, **marks):
    """The formulation, marked as one whose objective is an estimate, or whose solutions may be none."""
    for name, value in marks.items():
        object.__setattr__(formulation, name, value)
    return formulation


def test_an_estimate_is_no_claim_and_leaves_room_in_the_gap(cover):
    """The model says 20, and its values are worth 26; beside a start of 22 they are held by what they are worth."""
    solver = Canned(Outcome(Status.OPTIMAL, 20.0, 19.0), values=(0, 1, 1, 0, 1))
    outer = exact(estimated(cover.minimise(), outer=True), solver)
    result = outer.solve(cover.instance, Limits(gap=0.01))
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 26.0, 19.0)
    assert solver.limits.gap == pytest.approx(0.008)
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    assert outer.solve(cover.instance, Limits(), start=start).objective == 22.0
    start = cover.Solution(instance="small", chosen=(0, 1, 2, 3, 4))
    assert outer.solve(cover.instance, Limits(), start=start).objective == 26.0


def test_a_relaxed_model_may_have_a_solution_that_is_none(cover):
    broken = Canned(Outcome(Status.OPTIMAL, 4.0, 4.0), values=(1, 0, 0, 0, 0))
    result = exact(estimated(cover.minimise(), relaxed=True), broken).solve(cover.instance, Limits())
    assert (result.status, result.solution, result.bound) == (Status.NO_SOLUTION, None, 4.0)
    broken_rule = "the solution of the model breaks a rule that the model knows too little of"
    assert result.message == f"{broken_rule}; start_from (--start-from) names a method for one that is kept"
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    kept = exact(estimated(cover.minimise(), relaxed=True), broken).solve(cover.instance, Limits(), start=start)
    assert (kept.solution, kept.message) == (start, f"kept the start; {broken_rule}")
    good = Canned(Outcome(Status.OPTIMAL, 26.0, 4.0), values=(0, 1, 1, 0, 1))
    assert exact(estimated(cover.minimise(), relaxed=True), good).solve(cover.instance, Limits()).objective == 26.0


@pytest.mark.parametrize(("limit_s", "asked_s"), [(0.75, 0.25), (0.5, None), (0.25, None), (None, None)])
def test_the_solver_has_what_the_building_has_left(cover, monkeypatch, limit_s, asked_s):
    ticks = iter([0.0, 0.5, 1.5])
    monkeypatch.setattr(exact_module, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    solver = Canned(Outcome(Status.NO_SOLUTION, None, 3.0, trace=(TracePoint(0.125, 40.0, 2.0),), solver=""))
    limits = Limits() if limit_s is None else Limits(limit_s)
    monkeypatch.setattr(exact_module, "building", contextlib.nullcontext)
    result = exact(cover.minimise(), solver).solve(cover.instance, limits)
    assert (result.runtime_s, result.details["building_s"], result.provenance["solver"]) == (1.5, 0.5, "canned")
    if limit_s is None or asked_s is not None:
        assert solver.limits.time_s == asked_s
        assert result.trace == (TracePoint(0.625, None, 2.0),)
    else:
        assert not hasattr(solver, "limits")


def test_values_that_break_a_constraint(cover):
    liar = Canned(Outcome(Status.OPTIMAL, 4.0, 4.0), values=(1, 0, 0, 0, 0))
    with pytest.raises(SolverError, match="fails the check: need"):
        exact(cover.minimise(), liar).solve(cover.instance, Limits())


def test_bound_of_a_maximisation_is_turned_round(cover):
    early = Outcome(Status.FEASIBLE, 13.0, 25.0, trace=(TracePoint(0.5, 12.0, 25.0),), message="time limit")
    result = exact(cover.maximise(), Canned(early, values=(0, 1, 1, 0, 1))).solve(cover.instance, Limits())
    assert sum(cover.instance.costs) == 39
    assert (result.objective, result.bound) == (26.0, 14.0)
    assert (result.trace[0].incumbent, result.trace[0].bound) == (27.0, 14.0)


def test_start_is_passed_on_and_kept_when_nothing_better_is_found(cover):
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    nothing = Canned(Outcome(Status.NO_SOLUTION, None, 3.0, message="time limit"))
    result = exact(cover.minimise(), nothing).solve(cover.instance, Limits(), start=start)
    assert nothing.warm
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 22.0, 3.0)
    assert result.solution == start
    assert result.message == "kept the start; time limit"


def test_the_solver_begins_with_the_values_of_the_start(cover):
    class Seeing(Canned):
        def solve(self, model, *limits, **options):
            self.seen = [variable.value for variable in model.cover.take.values()]
            return super().solve(model, *limits, **options)

    seeing = Seeing(Outcome(Status.NO_SOLUTION, solver="one of old"))
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    result = exact(cover.minimise(), seeing).solve(cover.instance, Limits(), start=start)
    assert (seeing.seen, seeing.warm, result.provenance["solver"]) == ([0, 1, 1, 1, 0], True, "one of old")
    exact(cover.minimise(), seeing).solve(cover.instance, Limits())
    assert (seeing.seen, seeing.warm) == ([None] * 5, False)


def test_start_that_is_worse_is_not_kept(cover):
    start = cover.Solution(instance="small", chosen=(0, 1, 2, 3, 4))
    result = exact(cover.minimise()).solve(cover.instance, Limits(), start=start)
    assert result.objective == 18
    assert result.trace[0].incumbent == 39


def test_infeasible_start_is_no_answer(cover):
    start = cover.Solution(instance="small", chosen=())
    nothing = Canned(Outcome(Status.NO_SOLUTION, message="time limit"))
    result = exact(cover.minimise(), nothing).solve(cover.instance, Limits(), start=start)
    assert (result.status, result.solution, result.bound) == (Status.NO_SOLUTION, None, 1.0)


def test_a_start_outside_of_the_scope_is_no_answer(cover):
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    nothing = Canned(Outcome(Status.NO_SOLUTION, None, 3.0, message="time limit"))
    result = exact(cover.minimise(only_pairs=True), nothing).solve(cover.instance, Limits(), start=start)
    assert (result.status, result.solution, result.bound, result.scope_bound) == (Status.NO_SOLUTION, None, 1.0, 3.0)


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.UNBOUNDED, Status.ERROR])
def test_whatever_a_solver_says_a_start_that_passes_the_check_is_an_answer(cover, status):
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    wrong = exact(cover.minimise(), Canned(Outcome(status, message="so it is")))
    result = wrong.solve(cover.instance, Limits(), start=start)
    assert (result.status, result.objective, result.message) == (Status.FEASIBLE, 22.0, "kept the start; so it is")


def raises(*_):
    raise InfeasibleError("there is no way")


def test_a_formulation_that_cannot_be_built_says_as_much_as_its_scope(cover, monkeypatch):
    """Where it searches less than everything it says nothing of the rest, nor against a start that passes the check."""
    monkeypatch.setattr(exact_module, "build_model", raises)
    spared = Canned(Outcome(Status.OPTIMAL))
    whole = exact(cover.minimise(), spared).solve(cover.instance, Limits())
    assert (whole.status, whole.evidence, whole.message) == (Status.INFEASIBLE, Evidence.SOLVER, "there is no way")
    part = exact(cover.minimise(only_pairs=True), spared).solve(cover.instance, Limits())
    assert (part.status, part.bound, part.scope) == (Status.NO_SOLUTION, 1.0, "pairs")
    start = cover.Solution(instance="small", chosen=(1, 2, 3))
    kept = exact(cover.minimise(), spared).solve(cover.instance, Limits(), start=start)
    assert (kept.status, kept.objective, kept.message) == (Status.FEASIBLE, 22.0, "kept the start; there is no way")
    assert not hasattr(spared, "limits")


def test_what_has_no_solution_is_not_built(cover, monkeypatch):
    monkeypatch.setattr(exact_module, "family_of", lambda _: SimpleNamespace(bound=raises))
    monkeypatch.setattr(exact_module, "build_model", None)
    assert exact(cover.minimise()).solve(cover.instance, Limits()).status is Status.INFEASIBLE


def test_start_for_another_instance(cover):
    start = cover.Solution(instance="other", instance_digest="0" * 64, chosen=(4,))
    with pytest.raises(SolutionError, match="made for instance 'other'"):
        exact(cover.minimise()).solve(cover.instance, Limits(), start=start)


def test_time_limit_counts_the_building(cover):
    short = Canned(Outcome(Status.NO_SOLUTION))
    exact(cover.minimise(), short).solve(cover.instance, Limits(time_s=50.0, gap=0.01, threads=2))
    assert 0 < short.limits.time_s < 50.0
    assert dataclasses.replace(short.limits, time_s=None) == Limits(gap=0.01, threads=2)
    result = exact(cover.minimise()).solve(cover.instance, Limits(time_s=1e-9))
    assert (result.status, result.message) == (Status.NO_SOLUTION, "time limit passed while the model was built")


@pytest.mark.parametrize("status", [Status.UNBOUNDED, Status.ERROR])
def test_other_ends(cover, status):
    result = exact(cover.minimise(), Canned(Outcome(status, message="so it is"))).solve(cover.instance, Limits())
    assert (result.status, result.message, result.bound) == (status, "so it is", None)


def test_lp_relaxation(cover):
    # Greedy by cost per weight: 9/9, 5/5, then 3 of the 7 at 8/7 each.
    relaxed = lp_relaxation(cover.minimise(), cover.instance)
    assert relaxed.objective == pytest.approx(9 + 5 + 3 * 8 / 7)
    turned = lp_relaxation(cover.maximise(), cover.instance)
    assert turned.model_objective == pytest.approx(39 - relaxed.objective)
    assert turned.objective == pytest.approx(relaxed.objective)


def test_lp_relaxation_without_optimum(cover):
    with pytest.raises(SolverError, match="the LP relaxation for 'small' is infeasible"):
        lp_relaxation(cover.minimise(), cover.instance.model_copy(update={"need": 100}))


@pytest.mark.parametrize("outcome", [Outcome(Status.FEASIBLE, 3.0, 2.0), Outcome(Status.OPTIMAL)])
def test_what_is_no_optimum_is_no_relaxation(cover, outcome):
    with pytest.raises(SolverError, match="the LP relaxation for 'small' is"):
        lp_relaxation(cover.minimise(), cover.instance, Canned(outcome))
