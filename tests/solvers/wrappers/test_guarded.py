"""A solve with limits on its time and memory that hold: its answer, the best that it told, or one line."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.models.catalogue import family
from ddlopt.models.errors import OptionError, SolverError, UnknownNameError
from ddlopt.solvers import certify
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.contracts import Limits, TracePoint
from ddlopt.solvers.external import checked
from ddlopt.solvers.heuristic import Heuristic
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder
from ddlopt.solvers.wrappers.guarded import Grace, Guarded, _Watch, memory_limit

TINY = ddlopt.load("topology/tiny-n4-d2")
PLENTY = 8 * 10**9


@dataclass(frozen=True)
class Odd:
    """Does something else than to answer."""

    does: object

    name = "odd"
    family = "topology"

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        self.does()
        if progress is not None:
            progress(TracePoint(0.5, 2.0, 1.0))
        return TopologyFinder().solve(instance, limits, seed, progress, start)


def solve(does, memory_bytes=PLENTY, **options):
    return Guarded(Odd(does), memory_bytes).solve(TINY, Limits(), **options)


def test_is_the_answer_of_the_method():
    points = []
    found = solve(lambda: None, progress=points.append)
    alone = TopologyFinder().solve(TINY, Limits())
    assert (found.method, found.objective, found.solution) == (alone.method, alone.objective, alone.solution)
    assert points[0] == TracePoint(0.5, 2.0, 1.0)


def aborts():
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def says(words):
    raise SolverError(f"HiGHS: {words}")


@pytest.mark.parametrize(
    "does",
    [
        *(lambda: np.ones(2**30), lambda: bytearray(2**34), aborts),
        *(lambda: says("std::bad_alloc"), lambda: says("Cannot allocate memory"), lambda: says("out of memory")),
        # What OpenBLAS does where a thread of it has no room.
        lambda: (signal.raise_signal(signal.SIGINT), time.sleep(60)),
    ],
)
def test_too_much_memory_is_one_line(does, capfd):
    with pytest.raises(SolverError, match=r"odd on 'tiny-n4-d2' needs more than 8 GB of memory; --memory sets"):
        solve(does)
    assert capfd.readouterr() == ("", "")


def test_other_errors_are_themselves():
    def fails():
        raise UnknownNameError("there is no such thing")

    with pytest.raises(UnknownNameError, match="there is no such thing"):
        solve(fails)


def test_highs_was_run_before_by_whoever_asks():
    def run(threads):
        highs = SilentHighs()
        highs.setOptionValue("threads", threads)
        highs.addVariable(1, 2, 1)
        highs.run()
        assert highs.getObjectiveValue() == 1

    run(2)  # keeps a thread, which a forked process does not have
    solve(lambda: (run(2), run(1), run(2)))


@pytest.mark.parametrize("how", ["exit code 3", "SIGTERM", "SIGSEGV"])
def test_ends_without_a_result(how):
    number = getattr(signal, how, None)
    with pytest.raises(SolverError, match=rf"ended without a result, by {how}; perhaps 8 GB"):
        solve((lambda: os._exit(3)) if number is None else (lambda: os.kill(os.getpid(), number)))


def test_what_it_says_is_heard(capfd):
    solve(lambda: os.write(2, b"by the way\n"))
    assert capfd.readouterr() == ("", "by the way\n")


def test_is_gone_with_whoever_asked(tmp_path):
    note = tmp_path / "solving"
    asking = os.fork()
    if asking == 0:
        try:
            solve(lambda: (note.write_text(str(os.getpid())), time.sleep(60)))
        finally:
            os._exit(0)
    while not note.exists() or not note.read_text():
        time.sleep(0.01)
    child = int(note.read_text())
    os.kill(asking, signal.SIGKILL)
    os.waitpid(asking, 0)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the solve goes on")


@for_each("gigabytes", [0, -1.0, float("nan"), float("inf"), 1e300])
def test_limits_that_are_none(gigabytes):
    with pytest.raises(OptionError, match="the memory must be a positive number of gigabytes"):
        memory_limit(gigabytes)
    with pytest.raises(OptionError, match="the memory must be"):
        ddlopt.compare([TINY], ["topology-finder"], memory=gigabytes)


@dataclass(frozen=True)
class Deaf(Heuristic):
    """Tells a design and does not look at its clock."""

    does: object
    tells: bool = True
    bound: float | None = None

    name = "deaf"
    family = "topology"

    def answer(self, instance, seed, clock, start):
        design, figures = TopologyFinder().answer(instance, seed, clock, start)
        if self.tells:
            time_s = float(ddlopt.check(instance, design).objective)
            clock.report(time_s, self.bound, lambda: design)
            # What is told of another instance, and what is worse, is not kept.
            clock.report(time_s / 2, None, design.model_copy(update={"instance_digest": "0" * 64}))
            clock.report(2 * time_s, None, design)
        self.does(clock)
        return design, figures


def for_ever(_):
    while True:
        pass


def sleeps(_):
    """As deaf as for ever, and no load on the processor."""
    time.sleep(1000)


def until_asked(clock):
    while not clock.interrupted:
        time.sleep(0.01)


SHORT = Grace(ask_s=0.05, stop_s=0.3, patience=2.0)
OPTIMUM = TopologyFinder().solve(TINY, Limits())


def held(does, time_s=0.2, grace=SHORT, start=None, **options):
    return Guarded(Deaf(does, **options), grace=grace).solve(TINY, Limits(time_s), start=start)


@pytest.mark.parametrize("does", [for_ever, sleeps, lambda _: threading.Event().wait()])
def test_what_was_told_is_the_answer_of_a_method_that_does_not_end(does):
    found = held(does)
    assert (found.status, found.checked, found.solution) == ("feasible", True, OPTIMUM.solution)
    assert (found.objective, found.bound, found.evidence) == (OPTIMUM.objective, OPTIMUM.bound, OPTIMUM.evidence)
    assert found.message.startswith("did not heed its limit of 0.2 s, and was stopped ")
    assert found.details["stopped"] in found.message
    assert not found.interrupted
    assert found.runtime_s >= 0.2


def test_a_bound_that_was_told_counts_if_the_method_is_one_of_ours():
    assert held(sleeps, bound=11.75).bound == 11.75
    foreign = Guarded(checked(Deaf(sleeps, bound=11.75)), grace=SHORT).solve(TINY, Limits(0.2))
    assert (foreign.bound, foreign.objective) == (OPTIMUM.bound, OPTIMUM.objective)


def test_a_bound_above_what_was_told_is_an_error():
    with pytest.raises(SolverError, match=r"deaf on 'tiny-n4-d2': bound 13 exceeds the checked objective 12"):
        held(sleeps, bound=13.0)


def test_a_start_is_known_too():
    assert held(sleeps, tells=False, start=OPTIMUM.solution).objective == OPTIMUM.objective


def test_nothing_told_is_no_solution_with_the_bound_of_the_problem():
    found = held(sleeps, tells=False)
    assert (found.status, found.solution, found.bound) == ("no_solution", None, OPTIMUM.bound)
    assert "was stopped" in found.message


def test_a_method_that_ends_when_asked_gives_its_own_answer():
    found = held(until_asked, grace=Grace(ask_s=0.05, stop_s=300.0))
    assert (found.objective, found.interrupted, found.details["max_link_load_bytes"]) == (12.0, False, 12.0)
    assert "was asked to end" in found.message


def test_a_method_in_time_is_not_asked():
    found = Guarded(Deaf(lambda _: None)).solve(TINY, Limits(300.0))
    assert (found.message, "stopped" in found.details) == ("", False)


def test_what_was_told_outlives_a_crash_and_a_lack_of_memory():
    for does in (lambda _: os.abort(), lambda _: bytearray(2**45)):
        found = Guarded(Deaf(does), PLENTY).solve(TINY, Limits())
        assert (found.status, found.objective) == ("feasible", 12.0)
        assert "needs more than 8 GB of memory" in found.message


def test_what_passes_the_gate_on_the_way_is_kept():
    def asks_another(_):
        TopologyFinder().solve(TINY, Limits())
        sleeps(_)

    assert held(asks_another, tells=False).objective == OPTIMUM.objective


def test_solve_and_compare_are_guarded(monkeypatch):
    """Also a method of somebody else; and not where nobody wants it."""
    spied = []

    def spy(_):
        spied.append(os.getpid())

    for ask in (ddlopt.solve, ddlopt.compare):
        ask(TINY, Deaf(spy), time_limit=60)
    assert not spied  # it was another process
    ddlopt.solve(TINY, Deaf(spy))
    monkeypatch.setenv("DDLOPT_GUARD", "off")
    ddlopt.solve(TINY, Deaf(spy), time_limit=60)
    assert spied == [os.getpid()] * 2


def test_a_bound_that_takes_too_long_after_the_limit_is_left_out(monkeypatch):
    def endless(_):
        while True:
            time.sleep(0.01)

    for limits, bound in ((Limits(), OPTIMUM.bound), (Limits(60.0), OPTIMUM.bound)):
        assert TopologyFinder().solve(TINY, limits).bound == bound
    problem = family("topology")
    monkeypatch.setattr(certify, "family", lambda _: SimpleNamespace(evaluate=problem.evaluate, bound=endless))
    gate = certify.Gate(TINY, "m", Limits(0.01), runtime_s=1.0)
    found = gate.certify(certify.MethodOutput(OPTIMUM.solution))
    assert (found.status, found.objective, found.bound) == ("feasible", OPTIMUM.objective, None)


def test_what_the_machine_delays_is_not_the_methods_fault():
    watch = _Watch(None, 10.0, Grace(ask_s=0.5, ask_part=0.0, stop_s=1.0, stop_part=0.0, patience=4.0), None)
    watch.process = SimpleNamespace(interrupt=lambda: None)
    assert [watch._is_stopped(over_s, delayed_s) for over_s, delayed_s in ((0.4, 0.0), (0.9, 0.8))] == [False] * 2
    assert watch.late == ""
    assert not watch._is_stopped(0.9, 0.2)
    assert "asked to end 0.9 s later" in watch.late
    assert not watch._is_stopped(3.9, 3.5)
    assert watch._is_stopped(4.0, 4.0)  # patience ends
    assert watch._is_stopped(1.5, 0.5)


def test_command_line(call):
    code, out, says = call("solve", "topology/tiny-n4-d2", "--method", "topology-finder", "--memory", "0.01")
    assert (code, out) == (1, "")
    assert says.startswith("ddlopt: topology-finder on 'tiny-n4-d2' needs more than 0.01 GB of memory; --memory sets")
    assert says.count("\n") == 1
    assert call("solve", "topology/tiny-n4-d2", "--method", "topology-finder", "--memory", "8")[0] == 0
    code, out, says = call(
        "compare", "topology/tiny-n4-d2", "--methods", "topology-finder,expander", "--memory", "0.01", "--json"
    )
    assert code == 1
    assert out.count('"error"') == 2
    assert says.count("needs more than 0.01 GB") == 2
