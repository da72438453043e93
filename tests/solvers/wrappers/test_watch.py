"""What a guard makes of what its process tells and of how it ends, without a process."""

import math
import signal
import threading
from types import SimpleNamespace

import pytest
from volume import for_each

import ddlopt
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.solvers.contracts import Limits, TracePoint
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder
from ddlopt.solvers.wrappers import guarded
from ddlopt.solvers.wrappers.guarded import Grace, Guarded, _Watch
from ddlopt.solvers.wrappers.guarded_process import ENDED, POINT, PROBLEM, RESULT, SHORT, SOLUTION

TINY = ddlopt.load("topology/tiny-n4-d2")
FOUND = TopologyFinder().solve(TINY, Limits())
NOTHING = ddlopt.compare("topology/tiny-n4-d2", "forest")[0]
AT_ONCE = Grace(ask_s=0.0, ask_part=0.0, stop_s=1e6)
"""Asked to end as soon as the limit has passed, and never killed."""
ABORTED, KILLED, FAULT = -signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV
KEPT = (SOLUTION, FOUND.solution)
GB = 10**9


class Process:
    """Tells what it is given, one after the other, and notes what is done to it."""

    def __init__(self, *news, code=0):
        self.news, self.code, self.done = list(news), code, []

    def next(self, wait_s):
        said = self.news.pop(0) if self.news else None
        return said() if callable(said) else said

    def wait(self):
        self.done.append("waited for")
        return self.code

    def interrupt(self):
        self.done.append("asked")

    def kill(self):
        self.done.append("killed")

    def close(self, quiet=False):
        self.done.append("closed quietly" if quiet else "closed")

    def delayed_s(self):
        return 0.0


@pytest.fixture
def solve(monkeypatch):
    def solved(process, memory=None, limits=None, asked=None, grace=AT_ONCE, **more):
        monkeypatch.setattr(guarded, "GuardedProcess", lambda *_: process)
        return Guarded(asked or TopologyFinder(), memory, grace).solve(TINY, limits or Limits(), **more)

    return solved


def test_a_result_is_the_answer_and_progress_is_passed_on(solve):
    process, points = Process((POINT, TracePoint(0.5, 9.0, 1.0)), None, KEPT, (RESULT, FOUND)), []
    result = solve(process, progress=points.append)
    assert (result.objective, result.message, result.interrupted) == (FOUND.objective, FOUND.message, False)
    assert points == [TracePoint(0.5, 9.0, 1.0)]
    assert process.done == ["waited for", "closed"]


@for_each(
    ("kind", "code", "memory", "told", "quiet"),
    [
        (SHORT, 0, GB, "needs more than 1 GB of memory", True),
        (SHORT, 0, None, "needs more than there is", True),
        (ENDED, KILLED, GB, "needs more than 1 GB of memory", True),
        (ENDED, ABORTED, GB, "needs more than 1 GB of memory", True),
        (ENDED, ABORTED, None, "ended without a result, by SIGABRT$", False),
        (ENDED, FAULT, GB, "ended without a result, by SIGSEGV; perhaps 1 GB", True),
        (ENDED, 3, GB, "ended without a result, by exit code 3; perhaps 1 GB", False),
    ],
)
def test_an_end_without_a_result_is_an_error_where_nothing_was_found(solve, kind, code, memory, told, quiet):
    process = Process((kind, None), code=code)
    with pytest.raises(SolverError, match=f"^topology-finder on 'tiny-n4-d2' {told}"):
        solve(process, memory)
    assert process.done == ["waited for", "closed quietly" if quiet else "closed"]


@for_each(("kind", "code", "told"), [(SHORT, 0, "needs more than 1 GB"), (ENDED, 3, "by exit code 3; perhaps")])
def test_what_was_found_until_then_is_the_answer(solve, kind, code, told):
    result = solve(Process(KEPT, (kind, None), code=code), GB)
    assert (result.objective, result.checked, result.status) == (FOUND.objective, True, "feasible")
    assert told in result.message
    assert solve(Process((kind, None), code=code), GB, start=FOUND.solution).solution == FOUND.solution


def test_an_error_is_raised_as_it_is_whatever_was_found(solve):
    with pytest.raises(SolverError, match=r"^odd figures$"):
        solve(Process(KEPT, (PROBLEM, SolverError("odd figures"))), GB)


def test_ctrl_c_that_nobody_pressed_is_short_memory_if_that_is_limited(solve):
    with pytest.raises(SolverError, match="needs more than 1 GB"):
        solve(Process((PROBLEM, KeyboardInterrupt())), GB)
    with pytest.raises(KeyboardInterrupt):
        solve(Process((PROBLEM, KeyboardInterrupt())))


def pressed():
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_passed_on_and_there_is_no_limit_any_more(solve):
    process = Process(pressed, None, (RESULT, FOUND))
    result = solve(process, GB, Limits(1e-6), grace=Grace(ask_s=1e5, stop_s=1e6))
    assert (result.objective, "stopped" in result.details) == (FOUND.objective, False)
    assert process.done == ["asked", "waited for", "closed"]
    with pytest.raises(KeyboardInterrupt):
        solve(Process(pressed, KEPT, (PROBLEM, KeyboardInterrupt())), GB)
    with pytest.raises(SolverError, match=r"^odd figures$"):
        solve(Process(pressed, (PROBLEM, SolverError("odd figures"))), GB)


def test_a_process_is_gone_where_whoever_is_told_of_progress_fails(solve):
    process = Process((POINT, TracePoint(0.5, 9.0, 1.0)))
    with pytest.raises(ZeroDivisionError):
        solve(process, progress=lambda _: 1 / 0)
    assert process.done == ["killed", "waited for", "closed"]


@for_each(
    ("news", "found"),
    [
        ([(RESULT, FOUND)], True), ([KEPT, (RESULT, NOTHING)], True), ([(RESULT, NOTHING)], False),
        ([KEPT, (PROBLEM, KeyboardInterrupt())], True), ([(PROBLEM, SolverError("odd figures"))], False),
        ([KEPT, (ENDED, None)], True), ([(ENDED, None)], False),
    ],
)  # fmt: skip
def test_a_method_that_is_late_is_asked_to_end_and_has_an_answer(solve, news, found):
    process = Process(*news)
    result = solve(process, GB, Limits(1e-6))
    assert process.done == ["asked", "waited for", "closed"]
    assert (result.solution == FOUND.solution, result.solution is None) == (found, not found)
    assert result.message.startswith("did not heed its limit of 1e-06 s, and was asked to end")
    assert result.details["stopped"] in result.message


def test_a_method_that_does_not_end_is_killed(solve):
    process = Process((POINT, TracePoint(0.5, 9.0, 1.0)), KEPT, (POINT, TracePoint(0.5, 5.0, 1.0)))
    result = solve(process, GB, Limits(1e-6), grace=Grace(0.0, 0.0, 0.0, 0.0))
    assert process.done == ["killed", "waited for", "closed"]
    assert (result.solution, "was stopped" in result.message) == (FOUND.solution, True)


def test_what_ended_while_nobody_listened_was_not_late(solve):
    """Whoever is told of progress may take as long as they like, such as a terminal that is held."""
    at_once = Grace(0.0, 0.0, 0.0, 0.0)
    process = Process((POINT, TracePoint(0.5, 9.0, 1.0)), KEPT, (RESULT, FOUND))
    result = solve(process, GB, Limits(1e-6), grace=at_once)
    assert (result.solution, result.message, "stopped" in result.details) == (FOUND.solution, FOUND.message, False)
    with pytest.raises(SolverError, match=r"^odd figures$"):
        solve(Process((PROBLEM, SolverError("odd figures"))), GB, Limits(1e-6), grace=at_once)


def test_only_what_the_machine_does_after_the_limit_is_an_excuse(monkeypatch):
    now = [100.0]

    class Deaf(Process):
        def next(self, wait_s):
            now[0] += wait_s

        def delayed_s(self):
            return 100.0  # all of it before the limit

    process, grace = Deaf(), Grace(ask_s=2.0, ask_part=0.0, stop_s=4.0, stop_part=0.0, patience=1000.0)
    monkeypatch.setattr(guarded, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    watch = _Watch(process, 10.0, grace, None, began=100.0)
    assert watch.answer([]) == (ENDED, None)
    assert process.done == ["asked", "killed"]
    assert 14.0 <= watch.elapsed_s < 14.1


def test_after_ctrl_c_a_method_has_the_time_that_it_takes(monkeypatch):
    now, pressed = [100.0], []

    def press():
        now[0] += 1000.0
        pressed.append(now[0])

    process = Process(press, None, (RESULT, FOUND))
    monkeypatch.setattr(guarded, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    watch = _Watch(process, 10.0, Grace(), None, began=100.0)
    assert watch.answer(pressed) == (RESULT, FOUND)
    assert (process.done, watch.late) == ([], "")


def test_what_a_method_says_in_time_is_its_answer_whatever_it_told_before(solve):
    assert solve(Process(KEPT, (RESULT, NOTHING))).solution is None


def test_a_guard_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(guarded, "address_space_left_bytes", lambda: 3 * GB)
    monkeypatch.delenv("DDLOPT_GUARD", raising=False)
    assert guarded.machine_gigabytes() == 3.0
    seen = []
    other = threading.Thread(target=lambda: seen.append(guarded.can_guard()))
    other.start()
    other.join()
    assert seen == [False]
    monkeypatch.setenv("DDLOPT_GUARD", "off")
    assert guarded.machine_gigabytes() is None


@for_each("time_s", [None, 1e9, math.inf])
def test_nobody_is_asked_before_the_limit(solve, time_s):
    process = Process(None, None, (RESULT, FOUND))
    solve(process, limits=Limits(time_s))
    assert process.done == ["waited for", "closed"]


def test_no_process_is_begun_for_what_the_method_refuses(solve):
    forest = ddlopt.solvers.catalogue.method("forest", "topology")
    with pytest.raises(NotApplicableError, match=r"^forest does not cover 'tiny-n4-d2': "):
        solve(None, asked=forest)


def test_when_a_method_is_asked_and_when_it_is_stopped():
    process = Process()
    watch = _Watch(process, 10.0, Grace(ask_s=1.0, ask_part=0.1, stop_s=3.0, stop_part=0.2, patience=4.0), None)
    told = []
    # Seconds over the limit, and how many of them the machine did something else.
    for over_s, delayed_s in ((1.9, 0.0), (2.5, 1.0), (2.0, 0.0), (4.9, 0.0), (7.0, 3.0), (19.9, 19.0)):
        assert not watch._is_stopped(over_s, delayed_s)
        told.append(len(process.done))
    assert told == [0, 0, 1, 1, 1, 1]  # asked once
    assert watch.late.endswith("was asked to end 2.0 s later")
    assert watch._is_stopped(5.0, 0.0)
    assert watch._is_stopped(20.0, 19.0)  # patience ends
    assert watch.late.endswith("was stopped 20.0 s later")
