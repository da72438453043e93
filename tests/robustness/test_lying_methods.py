"""Methods that lie: none gets a status, a bound, a gap, a name or a time by its own word, and none ends the others."""

import dataclasses
import json
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.analysis.compare import attempt, refuted
from ddlopt.models.contracts import Bound, Evidence
from ddlopt.models.errors import DdloptError, OptionError, SolverError
from ddlopt.solvers import catalogue
from ddlopt.solvers.certify import is_ours
from ddlopt.solvers.contracts import Limits, Result, Status, TracePoint, best_bound, better, relative_gap
from ddlopt.solvers.external import checked
from ddlopt.solvers.heuristic import Heuristic

INSTANCE = ddlopt.load("topology/tiny-n4-d2")
OTHER = ddlopt.load("topology/all-to-all-n6-d2")
HONEST = catalogue.method("topology-finder", "topology").solve(INSTANCE, Limits())
NAN, INFINITE, HUGE = math.nan, math.inf, 10**400


class Liar:
    """Says whatever it was told to."""

    name = "liar"
    family = "topology"

    def __init__(self, **says):
        usual = {field.name: getattr(HONEST, field.name) for field in dataclasses.fields(HONEST)}
        self.says = SimpleNamespace(**(usual | {"method": "liar"} | says))

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        return self.says


def told(**says):
    return checked(Liar(**says)).solve(INSTANCE, Limits())


def test_honest_answer_keeps_its_solution_and_nothing_else():
    result = told(bound=11.9, scope="rings", scope_bound=11.8)
    assert (result.status, result.objective, result.checked) == (Status.FEASIBLE, HONEST.objective, True)
    assert (result.bound, result.evidence) == (11.5, Evidence.COMBINATORIAL)
    assert (result.scope, result.scope_bound) == (None, None)
    assert (result.details["claimed_bound"], result.details["claimed_scope_bound"]) == (11.9, 11.8)


@for_each("bound", [HONEST.objective, HONEST.objective + 5, 0.0, -1e300])
def test_claimed_bound_makes_neither_gap_nor_status(bound):
    """A bound that would make the answer optimal, or refute it, does neither."""
    result = told(bound=bound, status=Status.OPTIMAL)
    assert (result.status, result.bound) == (Status.FEASIBLE, 11.5)
    assert result.details["claimed_bound"] == bound


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError("no")


def made(value):
    """The value; an object of the hostile class, which must not meet the test runner, where that is meant."""
    return Hostile() if value is Hostile else value


class Slippery(float):
    """A number that compares as it likes."""

    def __lt__(self, other):
        return True

    __gt__ = __le__ = __ge__ = __lt__

    def __float__(self):
        raise ValueError("not today")


@for_each("name", ["objective", "bound", "scope_bound"])
@for_each("value", [NAN, INFINITE, HUGE, True, np.bool_(True), "12", b"12", [12.0], Slippery(12.0), np.nan])
def test_figures_that_are_no_numbers_are_refused(name, value):
    with pytest.raises(SolverError, match=r"not finite|no number"):
        told(**{name: value})


@pytest.mark.parametrize("value", [np.float32(HONEST.objective), np.float64(HONEST.objective), int(HONEST.objective)])
def test_numbers_of_other_kinds_are_numbers(value):
    result = told(objective=value, bound=value)
    assert type(result.objective) is float
    assert type(result.details["claimed_bound"]) is float


@for_each("status", ["great", "OPTIMAL", None, 7, Status])
def test_statuses_that_there_are_not(status):
    with pytest.raises(SolverError, match="has the status"):
        told(status=status)


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.FEASIBLE, Status.REFERENCE])
def test_claims_without_a_solution_are_no_results(status):
    with pytest.raises(SolverError, match="without a solution"):
        told(status=status, solution=None, objective=0.001)


def test_reference_of_another_package_is_not_believed():
    assert told(status=Status.REFERENCE).status is Status.FEASIBLE


@for_each("status", [Status.INFEASIBLE, Status.UNBOUNDED, Status.ERROR, Status.NO_SOLUTION])
def test_nothing_is_infeasible_by_word(status):
    result = told(status=status, solution=None, objective=None, bound=99.0, checked=True)
    assert (result.status, result.checked, result.objective) == (Status.NO_SOLUTION, False, None)
    assert (result.bound, result.details["claimed_bound"]) == (11.5, 99.0)


def test_name_family_digest_and_runtime_are_ours():
    result = told(
        method="rings-and-routes", instance="x", instance_digest="y", family="gossip", runtime_s=-5.0, sense="up"
    )
    assert (result.method, result.instance, result.instance_digest) == ("liar", INSTANCE.name, INSTANCE.digest)
    assert (result.family, result.sense) == ("topology", "minimize")
    assert 0 <= result.runtime_s < 60


def test_name_that_changes_later():
    liar = Liar()
    method = checked(liar)
    liar.name = "branch-and-bound"
    assert method.solve(INSTANCE, Limits()).method == method.name == "liar"


@for_each("name", [None, 3, "", b"liar", Hostile])
def test_method_without_a_name_is_refused(name):
    liar = Liar()
    liar.name = made(name)
    with pytest.raises(OptionError, match="the name of a method is a word"):
        checked(liar)


def test_solution_of_another_instance_is_refused():
    other = catalogue.method("topology-finder", "topology").solve(OTHER, Limits()).solution
    with pytest.raises(DdloptError, match="liar on 'tiny-n4-d2'"):
        told(solution=other)
    data = other.model_dump() | {"instance": INSTANCE.name, "instance_digest": INSTANCE.digest}
    with pytest.raises(DdloptError, match="liar on 'tiny-n4-d2'"):
        told(solution=type(other).from_data(data))


@for_each("solution", ["links", 3, {}, Hostile, object()])
def test_what_is_no_solution_is_refused(solution):
    with pytest.raises(SolverError, match="liar on 'tiny-n4-d2'"):
        told(solution=made(solution))


def test_derived_solution_is_what_its_data_say():
    """A class that answers the check's questions as it likes is read once, as plain data."""

    class Better(type(HONEST.solution)):
        def belongs_to(self, instance):
            pass

        def model_dump(self, **how):
            data = super().model_dump(**how)
            return data | {"links": data["links"][1:]}

    better_one = Better.model_construct(
        **{name: getattr(HONEST.solution, name) for name in type(HONEST.solution).model_fields}
    )
    with pytest.raises(DdloptError, match="liar on 'tiny-n4-d2'"):
        told(solution=better_one)


def test_result_changed_afterwards_stays_as_it_was():
    liar = Liar()
    result = checked(liar).solve(INSTANCE, Limits())
    before = result.solution.to_json()
    object.__setattr__(liar.says.solution, "links", ())
    try:
        assert result.solution.to_json() == before
    finally:
        object.__setattr__(HONEST.solution, "links", type(HONEST.solution).from_json(before).links)


def test_instance_changed_by_a_method_is_its_own():
    class Vandal(Liar):
        def solve(self, instance, *rest, **more):
            object.__setattr__(instance, "compute_s", 0.0)
            instance.traffic_bytes.flags.writeable = True
            instance.traffic_bytes[:] = 0.0
            return self.says

    digest = INSTANCE.digest
    result = checked(Vandal()).solve(INSTANCE, Limits())
    assert (result.objective, INSTANCE.digest) == (HONEST.objective, digest)


@for_each("answer", [None, 3, "optimal", {}, Hostile, object()])
def test_answers_that_are_no_results(answer):
    liar = Liar()
    liar.says = made(answer)
    told = "solve() gave nothing (None); expected a Result" if answer is None else "its answer cannot be read"
    with pytest.raises(SolverError, match=re.escape(f"liar on 'tiny-n4-d2': {told}")):
        checked(liar).solve(INSTANCE, Limits())


@for_each("name", ["objective", "bound", "solution", "details", "trace", "status", "provenance"])
def test_parts_that_raise(name):
    with pytest.raises(SolverError, match="liar on 'tiny-n4-d2'"):
        told(**{name: Hostile()})


def test_trace_better_than_the_answer_is_left_out():
    points = (TracePoint(1e9, 0.001, 50.0), TracePoint(-3.0, HONEST.objective + 1, 49.0))
    result = told(trace=points)
    assert [point.incumbent for point in result.trace] == [HONEST.objective + 1]
    assert all(point.bound is None and 0 <= point.time_s <= result.runtime_s for point in result.trace)
    with pytest.raises(SolverError, match="not finite"):
        told(trace=(TracePoint(0.0, NAN, None),))


def test_details_cannot_pose_as_ours():
    result = told(details={"claimed_bound": 3.0, "nan": NAN, "huge": HUGE, "own": object(), "objective": 1.0})
    assert result.bound == 11.5
    silent = told(message=Slippery(1.0), details=[("figure", 2.0)])
    assert (type(silent.message), silent.details["figure"]) == (str, 2.0)
    json.dumps(result.to_data(with_solution=True), allow_nan=False)


@for_each(
    "problem",
    [
        SystemExit(0),
        SystemExit("bye"),
        KeyboardInterrupt(),
        GeneratorExit(),
        MemoryError(),
        RecursionError("deep"),
        OSError(5),
    ],
)
def test_whatever_is_raised_is_one_line(problem):
    class Raising(Liar):
        def solve(self, *_, **__):
            raise problem

    method = checked(Raising())
    with pytest.raises(SolverError, match=f"liar on 'tiny-n4-d2': {type(problem).__name__}"):
        method.solve(INSTANCE, Limits())
    assert attempt(INSTANCE, method, Limits()).status is Status.ERROR
    first, second = ddlopt.compare([INSTANCE], [Raising(), "topology-finder"])
    assert (first.status, second.objective) == (Status.ERROR, HONEST.objective)


@pytest.mark.parametrize("problem", [SystemExit(0), RuntimeError("no idea"), RecursionError()])
def test_refusals_that_raise_are_refusals(problem):
    class Unsure(Liar):
        def refuses(self, instance):
            raise problem

    assert f"cannot say whether it covers the instance ({type(problem).__name__}" in checked(Unsure()).refuses(INSTANCE)


def test_output_of_a_method_goes_to_standard_error(capsys):
    class Loud(Liar):
        def refuses(self, instance):
            print("refuses?")

        def solve(self, *_, **__):
            print("solves!")
            return self.says

    ddlopt.solve(INSTANCE, Loud())
    out, err = capsys.readouterr()
    assert out == ""
    assert "solves!" in err


def test_lies_do_not_refute_the_honest():
    liars = [Liar(objective=HONEST.objective, bound=100.0), Liar(solution=None, status=Status.INFEASIBLE)]
    results = [checked(each).solve(INSTANCE, Limits()) for each in liars] + [HONEST]
    assert [each.status for each in refuted(results)] == [each.status for each in results]
    with_error = ddlopt.compare([INSTANCE], [Liar(solution=None, status=Status.REFERENCE, objective=0.001), "auto"])
    assert [each.status for each in with_error] == [Status.ERROR, Status.OPTIMAL]


@dataclasses.dataclass(frozen=True)
class Derived(type(catalogue.method("topology-finder", "topology"))):
    """A method of ours that was given a certificate of its own."""

    def certificate(self, instance, solution, clock):
        return HONEST.objective


class Posing(Heuristic):
    """A heuristic of another package that says where it comes from."""

    __module__ = "ddlopt.solvers.topology.topoopt.topology_finder"
    __qualname__ = "TopologyFinder"
    name = "posing"
    family = "topology"

    def answer(self, instance, seed, clock, start):
        return HONEST.solution, {}

    def certificate(self, instance, solution, clock):
        return HONEST.objective


@pytest.mark.parametrize("make", [Derived, Posing])
def test_derived_classes_are_not_ours(make):
    """By the gate of the base class, too, their bounds are claims."""
    assert not is_ours(make())
    for result in (make().solve(INSTANCE, Limits()), ddlopt.solve(INSTANCE, make())):
        assert (result.status, result.bound) == (Status.FEASIBLE, 11.5)
        assert result.details["claimed_bound"] == HONEST.objective


class Plain(Heuristic):
    """A heuristic of another package without a bound of its own."""

    name = "plain"
    family = "topology"

    def answer(self, instance, seed, clock, start):
        clock.report(HONEST.objective, solution=self.reports)
        return self.gives, {}

    reports = gives = HONEST.solution


def test_who_claims_nothing_has_no_claim_and_mistakes_are_named_once(monkeypatch):
    assert "claimed_bound" not in ddlopt.solve(INSTANCE, Plain()).details
    monkeypatch.setattr(Plain, "gives", HONEST.solution.model_copy(update={"links": ()}))
    with pytest.raises(SolverError, match=r"^plain on '[^']*' gave a solution that fails the check"):
        ddlopt.solve(INSTANCE, Plain())
    monkeypatch.setattr(Plain, "reports", "links")
    with pytest.raises(SolverError, match="TypeError: report\\(\\) got a str as a solution"):
        ddlopt.solve(INSTANCE, Plain(), time_limit=30)


def test_method_of_ours_with_something_put_in_its_place_is_not_ours():
    method = catalogue.method("topology-finder", "topology")
    assert is_ours(method)
    object.__setattr__(method, "find", lambda *_: None)
    assert not is_ours(method)


def test_results_and_bounds_refuse_what_is_not_finite():
    for value in (NAN, INFINITE, -INFINITE):
        with pytest.raises(ValueError, match="finite"):
            Bound(value, Evidence.SOLVER)
        for name in ("objective", "bound", "scope_bound", "runtime_s", "compile_s"):
            with pytest.raises(ValueError, match="finite"):
                dataclasses.replace(HONEST, **{name: value})
    for objective, bound in ((1.0, NAN), (NAN, 1.0), (INFINITE, 1.0), (1.0, INFINITE)):
        with pytest.raises(ValueError, match="no gap"):
            relative_gap(objective, bound)
    with pytest.raises(ValueError, match="compared"):
        better(NAN, 1.0, "minimize")
    with pytest.raises(ValueError, match="NaN"):
        best_bound([1.0, NAN], "minimize")
    with pytest.raises(TypeError, match="status of a result"):
        dataclasses.replace(HONEST, status="great")
    with pytest.raises(ValueError, match="cannot take"):
        dataclasses.replace(HONEST, runtime_s=-5.0)
    with pytest.raises(ValueError, match="no evidence"):
        dataclasses.replace(HONEST, evidence=Evidence.CLAIMED)
    assert isinstance(HONEST, Result)


def test_liars_write_nothing_to_the_terminal(call, monkeypatch):
    """``solve --json`` stays JSON although the method prints."""

    class Loud(Liar):
        def solve(self, *_, **__):
            print("noise")
            sys.stdout.write("more")
            return self.says

    entry = dataclasses.replace(catalogue.entries("topology")[0], name="loud", make=lambda _: checked(Loud()))
    monkeypatch.setattr(catalogue, "entries", lambda family=None: (entry,))
    code, out, _ = call("solve", "topology/tiny-n4-d2", "--method", "loud", "--json")
    assert code == 0
    assert json.loads(out)["method"] == "liar"
