"""What a guarded process tells and what is kept of it, without a process."""

import errno
import os
import pickle
from types import SimpleNamespace

import pytest

import ddlopt
from ddlopt.models.errors import OptionError, SolverError
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import Limits, TracePoint
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder
from ddlopt.solvers.wrappers import guarded, guarded_process
from ddlopt.solvers.wrappers.guarded import Grace, Guarded, _better, _Watch, memory_limit
from ddlopt.solvers.wrappers.guarded_process import _is_short, _News, _portable, _portable_result, tells_of_memory

TINY = ddlopt.load("topology/tiny-n4-d2")
FOUND = TopologyFinder().solve(TINY, Limits())


def test_gigabytes_are_bytes():
    assert (memory_limit(None), memory_limit(2.5), memory_limit(1e-9)) == (None, 2_500_000_000, 1)
    assert memory_limit(2**33 - 1) < 2**63
    for odd in ("8", 0, 2**33):
        with pytest.raises(OptionError, match=f"a positive number of gigabytes, got {odd}"):
            memory_limit(odd)


@pytest.mark.parametrize(
    ("sense", "start", "kept", "taken"),
    [
        ("minimize", None, 3.0, "kept"), ("minimize", 3.0, None, "start"), ("minimize", 3.0, 4.0, "start"),
        ("minimize", 4.0, 3.0, "kept"), ("minimize", 3.0, 3.0, "kept"), ("maximize", 3.0, 4.0, "kept"),
        ("maximize", 4.0, 3.0, "start"), ("minimize", None, None, "kept"),
    ],
)  # fmt: skip
def test_of_the_start_and_what_was_kept_the_better_one_is_the_answer(monkeypatch, sense, start, kept, taken):
    worth = {"start": start, "kept": kept}
    monkeypatch.setattr(guarded, "known_objective", lambda _, solution: worth[solution])
    assert _better(SimpleNamespace(sense=sense), "kept", "start") == taken


def test_the_limits_of_patience():
    grace = Grace(ask_s=0.5, ask_part=0.01, stop_s=1.25, stop_part=0.03)
    assert (grace.asked_after_s(100.0), grace.stopped_after_s(100.0)) == (1.5, 4.25)
    usual = Grace()
    for limit_s in (0.1, 10.0, 3600.0):
        assert usual.asked_after_s(limit_s) < usual.stopped_after_s(limit_s) < 2 + 0.05 * limit_s


@pytest.fixture
def news(monkeypatch):
    """A pipe that keeps what is sent, and a clock that a test sets."""
    now, sent = [0.0], []
    monkeypatch.setattr(guarded_process, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    pipe = SimpleNamespace(send=lambda told: sent.append(told[1]))
    return SimpleNamespace(of=_News(pipe, TINY), now=now, sent=sent)


def test_only_what_is_better_is_sent(news):
    for objective in (5.0, 6.0, 5.0, float("nan"), 4.0):
        news.of.keep(objective, FOUND.solution)
    assert len(news.sent) == 2
    news.of.keep(1.0, FOUND.solution.model_copy(update={"instance_digest": "0" * 64}))
    news.of.keep(3.0, FOUND.solution)
    assert len(news.sent) == 3  # that of another instance counts for nothing
    with pytest.raises(TypeError, match="got a int as a solution"):
        news.of.keep(2.0, lambda: 7)
    news.of._process = os.getpid() + 1  # a process that the method has started
    news.of.keep(1.0, FOUND.solution)
    assert len(news.sent) == 3


def test_making_solutions_takes_a_tenth_of_the_time_at_most(news):
    def made():
        news.now[0] += 1.0
        return FOUND.solution

    for at, objective, sent in ((0.0, 9.0, 1), (9.0, 8.0, 1), (10.0, 7.0, 2), (19.0, 6.0, 2), (20.0, 5.0, 3)):
        news.now[0] = at
        news.of.keep(objective, made)
        assert len(news.sent) == sent


def watch(**more):
    told = _Watch(None, 10.0, Grace(), None)
    told.points = [TracePoint(0.5, 13.0, 11.6), TracePoint(0.7, 12.0, 11.75), TracePoint(0.8, 1.0, None)]
    vars(told).update(more)
    return told


def test_what_was_kept_goes_through_the_gate_with_the_bounds_that_were_told():
    asked = Guarded(TopologyFinder())
    result = asked._kept(TINY, Limits(10.0), 3, watch(), 0.5, FOUND.solution, "was stopped")
    assert (result.status, result.objective, result.bound) == ("feasible", 12.0, 11.75)
    assert result.message == "was stopped; this is the best that was found until then"
    assert [point.incumbent for point in result.trace] == [13.0, 12.0]
    assert (result.compile_s, result.provenance["seed"], result.details["stopped"]) == (0.5, 3, "was stopped")
    nothing = asked._kept(TINY, Limits(10.0), 3, watch(), 0.5, None, "was stopped")
    assert (nothing.status, nothing.bound, nothing.message) == ("no_solution", 11.75, "was stopped")


def test_what_is_told_of_a_stop():
    told = Guarded(TopologyFinder())
    result = told._told(Gate(TINY, "m", Limits(), compile_s=1.0).certify(MethodOutput(FOUND.solution)), 0.25, "")
    assert (result.compile_s, result.message, "stopped" in result.details) == (1.25, "", False)
    late = told._told(result, 0.0, "was asked to end")
    assert (late.message, late.details["stopped"], late.interrupted) == ("was asked to end", "was asked to end", False)
    assert "needs more than there is; --memory sets" in told._needs_more(TINY)
    assert told._ended(TINY, 3).endswith("by exit code 3")
    assert told._ended(TINY, -9).endswith("by SIGKILL")
    assert told._ended(TINY, 0).endswith("by exit code 0")


def test_words_of_libraries_that_ran_out_of_memory():
    assert tells_of_memory("std::bad_alloc")
    assert not tells_of_memory(str(SolverError("a memory of old days")))


def raised(problem, cause=None, context=None):
    problem.__cause__, problem.__context__ = cause, context
    return problem


@pytest.mark.parametrize(
    ("problem", "short"),
    [
        (MemoryError(), True), (OSError(errno.ENOMEM, "no room"), True), (OSError(errno.ENOENT, "no file"), False),
        (SolverError("HiGHS: std::bad_alloc"), True), (SolverError("no basis"), False),
        (raised(SolverError("no answer"), cause=MemoryError()), True),
        (raised(SolverError("no answer"), context=raised(ValueError("odd"), context=MemoryError())), True),
        (raised(SolverError("no answer"), cause=ValueError("odd")), False), (KeyboardInterrupt(), False),
    ],
)  # fmt: skip
def test_whatever_is_behind_an_error_is_looked_at_for_short_memory(problem, short):
    assert _is_short(problem) == short


class UnsendableError(Exception):
    def __init__(self):
        super().__init__("here", lambda: None)

    def __str__(self):
        return "odd figures"


class OwnUnsendableError(UnsendableError, SolverError):
    pass


def test_an_error_of_any_kind_can_be_sent():
    own = OptionError("no such option")
    assert _portable(own) is own
    assert isinstance(_portable(KeyboardInterrupt(lambda: None)), KeyboardInterrupt)
    for problem, told in ((UnsendableError(), "UnsendableError: odd figures"), (OwnUnsendableError(), "odd figures"),
                          (SystemExit(3), "SystemExit: 3")):  # fmt: skip
        sent = pickle.loads(pickle.dumps(_portable(problem)))
        assert (type(sent), str(sent)) == (SolverError, told)


def test_a_result_with_figures_of_any_kind_can_be_sent():
    assert _portable_result(FOUND) is FOUND
    odd = told_anew(FOUND, details={"figure": lambda: None, 3: 4.0}, provenance={"seed": 1, "by": lambda: None})
    sent = pickle.loads(pickle.dumps(_portable_result(odd)))
    assert sent.solution == FOUND.solution
    assert (set(sent.details), sent.details["3"]) == ({"figure", "3"}, "4.0")
    assert sent.provenance["seed"] == "1"
