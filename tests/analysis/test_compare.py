import pytest

from ddlopt.analysis.compare import attempt, run
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.contracts import Limits, Result, Status, TracePoint


class Scripted:
    """A method that does as it is told."""

    family = "topology"

    def __init__(self, name, answer, interrupted=False):
        self.name, self._answer, self._interrupted = name, answer, interrupted

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        if isinstance(self._answer, BaseException):
            raise self._answer
        progress(TracePoint(0.5, 3.0, 1.0))
        figures = {"message": self._answer, "interrupted": self._interrupted}
        return Result(instance.name, instance.digest, "topology", self.name, Status.FEASIBLE, **figures)


def test_a_failure_becomes_a_result_and_the_rest_goes_on(instance):
    refusal = NotApplicableError("b does not cover 'square'")
    crash = ZeroDivisionError("division\nby zero")
    methods = [Scripted("a", ""), Scripted("b", refusal), Scripted("c", crash), Scripted("d", "")]
    results = list(run([(instance, method) for method in methods], Limits(), seed=7))
    assert [result.status for result in results] == [Status.FEASIBLE, Status.ERROR, Status.ERROR, Status.FEASIBLE]
    assert results[1].message == "b does not cover 'square'"
    assert results[2].message == "ZeroDivisionError: division by zero"
    assert results[1].instance_digest == instance.digest
    assert results[1].provenance["seed"] == 7
    assert not results[1].checked


def test_progress_names_the_pair_and_starts_with_it(instance):
    seen = []
    attempt(instance, Scripted("a", ""), Limits(), progress=lambda *news: seen.append(news))
    points = TracePoint(0.0, None, None), TracePoint(0.5, 3.0, 1.0), TracePoint(0.0, None, None, settled=True)
    assert seen == [("square", "a", point) for point in points]


def test_an_interrupted_solve_is_yielded_and_ends_the_comparison(instance):
    cut = Scripted("a", "kept the start", interrupted=True)
    results = run([(instance, cut), (instance, Scripted("b", ""))], Limits())
    assert next(results).method == "a"
    with pytest.raises(KeyboardInterrupt):
        next(results)


def test_control_c_is_not_swallowed(instance):
    with pytest.raises(KeyboardInterrupt):
        list(run([(instance, Scripted("a", KeyboardInterrupt()))], Limits()))
