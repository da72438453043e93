"""What a heuristic knows of its time and tells meanwhile, and which limits and figures there are at all."""

import dataclasses
import math
import signal
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import pytest

import ddlopt
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import ContradictionError, InfeasibleError, OptionError
from ddlopt.solvers import contracts, heuristic, incumbents
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import MOST_THREADS, Limits, Result, Status, better, relative_gap
from ddlopt.solvers.heuristic import Asked, CertifiedMethod, Clock, Heuristic
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

TINY = ddlopt.load("topology/tiny-n4-d2")


@pytest.fixture
def now(monkeypatch):
    """Seconds that a test sets."""
    seconds = [100.0]
    monkeypatch.setattr(heuristic, "time", SimpleNamespace(perf_counter=lambda: seconds[0]))
    return seconds


def test_the_time_that_is_left(now):
    clock = Clock(Limits(10.0), None)
    now[0] = 104.0
    assert (clock.elapsed_s, clock.left_s, clock.expired) == (4.0, 6.0, False)
    assert (clock.part(), clock.part(0.5), clock.part(0.5, 2.0), clock.part(2.0, 20.0)) == (6.0, 3.0, 2.0, 12.0)
    for now[0] in (110.0, 111.0):
        assert (clock.left_s, clock.expired, clock.part(), clock.part(0.5, 2.0)) == (0.0, True, 1e-3, 1e-3)
    clock = Clock(Limits(), None)
    assert (clock.left_s, clock.expired, clock.part(0.5), clock.part(0.5, 7.0)) == (math.inf, False, None, 7.0)
    for interrupted in (Clock(Limits(), None), Clock(Limits(10.0), None)):
        interrupted.interrupted = True
        assert (interrupted.left_s, interrupted.expired, interrupted.part()) == (0.0, True, 1e-3)


def test_a_clock_that_asks_somebody_else():
    late = [False]
    clock = Asked(lambda: late[0])
    assert (clock.left_s, clock.expired) == (math.inf, False)
    late[0] = True
    assert (clock.left_s, clock.expired) == (0.0, True)
    late[0] = False
    clock.interrupted = True
    assert (clock.left_s, clock.expired) == (0.0, True)


def test_what_is_reported_is_told_with_its_solution_only(now):
    points, kept = [], []
    clock = Clock(Limits(), points.append)
    now[0] = 101.5
    with incumbents.kept_by(lambda *told: kept.append(told)):
        clock.report(None, 2.0, "of what")
        clock.report(5.0, 3.0)
        clock.report(4.0, 2.5, "of this")
    assert [(point.time_s, point.incumbent, point.bound) for point in points] == [
        (1.5, None, 2.0), (1.5, 5.0, 3.0), (1.5, 4.0, 2.5),
    ]  # fmt: skip
    assert (points == clock.trace, kept) == (True, [(4.0, "of this")])
    assert (clock.best_bound("minimize"), clock.best_bound("maximize")) == (3.0, 2.0)


def test_ctrl_c_is_heeded_lent_and_given_back():
    before, clock = signal.getsignal(signal.SIGINT), Clock(Limits(), None)
    with clock.heeding_ctrl_c():
        with clock.lending_ctrl_c(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert not clock.interrupted
        signal.raise_signal(signal.SIGINT)
        assert clock.interrupted
    assert signal.getsignal(signal.SIGINT) is before


@dataclass(frozen=True)
class Says(CertifiedMethod):
    """Gives or raises what it was made with; a method of another package, unless it is taken for ours."""

    name: ClassVar[str] = "says"
    family: ClassVar[str] = "topology"
    said: object = None
    proves_infeasible: bool = False
    pressed: bool = False

    def find(self, instance, limits, seed, clock, start):
        clock.interrupted = self.pressed
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


@pytest.mark.parametrize(
    ("ours", "proves", "expected"),
    [
        (True, True, (Status.INFEASIBLE, Evidence.SOLVER, "never")),
        (True, False, (Status.NO_SOLUTION, Evidence.COMBINATORIAL, "never")),
        (False, True,
         (Status.NO_SOLUTION, Evidence.COMBINATORIAL,
          "says that there is no solution, without evidence; never")),
    ],
)  # fmt: skip
def test_that_there_is_no_solution_is_believed_of_our_own_proofs(monkeypatch, ours, proves, expected):
    monkeypatch.setattr(heuristic, "is_ours", lambda _: ours)
    method = Says(InfeasibleError("never"), proves)
    result = method.solve(TINY, Limits())
    assert (result.status, result.evidence, result.message) == expected
    start = TopologyFinder().solve(TINY, Limits()).solution
    if proves and ours:
        with pytest.raises(ContradictionError, match="has no solution, but the start passes the check: never"):
            method.solve(TINY, Limits(), start=start)
    else:
        assert method.solve(TINY, Limits(), start=start).status is Status.NO_SOLUTION


@pytest.mark.parametrize("ours", [True, False])
def test_bounds_are_believed_of_our_own_methods(monkeypatch, ours):
    monkeypatch.setattr(heuristic, "is_ours", lambda _: ours)
    found = TopologyFinder().solve(TINY, Limits())
    result = Says(MethodOutput(found.solution, bound=11.75, message="done")).solve(TINY, Limits())
    assert (result.bound, result.message) == (11.75 if ours else found.bound, "done")
    assert ("claimed_bound" in result.details) == (not ours)


def test_ctrl_c_is_told_of_a_solution(monkeypatch):
    found = TopologyFinder().solve(TINY, Limits()).solution
    told = Says(MethodOutput(found, message="done"), pressed=True).solve(TINY, Limits())
    assert (told.interrupted, told.message) == (True, "interrupted")
    nothing = Says(MethodOutput(None, message="none was found"), pressed=True).solve(TINY, Limits())
    assert (nothing.interrupted, nothing.message) == (True, "none was found")


class Bounding(Heuristic):
    """Has a certificate."""

    name = "bounding"
    family = "topology"

    def answer(self, instance, seed, clock, start):
        return TopologyFinder().answer(instance, seed, clock, start)

    def certificate(self, instance, solution, clock):
        return 11.75


def test_a_certificate_of_a_heuristic_is_its_bound():
    assert Bounding().find(TINY, Limits(), 0, Clock(Limits(), None), None).bound == 11.75


@pytest.mark.parametrize(
    "odd",
    [
        *({"time_s": value} for value in (0.0, -1.0, math.nan, True, "1", 1j)),
        *({"gap": value} for value in (1.0, -1e-9, math.nan, False, "0", None)),
        *({"threads": value} for value in (0, MOST_THREADS + 1, 1.0, True, "1", None)),
    ],
)
def test_limits_that_are_none(odd):
    with pytest.raises(OptionError, match="must be"):
        Limits(**odd)


def test_limits_at_their_edges():
    for limits in ({"time_s": 5e-324}, {"time_s": math.inf}, {"gap": 0}, {"gap": 1 - 2**-53}, {"threads": 1}):
        Limits(**limits)
    assert Limits(threads=MOST_THREADS).threads == MOST_THREADS
    assert Limits() == Limits(None, 1e-4, 1)


def result(**figures):
    return Result("one", "0" * 64, "topology", "m", **{"status": Status.FEASIBLE, **figures})


def test_figures_of_a_result_are_finite():
    for name in ("objective", "bound", "scope_bound", "runtime_s", "compile_s"):
        for value in (math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match=f"^{name} of a result must be finite"):
                result(**{name: value})
    with pytest.raises(ValueError, match="cannot take"):
        result(runtime_s=-1e-9)
    with pytest.raises(ValueError, match="a claim is no evidence"):
        result(evidence=Evidence.CLAIMED)
    with pytest.raises(TypeError, match="the status of a result is one of"):
        result(status="optimal")


def test_data_of_a_result_have_its_evidence_and_its_solution_where_they_are_asked_for():
    solution = SimpleNamespace(model_dump=lambda mode: {"as": mode})
    found = result(evidence=Evidence.SOLVER, solution=solution)
    assert (found.to_data()["evidence"], "solution" in found.to_data()) == ("solver", False)
    assert found.to_data(with_solution=True)["solution"] == {"as": "json"}
    nothing = dataclasses.replace(found, evidence=None, solution=None).to_data(with_solution=True)
    assert (nothing["evidence"], nothing["solution"]) == (None, None)


@pytest.mark.parametrize(
    ("objective", "bound"), [(math.inf, 1.0), (math.nan, 1.0), (1.0, math.nan), (-math.inf, 1.0), (1.0, math.inf)]
)
def test_what_has_no_gap(objective, bound):
    with pytest.raises(ValueError, match="there is no gap between"):
        relative_gap(objective, bound)
    with pytest.raises(ValueError, match="there is no gap between"):
        relative_gap(objective, -bound if abs(bound) == math.inf else bound, "maximize")


def test_what_is_no_number_is_not_compared():
    for pair in ((math.nan, 1.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match="cannot be compared"):
            better(*pair, "minimize")


def test_what_a_method_says_of_an_instance_comes_before_what_it_says_of_all():
    every = {"kernels": ("a",), "uses": frozenset({"seed"})}
    this = {
        "kernels_for": lambda _: ("b",), "uses_for": lambda _: None, "formulation_for": lambda _: "f",
        "solver_for": lambda _: "s",
    }  # fmt: skip
    plain, asked, silent = SimpleNamespace(**every), SimpleNamespace(**every, **this), SimpleNamespace()
    assert [contracts.kernels_of(each, TINY)[-1:] for each in (plain, asked)] == [("a",), ("b",)]
    assert [contracts.uses_of(each, TINY) for each in (plain, asked, silent)] == [frozenset({"seed"}), None, None]
    assert [contracts.formulation_of(each, TINY) for each in (plain, asked)] == [None, "f"]
    assert [contracts.solver_of(each, TINY) for each in (plain, asked)] == [None, "s"]
