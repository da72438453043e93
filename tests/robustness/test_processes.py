"""Processes that will not end, and methods that end what they should not or write where they should not."""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from volume import slow

from ddlopt.analysis.bench import Store, Sweep, plan
from ddlopt.analysis.bench.processes import isolated
from ddlopt.cli import run
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.wrappers.guarded_process import _portable as portable

TINY = "topology/tiny-n4-d2"
DDLOPT = Path(sys.executable).with_name("ddlopt")
PLUGIN = Path(__file__).parents[1] / "analysis" / "bench" / "plugin"
RAISED = ("SystemExit", "KeyboardInterrupt", "MemoryError", "RecursionError", "GeneratorExit", "BaseException")
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.fixture(autouse=True)
def odd_methods(monkeypatch, tmp_path):
    """The odd methods of a package are there in all processes, which carry a mark of this test."""
    monkeypatch.syspath_prepend(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))
    monkeypatch.setenv("MARK", str(tmp_path))


def marked(tmp_path):
    """Processes, other than this one, that were started with the mark in their environment."""
    mark = f"MARK={tmp_path}".encode()
    return {each for each in numbers() if mark in told_of(each, "environ").split(b"\0")} - {str(os.getpid())}


def solvers(tmp_path):
    """Those that pretend to be a solver."""
    return {each for each in numbers() if f"{tmp_path}/began".encode() in told_of(each, "cmdline")}


def numbers():
    return [place.name for place in Path("/proc").glob("[0-9]*")]


def told_of(number, what):
    try:
        return (Path("/proc") / number / what).read_bytes()
    except OSError:
        return b""


def wait_for(condition):
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@needs_proc
@pytest.mark.parametrize("how", [slow("limit"), "end", slow("stop")])
def test_no_process_of_a_solve_survives_it(tmp_path, monkeypatch, how):
    """At its limit, at its own end, and when the sweep is left."""
    monkeypatch.setattr(isolated, "GRACE", (0.0, 2.0))
    waits, limit = ("false", 60.0) if how == "end" else ("true", 60.0 if how == "stop" else 1.0)
    named = f"stubborn:waits={waits},began={tmp_path}/began"
    tasks = plan([TINY], [named, "topology-finder"], [0], Limits(limit))
    with Store(tmp_path / "store.sqlite") as store:
        sweep = Sweep(tasks, store, jobs=2).run()
        first = next(sweep)
        assert first.run["method"] == "topology-finder" or how == "end"
        if how == "stop":
            wait_for(lambda: list(tmp_path.glob("began.*")))
            sweep.close()
        rows = {each.run["method"]: each.run for each in (first, *sweep)}
    assert not solvers(tmp_path)
    assert list(tmp_path.glob("began.*"))
    stubborn = rows.get(named)
    assert (stubborn and stubborn["status"]) == {"limit": "killed", "end": "feasible", "stop": None}[how]


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("number", ["INT", "KILL", "TERM"])
def test_no_process_of_a_solve_survives_the_command(tmp_path, number):
    stubborn = f"stubborn:began={tmp_path}/began"
    words = ["bench", TINY, "--methods", stubborn, "--seeds", "0,1", "--time-limit", "1000", "--jobs", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    sweep = subprocess.Popen([DDLOPT, *words, "--store", tmp_path / "store.sqlite"], **pipes)
    wait_for(lambda: len(list(tmp_path.glob("began.*"))) == 2)
    assert len(solvers(tmp_path)) >= 6
    subprocess.run(["kill", f"-{number}", str(sweep.pid)], check=True)
    sweep.wait()
    if number == "INT":
        assert not solvers(tmp_path)  # it waits for them
    wait_for(lambda: not marked(tmp_path))
    sweep.communicate()


def ran(*words):
    done = subprocess.run([DDLOPT, *map(str, words)], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_standard_output_is_kept_clear():
    """Whatever a method prints, by whatever means, is no part of JSON."""
    code, out, told = ran("solve", TINY, "--method", "loud", "--json")
    assert (code, json.loads(out)["method"]) == (0, "loud")
    assert told.count("noise") >= 6


@pytest.mark.slow
def test_standard_output_of_a_comparison_is_kept_clear(capfd):
    """Of CSV and of tables neither: what is written to the descriptor itself is seen in this process, too."""
    code = run(["compare", TINY, "--methods", "loud,topology-finder", "--csv"])
    out = capfd.readouterr().out
    assert (code, [row["method"] for row in csv.DictReader(out.splitlines())]) == (0, ["loud", "topology-finder"])


@pytest.mark.slow
def test_sweeps_keep_standard_output_clear(tmp_path):
    code, out, told = ran("bench", TINY, "--methods", "loud", "--store", tmp_path / "store.sqlite")
    assert (code, out) == (0, f"1 results in {tmp_path / 'store.sqlite'}; now: 1 feasible\n")
    assert told.count("noise") >= 6


@pytest.mark.parametrize("words", [("list", "topology", "--methods"), ("show", TINY)])
@pytest.mark.slow
def test_commands_that_only_ask_print_no_noise(words):
    code, out, _ = ran(*words, "--json")
    assert code == 0
    assert json.loads(out)


def test_whatever_a_method_raises_is_a_row(tmp_path, call):
    named = {f"raises:what={what}": what for what in RAISED}
    wanted = ",".join([*named, "topology-finder"])
    code, out, told = call("bench", TINY, "--methods", wanted, "--store", tmp_path / "s.sqlite")
    assert (code, told) == (0, "")
    assert out.endswith("now: 5 error, 1 out_of_memory, 1 feasible\n")
    with Store(tmp_path / "s.sqlite", write=False) as store:
        for row in store.runs():
            assert row["message"].isprintable()
            assert named.get(row["method"], "") in row["message"] or row["status"] == "out_of_memory"


@pytest.mark.parametrize("what", RAISED)
def test_whatever_a_method_raises_ends_no_command(call, monkeypatch, what):
    import odd_methods

    monkeypatch.setattr(odd_methods.Raises, "what", what)
    monkeypatch.setattr(odd_methods.Raises.__init__, "__defaults__", (what,))
    code, out, told = call("solve", TINY, "--method", "raises")
    assert (code, out) == (1, "")
    memory = what == "MemoryError"  # a command has what the machine has left, and says so
    assert told.startswith(f"ddlopt: raises on 'tiny-n4-d2'{' needs more than' if memory else f': {what}'}")
    assert len(told.splitlines()) == 1
    code, out, told = call("compare", TINY, "--methods", "raises,topology-finder", "--json")
    assert code == 1
    assert [each["status"] for each in json.loads(out)["results"]] == ["error", "feasible"]
    assert told.startswith("raises: ") or "raises" in told


@pytest.mark.slow
@pytest.mark.parametrize("times", [200])
def test_killed_sweeps_lose_nothing(tmp_path, times):
    """Killed at random moments while rows are being written; ``python benchmarks suite/kills``."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    words = [sys.executable, benchmarks, "suite/kills", "--times", str(times), "--folder", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{times} kills, ")
    assert "1 resumed to the end" in done.stdout


def test_a_method_of_somebody_else_is_held_to_its_limit():
    """It tells a time and no design: there is no answer; the limit is the limit all the same."""
    began = time.monotonic()
    code, out, _ = ran("solve", TINY, "--method", "hang", "--time-limit", "0.5", "--json")
    assert time.monotonic() - began < 500  # it would sleep for 1000 seconds
    data = json.loads(out)
    assert (code, data["status"], data["objective"]) == (1, "no_solution", None)
    assert data["message"].startswith("did not heed its limit of 0.5 s, and was stopped ")
    assert data["message"] == data["details"]["stopped"]


@pytest.mark.parametrize(("kind", "told"), [(SolverError, "no luck"), (ValueError, "Local: no luck")])
def test_what_no_process_can_send_is_told_in_words(kind, told):
    class Local(kind):
        """Of a function, so that nobody else finds it."""

    sent = portable(Local("no luck"))
    assert (type(sent), str(sent)) == (SolverError, told)
