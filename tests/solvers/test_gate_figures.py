"""What the gate says of figures: to the last digit that counts, in either sense, with a unit and without one."""

import math
from types import SimpleNamespace

import pytest

from ddlopt.models.contracts import Evaluation, Evidence, Instance, Violation
from ddlopt.models.errors import ContradictionError, InfeasibleError, SolverError
from ddlopt.solvers import certify, incumbents
from ddlopt.solvers.certify import Gate, MethodOutput, beside
from ddlopt.solvers.contracts import Limits, Status, TracePoint


class Weighed(Instance):
    """Stands for any: of a sense and a unit that a test sets, and worth what it says."""

    family: str = "weighed"
    name: str = "one"
    said_sense: str = "minimize"
    said_unit: str = "s"

    @property
    def sense(self):
        return self.said_sense

    @property
    def objective_unit(self):
        return self.said_unit


@pytest.fixture
def gate(monkeypatch):
    """A function that makes a gate, and says what its evaluation and its problem's own bound are."""

    def made(objective=2.0, bound=None, sense="minimize", unit="s", violations=(), **options):
        def own(_):
            if isinstance(bound, Exception):
                raise bound
            return bound

        found = Evaluation(objective, tuple(Violation("load", where, 2, 1) for where in violations))
        kind = SimpleNamespace(evaluate=lambda *_, **__: found, bound=own)
        monkeypatch.setattr(certify, "family", lambda _: kind)
        options = {"limits": Limits(), **options}
        return Gate(Weighed(said_sense=sense, said_unit=unit), "m", **options)

    return made


def out(**figures):
    return MethodOutput("a solution", **figures)


@pytest.mark.parametrize(
    ("objective", "unit", "said", "passes"),
    [
        (2.0, "s", 2.0 + 1.9e-6, True), (2.0, "s", 2.0 - 1.9e-6, True), (2.0, "s", 2.0 + 2.1e-6, False),
        (2e6, "s", 2e6 + 1.9, True), (2e6, "s", 2e6 - 2.1, False), (2e-6, "s", 2e-6 + 2.1e-12, False),
        (0.0, "s", 0.0, True), (0.0, "s", 1e-12, False), (0.0, "", 0.9e-9, True), (0.0, "", 1.1e-9, False),
    ],
)  # fmt: skip
def test_a_claim_is_held_to_the_objective(gate, objective, unit, said, passes):
    asked = gate(objective, unit=unit)
    if passes:
        assert asked.certify(out(), said).objective == objective
    else:
        with pytest.raises(SolverError, match="but evaluate finds"):
            asked.certify(out(), said)


@pytest.mark.parametrize(("sense", "sign"), [("minimize", 1), ("maximize", -1)])
@pytest.mark.parametrize(("unit", "most"), [("s", 0.0), ("", 1e-9)])
def test_a_bound_gives_way_to_an_objective_by_rounding_only(sense, sign, unit, most):
    assert beside(sign * 0.9 * most, 0.0, sense, unit, "") == 0.0
    assert beside(sign * 2e6 * (1 + 0.9e-6), sign * 2e6, sense, unit, "") == sign * 2e6
    assert beside(sign * 1.5, sign * 2.0, sense, unit, "") == sign * 1.5
    for bound, objective in ((1.1e-9, 0.0), (2e6 * (1 + 1.1e-6), 2e6)):
        with pytest.raises(ContradictionError):
            beside(sign * bound, sign * objective, sense, unit, "")


@pytest.mark.parametrize(
    ("bound", "gap", "status"),
    [(1.5, 0.25, "optimal"), (1.5, 0.2499, "feasible"), (2.0 - 1.9e-6, 0.0, "optimal"), (2 - 2.1e-6, 0.0, "feasible")],
)
def test_optimal_is_what_is_within_the_gap_asked_for(gate, bound, gap, status):
    assert gate(limits=Limits(gap=gap)).certify(out(bound=bound)).status == status


def test_what_fails_the_check_is_told(gate):
    with pytest.raises(SolverError, match=r"m on 'one' gave a solution .*: load at a[^()]*$"):
        gate(violations=("a",)).certify(out())
    with pytest.raises(SolverError, match=r"load at a.*\(and 2 more\)$"):
        gate(violations=("a", "b", "c")).certify(out())
    with pytest.raises(SolverError, match="fails the check: its objective means nothing"):
        gate(None).certify(out())


def test_what_passes_the_check_is_told_to_whoever_keeps_it(gate):
    kept = []
    with incumbents.kept_by(lambda *told: kept.append(told)):
        gate().certify(out())
    assert kept == [(2.0, "a solution")]


def test_a_claim_is_shown_and_proves_nothing(gate):
    """Not even where nothing else is known, nor within a scope."""
    claims = {"bound": 2.0, "scope": "half", "scope_bound": 2.0, "evidence": Evidence.CLAIMED}
    for result in (gate().certify(out(**claims)), gate().without_solution(MethodOutput(None, **claims))):
        assert (result.bound, result.evidence, result.scope_bound, result.proved_by) == (None, None, None, None)
        assert result.details["claimed_bound"] == 2.0
        assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION)
    believed = claims | {"evidence": Evidence.SOLVER}
    for result in (gate().certify(out(**believed)), gate().without_solution(MethodOutput(None, **believed))):
        assert (result.bound, result.evidence, result.scope_bound, result.details) == (2.0, Evidence.SOLVER, 2.0, {})
    refuted = gate().certify(out(bound=3.0, evidence=Evidence.CLAIMED))
    assert refuted.message == "the claimed bound 3 exceeds the checked objective 2, and is false"
    assert gate().certify(out(bound=1.0, evidence=Evidence.CLAIMED)).message == ""


@pytest.mark.parametrize(("sense", "nothing"), [("minimize", -math.inf), ("maximize", math.inf)])
def test_an_infinite_bound_says_nothing_or_is_false(gate, sense, nothing):
    for bounds in ({"bound": nothing}, {"scope_bound": nothing}):
        result = gate(sense=sense, bound=nothing).certify(out(**bounds))
        assert (result.bound, result.evidence, result.scope_bound) == (None, None, None)
    for bounds in ({"bound": -nothing}, {"bound": math.nan}, {"scope_bound": -nothing}):
        with pytest.raises(SolverError, match=r"bound is .*, which is not finite"):
            gate(sense=sense).certify(out(**bounds))


def test_without_any_bound_a_trace_has_none(gate):
    trace = (TracePoint(0.1, 3.0, 1.0), TracePoint(0.2, 2.0, None))
    assert [point.bound for point in gate(trace=trace).certify(out()).trace] == [None, None]
    figure = gate(trace=trace).reference(2.0, {}, "", bound=0.75)
    assert ([point.bound for point in figure.trace], figure.evidence) == ([None, None], Evidence.SOLVER)
    assert gate().reference(2.0, {}, "").evidence is None


@pytest.mark.parametrize(
    ("own", "said", "message", "told"),
    [
        (None, None, "late", (Status.NO_SOLUTION, None, "late")),
        (None, Evidence.SOLVER, "never", (Status.INFEASIBLE, Evidence.SOLVER, "never")),
        (None, Evidence.CLAIMED, "never",
         (Status.NO_SOLUTION, None, "says that there is no solution, without evidence; never")),
        (None, Evidence.CLAIMED, "",
         (Status.NO_SOLUTION, None, "says that there is no solution, without evidence")),
        ("no way", None, "late", (Status.INFEASIBLE, Evidence.COMBINATORIAL, "no way")),
        ("no way", Evidence.SOLVER, "never", (Status.INFEASIBLE, Evidence.COMBINATORIAL, "never")),
        ("no way", Evidence.SOLVER, "", (Status.INFEASIBLE, Evidence.COMBINATORIAL, "no way")),
        ("no way", Evidence.CLAIMED, "never", (Status.INFEASIBLE, Evidence.COMBINATORIAL, "no way")),
    ],
)  # fmt: skip
def test_that_there_is_no_solution_needs_evidence(gate, own, said, message, told):
    asked = gate(bound=own and InfeasibleError(own))
    result = asked.without_solution(MethodOutput(None, message=message, bound=1.0), said)
    assert (result.status, result.message) == (told[0], told[2])
    if result.status is Status.INFEASIBLE:
        assert (result.evidence, result.bound) == (told[1], None)
    if own:
        with pytest.raises(ContradictionError, match="has a solution that passes the check, but: no way"):
            asked.certify(out())


@pytest.mark.parametrize(
    ("limit_s", "runtime_s", "left_s"), [(100.0, 20.0, 80.0), (100.0, 99.9, 1.5), (100.0, 400.0, 1.5), (1.0, 1.0, 0.51)]
)
def test_the_problems_own_bound_has_the_time_that_is_left_or_little_more(gate, monkeypatch, limit_s, runtime_s, left_s):
    given = []
    monkeypatch.setattr(certify, "built", lambda seconds, *_: given.append(seconds))
    result = gate(bound=1.0, limits=Limits(limit_s), runtime_s=runtime_s).certify(out())
    assert given == [pytest.approx(left_s)]
    assert (result.bound, result.evidence) == (None, None)


@pytest.mark.parametrize(("sense", "known", "said", "best"), [("minimize", 1.0, 1.5, 1.5), ("maximize", 9.0, 8.0, 8.0)])
def test_the_tighter_bound_counts_with_its_own_evidence(gate, sense, known, said, best):
    result = gate(sense=sense, bound=known).certify(out(bound=said))
    assert (result.bound, result.evidence, result.proved_by) == (best, Evidence.SOLVER, "m")
    result = gate(sense=sense, bound=said).certify(out(bound=known))
    assert (result.bound, result.evidence, result.proved_by) == (best, Evidence.COMBINATORIAL, "combinatorial")
    assert gate(sense=sense).certify(out(bound=said)).proved_by == "m"


def test_versions_are_told_of_figures_and_failures(gate):
    solver = {"solver": "one of old"}
    for result in (gate().reference(1.0, {}, "", versions=solver), gate().failed("", solver)):
        assert result.provenance["solver"] == "one of old"
