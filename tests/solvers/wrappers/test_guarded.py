"""A solve with a limit on its memory: its answer, or one line."""

import os
import signal
import time
from dataclasses import dataclass

import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.models.errors import OptionError, SolverError, UnknownNameError
from ddlopt.solvers.contracts import Limits, TracePoint
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder
from ddlopt.solvers.wrappers.guarded import Guarded, memory_limit

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


@pytest.mark.parametrize("does", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGTERM)])
def test_ends_without_a_result(does):
    with pytest.raises(SolverError, match=r"ended without a result, by exit code -?\d+; perhaps 8 GB"):
        solve(does)


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
