"""A heuristic and then a model: the better solution, the better bound, and no proof that belongs to another scope."""

import random
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from stand_ins import Scripted
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.models.errors import InfeasibleError, NotApplicableError, SolverError, SolverMissingError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Method, Status, TracePoint
from ddlopt.solvers.wrappers import warm_started
from ddlopt.solvers.wrappers.warm_started import WarmStarted

INSTANCE = ddlopt.load("topology/tiny-n4-d2")


def opened(first, second, limits=None, progress=None):
    opening, model = Scripted("quick", first), Scripted("slow", second)
    both = WarmStarted("both", "topology", opening, lambda instance: model)
    return both.solve(INSTANCE, limits or Limits(), 3, progress), opening, model


def test_the_model_starts_from_the_heuristic_and_its_better_solution_wins():
    result, opening, model = opened({"objective": 5.0, "bound": 3.0}, {"objective": 4.0, "bound": 3.5})
    assert (result.method, result.objective, result.bound, result.solution) == ("both", 4.0, 3.5, "solution of slow")
    assert result.status is Status.FEASIBLE
    assert opening.asked[0][1:] == (3, None)
    assert model.asked[0][1:] == (3, "solution of quick")


def test_the_heuristic_is_kept_where_the_model_finds_nothing_better():
    result, *_ = opened({"objective": 4.0, "bound": 3.0}, {"objective": 4.5, "bound": 4.0, "scope": "half"})
    assert (result.objective, result.solution, result.bound) == (4.0, "solution of quick", 4.0)
    assert result.status is Status.OPTIMAL
    assert result.scope is None


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ((5.0, 3.0), (4.0, 3.5), ("slow", "slow")),
        ((4.0, 3.0), (4.5, 3.5), ("quick", "slow")),
        ((4.0, 3.5), (3.8, 3.0), ("slow", "quick")),
        ((4.0, 3.0), (4.0, 3.0), ("quick", "quick")),
        ((None, 3.0), (4.0, None), ("slow", "quick")),
        ((None, None), (None, None), (None, None)),
    ],
)
def test_what_found_and_what_proved_is_told_apart(first, second, names):
    def said(name, objective, bound):
        found = {} if objective is None else {"objective": objective, "found_by": name}
        return found | ({"bound": None} if bound is None else {"bound": bound, "proved_by": name})

    result, *_ = opened(said("quick", *first), said("slow", *second))
    assert (result.found_by, result.proved_by) == names


def test_what_is_proved_within_a_scope_does_not_cover_a_solution_from_outside():
    scoped = {"objective": 4.5, "bound": 3.0, "scope": "half", "scope_bound": 4.5}
    result, *_ = opened({"objective": 4.0, "bound": 3.0}, scoped)
    assert (result.objective, result.bound, result.scope, result.scope_bound) == (4.0, 3.0, None, None)
    assert result.status is Status.FEASIBLE


@for_each("seed", seeds(50, 500))
def test_it_never_returns_less_than_one_of_its_parts(seed):
    draw = random.Random(seed)
    parts = []
    for _ in range(2):
        found = {"bound": draw.choice([None, 1.0, 2.0, 3.0])}
        if draw.random() < 0.7:
            found["objective"] = draw.choice([3.0, 4.0, 5.0])
        if draw.random() < 0.3:
            found |= {"scope": "half", "scope_bound": draw.choice([2.0, 3.0])}
        parts.append(found)
    result, _, model = opened(*parts)
    asked = parts[: 1 + bool(model.asked)]
    objectives = [each["objective"] for each in asked if "objective" in each]
    bounds = [each["bound"] for each in asked if each["bound"] is not None]
    assert result.objective == min(objectives, default=None)
    assert (result.bound or 0.0) >= max(bounds, default=0.0)


def test_nothing_is_left_for_the_model_where_the_bound_is_met():
    result, _, model = opened({"objective": 4.0, "bound": 4.0, "status": Status.OPTIMAL}, {})
    assert result.status is Status.OPTIMAL
    assert not model.asked


def test_no_model_is_built_after_ctrl_c():
    result, _, model = opened({"objective": 4.0, "interrupted": True}, {"objective": 3.0})
    assert (result.objective, result.interrupted, model.asked) == (4.0, True, [])


def test_ctrl_c_in_the_heuristic_keeps_what_it_has():
    told = []

    def interrupt(point):
        told.append(point.incumbent)
        if len(told) == 1:
            signal.raise_signal(signal.SIGINT)

    result = method("exact", "topology").solve(ddlopt.load("danoint"), Limits(), progress=interrupt)
    assert result.checked
    assert result.message == "by link-exchange: interrupted"
    assert result.objective <= told[0] * (1 + 1e-9)


def test_the_time_is_shared():
    _, opening, model = opened({"objective": 4.0}, {"objective": 4.0}, Limits(time_s=10.0))
    assert opening.asked[0][0].time_s == pytest.approx(3.0)
    assert 9.0 < model.asked[0][0].time_s <= 10.0


def test_what_the_heuristic_took_counts_and_its_compiling_does_not(monkeypatch):
    ticks = iter([100.0, 110.0])
    monkeypatch.setattr(warm_started, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    seen, points = [], (TracePoint(0.5, 4.0, 1.0),)
    result, _, model = opened(
        {"objective": 5.0, "compile_s": 2.0, "trace": (TracePoint(0.25, 5.0, None),)},
        {"objective": 4.0, "compile_s": 3.0, "runtime_s": 6.0, "trace": points}, Limits(time_s=30.0), seen.append,
    )  # fmt: skip
    assert (model.asked[0][0].time_s, result.runtime_s, result.compile_s) == (22.0, 14.0, 5.0)
    assert [point.time_s for point in result.trace] == [point.time_s for point in seen] == [0.25, 8.5]


def test_what_a_refusal_took_counts(monkeypatch):
    for took, left in ((4.0, 6.0), (10.0, 1e-3), (12.0, 1e-3)):
        ticks = iter([100.0, 100.0 + took])
        monkeypatch.setattr(warm_started, "time", SimpleNamespace(perf_counter=lambda ticks=ticks: next(ticks)))
        model = Scripted("slow", {"objective": 4.0})
        late = Scripted("quick", {}, raises=NotApplicableError("too dense"))
        WarmStarted("both", "topology", late, lambda instance: model).solve(INSTANCE, Limits(time_s=10.0))  # noqa: B023
        assert model.asked[0][0].time_s == left


@pytest.mark.parametrize(("objectives", "by"), [((5.0, 4.0), "slow"), ((4.0, 5.0), "quick"), ((4.0, 4.0), "quick"),
                                                ((4.0, None), "quick"), ((None, 5.0), "slow")])  # fmt: skip
def test_figures_are_those_of_the_solution_that_is_given(objectives, by):
    first, second = (
        {"details": {"by": name}, "message": said} | ({} if each is None else {"objective": each})
        for name, each, said in zip(("quick", "slow"), objectives, ("", "late"), strict=True)
    )
    for each in (first, second):
        each.setdefault("status", Status.FEASIBLE if "objective" in each else Status.NO_SOLUTION)
    result, *_ = opened(first, second)
    assert (result.details["by"], result.message) == (by, "quick, then slow: late")
    assert opened(first, second | {"message": ""})[0].message == "quick, then slow"


def test_it_uses_what_either_uses():
    def both(opening, model):
        made = (SimpleNamespace(uses=uses, solver_for=lambda _, name=name: name) for uses, name in (opening, model))
        first, second = made
        return WarmStarted("both", "topology", first, lambda _: second)

    seed, threads = frozenset({"seed"}), frozenset({"threads"})
    for first, second, uses in ((seed, threads, seed | threads), (None, seed, None), (seed, None, None)):
        assert both((first, None), (second, None)).uses_for(INSTANCE) == uses
    for first, second, solver in (("a", "b", "b"), ("a", None, "a"), (None, "b", "b"), (None, None, None)):
        assert both((seed, first), (seed, second)).solver_for(INSTANCE) == solver


def test_the_heuristic_has_all_the_time_where_the_model_does_not_cover_the_instance():
    opening = Scripted("quick", {"objective": 4.0})
    both = WarmStarted("both", "topology", opening, lambda instance: Scripted("slow", {}, refusal="too large"))
    assert both.solve(INSTANCE, Limits(time_s=10.0)).message == "by quick"
    assert opening.asked[0][0].time_s == 10.0


def test_progress_never_falls_behind_the_heuristic():
    seen = []
    second = {"objective": 6.0, "bound": 2.0, "trace": (TracePoint(0.1, 7.0, 1.0), TracePoint(0.2, 6.0, 4.5))}
    opened({"objective": 5.0, "bound": 4.0}, second, progress=seen.append)
    assert [(point.incumbent, point.bound) for point in seen] == [(5.0, 4.0), (5.0, 4.5)]


@pytest.mark.parametrize("problem", [NotApplicableError("no"), InfeasibleError("never")])
def test_the_model_is_asked_alone_where_the_heuristic_fails(problem):
    model = Scripted("slow", {"status": Status.INFEASIBLE})
    both = WarmStarted("both", "topology", Scripted("quick", {}, raises=problem), lambda instance: model)
    result = both.solve(INSTANCE, Limits())
    assert (result.method, result.status) == ("both", Status.INFEASIBLE)


def test_a_failing_model_does_not_take_the_checked_solution_with_it():
    def opening(**found):
        return WarmStarted("both", "topology", Scripted("quick", found), lambda instance: failing)

    failing = Scripted("slow", {}, raises=SolverError("a basis of nothing"))
    result = opening(objective=4.0, bound=3.0).solve(INSTANCE, Limits())
    assert (result.objective, result.bound, result.status) == (4.0, 3.0, Status.FEASIBLE)
    assert result.message == "by quick; slow failed: a basis of nothing"
    with pytest.raises(SolverError, match="a basis of nothing"):
        opening(status=Status.NO_SOLUTION).solve(INSTANCE, Limits())
    failing = Scripted("slow", {}, raises=SolverMissingError("install it"))
    with pytest.raises(SolverMissingError):
        opening(objective=4.0).solve(INSTANCE, Limits())


def test_a_heuristic_that_finds_nothing_leaves_it_to_the_model():
    result, _, model = opened({"status": Status.NO_SOLUTION, "bound": 3.0}, {"objective": 4.0, "bound": 2.0})
    assert (result.objective, result.bound, result.solution) == (4.0, 3.0, "solution of slow")
    assert model.asked[0][2] is None


def test_it_refuses_only_what_neither_covers():
    both = WarmStarted("both", "topology", Scripted("a", {}), lambda instance: Scripted("b", {}, refusal="too large"))
    assert both.refuses(INSTANCE) is None
    neither = WarmStarted(
        "both", "topology", Scripted("a", {}, refusal="odd"), lambda instance: Scripted("b", {}, refusal="too large")
    )
    assert neither.refuses(INSTANCE) == "too large"


@pytest.mark.parametrize("name", ["tiny-n4-d2", "tiny-n5-d2-simple", "tiny-n4-d3-direct"])
def test_the_exact_method_proves_the_tiny_instances(name):
    exact = method("exact", "topology")
    assert isinstance(exact, Method)
    result = exact.solve(ddlopt.load(name), Limits())
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.solution.instance == name


@pytest.mark.parametrize("optics", ["one_way", slow("duplex")])
def test_faint_traffic_keeps_its_paths(optics):
    """Two pairs send a 10^-9th of the others: within tolerances nothing, and yet they need paths."""
    traffic = np.zeros((6, 6))
    traffic[0, 1] = traffic[1, 2] = traffic[2, 0] = traffic[3, 4] = traffic[4, 3] = 1e6
    traffic[0, 5] = traffic[5, 3] = 1e-3
    instance = TopologyInstance(
        name="faint", servers=6, degree=2, link_bandwidth_bytes_per_s=1, traffic_bytes=traffic, optics=optics
    )
    for name in ("link-exchange", "rings-and-routes", "exact"):
        result = method(name, "topology").solve(instance, Limits(time_s=60))
        assert result.checked
        assert {(route.source, route.target) for route in result.solution.routes} >= {(0, 5), (5, 3)}
