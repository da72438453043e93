"""Sweeps: what is done, what is stored, and what happens when solves or sweeps die."""

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from volume import for_each

import ddlopt
from ddlopt.analysis.bench import Store, Sweep, plan
from ddlopt.analysis.bench.processes import isolated
from ddlopt.analysis.bench.tasks import matching
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits

TINY = "topology/tiny-n4-d2"
DDLOPT = Path(sys.executable).with_name("ddlopt")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def done(tasks, store, **options):
    return [finished.run for finished in Sweep(tasks, store, **options).run()]


def test_results_are_those_of_solving_one_by_one(store):
    tasks = plan([TINY, "compression/sfb-random-n60"], ["topology-finder", "exact", "tag"], [3], Limits(300.0))
    runs = {run["key"]: run for run in done(tasks, store, jobs=2)}
    assert set(runs) == {task.key for task in tasks}
    assert len(tasks) == 4
    for task in tasks:
        run, alone = runs[task.key], catalogue.method(task.method, task.family).solve(task.load(), Limits(), 3)
        assert run["status"] == str(alone.status)
        # A linear program may end in another vertex or digit in another process.
        assert (run["objective"], run["bound"]) == pytest.approx((alone.objective, alone.bound), rel=1e-9)
        assert run["checked"]
        assert run["wall_s"] >= run["answer_s"] >= run["runtime_s"] > 0
        assert run["peak_memory_bytes"] > 10e6
    stored = {run["key"]: run for run in store.runs(solutions=True)}
    for task in tasks:
        assert stored[task.key]["objective"] == runs[task.key]["objective"]
        kind = ddlopt.models.catalogue.family(task.family).solution
        again = ddlopt.check(task.instance, kind.from_data(stored[task.key]["solution"]))
        assert float(again.objective) == pytest.approx(runs[task.key]["objective"], rel=1e-12)


def test_nothing_is_done_twice(store):
    tasks = plan([TINY], ["topology-finder", "expander"], [0, 1], Limits(30.0))
    assert len(done(tasks[:3], store)) == 3
    assert [run["key"] for run in done(tasks, store)] == [tasks[3].key]
    assert done(tasks, store) == []


@for_each(
    "other",
    [
        {"seeds": [1]},
        {"limits": Limits(31.0)},
        {"limits": Limits(30.0, gap=1e-3)},
        {"methods": ["link-exchange:effort=2"]},
        {"names": ["topology/tiny-n4-d2-duplex"]},
        {"memory_bytes": 10**10},
    ],
)
def test_keys_tell_apart_what_may_change_an_outcome(other):
    usual = {"names": [TINY], "methods": ["link-exchange"], "seeds": [0], "limits": Limits(30.0)}
    first, same, changed = (plan(**options)[0].key for options in (usual, usual, usual | other))
    assert first == same
    assert first != changed


@pytest.mark.slow
def test_keys_are_the_same_in_every_process():
    names = ["topology/tiny-n4-d2", "scheduling/tiny-gangs", "compression/sfb-random-n60"]
    code = (
        "from ddlopt.analysis.bench import plan; from ddlopt.solvers.contracts import Limits;"
        f"print(*(task.key for task in plan({names}, ['auto', 'all-exact', 'all-heuristics'], [0], Limits(1.0))))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert there == [task.key for task in plan(names, ["auto", "all-exact", "all-heuristics"], [0], Limits(1.0))]
    assert len(there) > 20


def test_a_file_has_the_key_of_the_library_instance(tmp_path):
    file = tmp_path / "own.json"
    file.write_text(ddlopt.load(TINY).to_json())
    keys = [plan([name], ["expander"], [0], Limits(1.0))[0].key for name in (TINY, str(file))]
    assert keys[0] == keys[1]


def test_a_file_is_solved_where_it_is_not(tmp_path, store):
    file = tmp_path / "own.json"
    file.write_text(ddlopt.load(TINY).to_json())
    tasks = plan(matching([str(file)]), ["topology-finder"], [0], Limits(30.0))
    file.unlink()
    assert [run["objective"] for run in done(tasks, store)] == [12.0]


def test_what_dies_is_a_result_too(store, odd_methods, monkeypatch):
    monkeypatch.setattr(isolated, "GRACE", (0.0, 1.0))
    tasks = plan([TINY], ["crash", "hang", "hog", "topology-finder"], [0], Limits(1.0), memory_bytes=16 << 30)
    runs = {run["method"]: run for run in done(tasks, store, jobs=2)}
    assert {name: run["status"] for name, run in runs.items()} == {
        "crash": "crashed",
        "hang": "killed",
        "hog": "out_of_memory",
        "topology-finder": "feasible",
    }
    assert runs["crash"]["message"] == "the process ended by SIGSEGV"
    assert "within its limit of 1 s" in runs["hang"]["message"]
    # Nobody has checked what a method says that gives no result.
    assert (runs["hang"]["trace"], runs["hang"]["bound"]) == ([], None)
    assert runs["hang"]["details"] == {"claimed_objective": 17.0}
    assert runs["hog"]["message"] == "needs more than 17179869184 bytes"


def test_forgotten_runs_are_done_again(store, odd_methods):
    tasks = plan([TINY], ["crash", "topology-finder"], [0], Limits(5.0))
    assert len(done(tasks, store)) == 2
    assert store.forget(["crashed", "error"]) == 1
    assert [run["method"] for run in done(tasks, store)] == ["crash"]


def test_methods_of_other_packages_are_listed(odd_methods):
    assert ("slow", "heuristic", "Takes its time") in ddlopt.describe("topology")
    result = ddlopt.compare([TINY], ["slow"])[0]
    assert result.checked
    assert result.objective == 12


BENCH = ("bench", "topology/tiny-n4-d2*", "--methods", "slow:seconds=0.5", "--seeds", "0-2", "--jobs", "2", "--store")
SOLVES = 6


def bench(path, *more):
    words = [DDLOPT, *BENCH, path, *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows(path):
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT key, rowid FROM runs").fetchall())
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


def wait_for(condition):
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_killed_goes_on(tmp_path, odd_methods, call, how):
    path = tmp_path / "results.sqlite"
    first = bench(path)
    wait_for(lambda: path.exists() and len(rows(path)) >= 2)
    first.send_signal(how)
    _, err = first.communicate()
    kept = rows(path)
    assert 2 <= len(kept) < SOLVES
    if how == signal.SIGINT:
        assert first.returncode == 130
        assert "interrupted; " in err
    code, out, _ = call(*BENCH, path)
    assert code == 0
    assert f"now: {SOLVES - len(kept)} feasible" in out
    now = rows(path)
    assert len(now) == SOLVES
    assert kept.items() <= now.items()


@pytest.mark.slow
def test_solves_do_not_run_the_script_that_sweeps(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "from ddlopt.analysis.bench import Store, Sweep, plan\n"
        "from ddlopt.solvers.contracts import Limits\n"
        "print('once', __name__, __file__)\n"
        f"tasks = plan(['{TINY}'], ['expander', 'ocs-greedy'], [0], Limits(30.0))\n"
        f"with Store('{tmp_path / 'results.sqlite'}') as store:\n"
        "    print(*(finished.run['status'] for finished in Sweep(tasks, store).run()), __file__)\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"once __main__ {script}\nfeasible feasible {script}\n", "")


def processes_with(setting):
    """Ids of the processes that were started with a setting in their environment."""
    found = set()
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and setting.encode() in (place / "environ").read_bytes().split(b"\0"):
                found.add(int(place.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_no_solve_outlives_its_sweep(tmp_path, odd_methods, monkeypatch):
    mark = f"SWEEP={tmp_path}"
    monkeypatch.setenv(*mark.split("="))
    sweep = bench(tmp_path / "results.sqlite", "--methods", "slow:seconds=1000", "--time-limit", "1000")
    wait_for(lambda: len(processes_with(mark)) >= 5)  # the sweep, two of multiprocessing's, two solves
    sweep.kill()
    sweep.wait()
    wait_for(lambda: not processes_with(mark))
    sweep.communicate()


def test_two_sweeps_on_one_store(tmp_path, odd_methods, call):
    path = tmp_path / "results.sqlite"
    with Store(path):
        code, _, err = call(*BENCH, path)
        assert code == 2
        assert err == f"ddlopt: {path} is in use by another sweep; wait for it, or give another store\n"
    # Reading is always possible.
    with Store(path), Store(path, write=False) as reading:
        assert list(reading.runs()) == []
