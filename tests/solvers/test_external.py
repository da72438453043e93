"""Methods of other packages are checked like our own, whatever they say of themselves."""

import dataclasses
import signal
from types import SimpleNamespace

import pytest

import ddlopt
from ddlopt.models.errors import OptionError, SolutionError, SolverError
from ddlopt.solvers import catalogue, external
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import Limits, Status, TracePoint
from ddlopt.solvers.external import ExternalMethod, checked

INSTANCE = ddlopt.load("topology/tiny-n4-d2")
HONEST = catalogue.method("topology-finder", "topology").solve(INSTANCE, Limits())


class Claims:
    """Answers what it was told to."""

    name = "claims"
    family = "topology"

    def __init__(self, **changes):
        self.result = dataclasses.replace(HONEST, method="claims", **changes)

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        return self.result


def answer(**changes):
    return checked(Claims(**changes)).solve(INSTANCE, Limits())


def test_an_honest_answer_passes():
    result = answer(checked=False)
    assert result.checked
    assert (result.method, result.objective, result.bound) == ("claims", HONEST.objective, HONEST.bound)


def test_a_method_that_returns_nothing_is_told_what_is_expected():
    class Forgetful(Claims):
        def solve(self, instance, limits, seed=0, progress=None, start=None):
            super().solve(instance, limits)

    with pytest.raises(
        SolverError, match=r"claims on 'tiny-n4-d2': solve\(\) gave nothing \(None\); expected a Result"
    ):
        checked(Forgetful()).solve(INSTANCE, Limits())


def test_optimality_is_not_believed_without_a_bound():
    assert HONEST.status == Status.FEASIBLE
    assert answer(status=Status.OPTIMAL).status == Status.FEASIBLE


def test_a_wrong_objective_is_an_error():
    with pytest.raises(SolverError, match=r"claims on 'tiny-n4-d2' claims .* but evaluate finds"):
        answer(objective=HONEST.objective / 2)


def test_a_broken_solution_is_an_error():
    data = HONEST.solution.model_dump()
    data["links"] = data["links"][1:]
    broken = type(HONEST.solution).from_data(data)
    with pytest.raises(SolverError, match="fails the check"):
        answer(solution=broken)


def test_an_answer_without_a_solution_is_an_error():
    with pytest.raises(SolverError, match="claims to be feasible without a solution"):
        answer(solution=None)
    nothing = Claims()
    nothing.result = Gate(INSTANCE, "claims", Limits()).without_solution(MethodOutput(None))
    assert checked(nothing).solve(INSTANCE, Limits()).status == Status.NO_SOLUTION


def test_an_object_in_a_call_is_checked_too():
    with pytest.raises(SolverError, match="but evaluate finds"):
        ddlopt.solve(INSTANCE, Claims(objective=HONEST.objective * 2))


def test_our_own_methods_are_left_as_they_are():
    for name in ("topology-finder", "rings-and-routes"):
        method = catalogue.method(name, "topology")
        assert checked(method) is method
    assert isinstance(checked(Claims()), ExternalMethod)


def nothing(**figures):
    """A claim without a solution; of a class of its own, as what others give may be anything."""
    usual = dict.fromkeys(("solution", "objective", "bound", "scope_bound", "evidence"))
    usual |= {
        "message": "",
        "trace": (),
        "interrupted": False,
        "details": {},
        "provenance": {},
        "status": "no_solution",
    }
    found = Claims()
    found.result = SimpleNamespace(**usual | figures)
    return checked(found).solve(INSTANCE, Limits())


def test_that_there_is_no_solution_is_not_believed():
    told = nothing(status="infeasible", message="never", provenance={"solver": "theirs"})
    assert (told.status, told.provenance["solver"]) == (Status.NO_SOLUTION, "theirs")
    assert told.message == "says that there is no solution, without evidence; never"
    told = nothing(message="late", provenance={"solver": 3})
    assert (told.message, "solver" in told.provenance) == ("late", False)
    with pytest.raises(SolverError, match="has the status 'perhaps', which there is not"):
        nothing(status="perhaps")
    assert nothing(interrupted=1).interrupted is False
    assert nothing(interrupted=True).interrupted is True


def test_points_of_a_trace_are_within_the_solve_and_have_no_bounds():
    odd = [TracePoint(-1.0, 30.0, 1.0), TracePoint(1e9, 13.0, 2.0), TracePoint(0.0, None, 3.0)]
    result = answer(trace=tuple(odd))
    assert [(point.time_s, point.incumbent, point.bound) for point in result.trace] == [
        (0.0, 30.0, None), (result.runtime_s, 13.0, None),
    ]  # fmt: skip
    assert [point.incumbent for point in answer(trace=(TracePoint(0.0, HONEST.objective / 2, None),)).trace] == []


def test_what_is_told_meanwhile_is_numbers(monkeypatch):
    heard = []
    watch = external._watched(heard.append, 0.0, INSTANCE)
    monkeypatch.setattr(external, "time", SimpleNamespace(perf_counter=lambda: 2.5))
    for incumbent in (3, "3", None, float("nan"), float("-inf"), 2.5):
        watch(SimpleNamespace(incumbent=incumbent))
    watch("nothing of this kind")
    assert [(point.time_s, point.incumbent, point.bound) for point in heard] == [(2.5, 3.0, None), (2.5, 2.5, None)]


class Talks(Claims):
    """Says and does as it is told."""

    def __init__(self, does=None, **says):
        super().__init__()
        self.does = does
        vars(self).update(says)

    def solve(self, *_):
        self.does()


@pytest.mark.parametrize("name", [None, "", 3, "two\nlines"])
def test_a_method_has_a_name_and_a_family(name):
    for field in ("name", "family"):
        with pytest.raises(OptionError, match=f"the {field} of a method is a word"):
            checked(Talks(**{field: name}))


def test_what_a_method_says_of_itself_is_words_or_nothing():
    for said in (("a", 3), 3, None):
        method = checked(Talks(kernels=said, uses=said))
        assert (method.kernels_for(INSTANCE), method.uses_for(INSTANCE)) == ((), None)
    method = checked(Talks(kernels=("a",), uses=frozenset({"seed"})))
    assert method.kernels_for(INSTANCE)[-1:] == ("a",)
    assert method.uses_for(INSTANCE) == frozenset({"seed"})
    assert checked(Talks(uses=frozenset({"seed", 3}))).uses_for(INSTANCE) is None
    assert checked(method) is method


def raising(problem):
    def does():
        raise problem

    return does


@pytest.mark.parametrize(
    ("problem", "kind", "message"),
    [
        (ValueError("two\n lines"), SolverError, "claims on 'tiny-n4-d2': ValueError: two lines"),
        (KeyboardInterrupt(), SolverError, "claims on 'tiny-n4-d2': KeyboardInterrupt"),
        (SystemExit(3), SolverError, "claims on 'tiny-n4-d2': SystemExit: 3"),
        (SolutionError("of another"), SolutionError, "claims on 'tiny-n4-d2': of another"),
        (SolverError("claims on 'tiny-n4-d2': so it is"), SolverError, "claims on 'tiny-n4-d2': so it is"),
    ],
)
def test_whatever_it_raises_is_one_line(problem, kind, message):
    with pytest.raises(SolverError if kind is SolverError else SolutionError) as caught:
        checked(Talks(raising(problem))).solve(INSTANCE, Limits())
    assert (type(caught.value), str(caught.value)) == (kind, message)


def test_somebodys_ctrl_c_is_one():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        checked(Talks(lambda: signal.raise_signal(signal.SIGINT))).solve(INSTANCE, Limits())
    assert signal.getsignal(signal.SIGINT) is before
    refuses = Talks()
    refuses.refuses = lambda _: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        checked(refuses).refuses(INSTANCE)
    refuses.refuses = lambda _: raising(KeyboardInterrupt())()
    assert "cannot say whether it covers the instance (KeyboardInterrupt)" in checked(refuses).refuses(INSTANCE)
