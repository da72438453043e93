"""Kill -9 of ``ddlopt bench`` at random moments while rows are being written: no row is lost, half or double.

Solves are answered from a table, so that rows come as fast as the store takes them, and a kill nearly always meets one
that is being written. After each kill the store is opened and read; once all rows are there a new store is begun.
"""

import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.bench import Store, sweep, tasks
from ddlopt.analysis.bench.processes import isolated
from ddlopt.analysis.bench.rows import Finished, run_row
from ddlopt.cli import run
from ddlopt.solvers.contracts import Limits

INSTANCE, METHOD, SEEDS = "topology/tiny-n4-d2", "topology-finder", 150
WORDS = ["bench", INSTANCE, "--methods", METHOD, "--seeds", f"0-{SEEDS - 1}", "--jobs", "2"]
LONGEST_S = 0.06
"""A kill comes up to so long after the first row."""
AT_ONCE = 0.1
"""Part of the kills that come at any moment, before the first row too."""


def kills(asked):
    """What came of ``asked.times`` kills."""
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        counts = killing(asked.times, asked.seed, Path(folder))
    yield ", ".join(f"{count} {what}" for what, count in counts.items())


def killing(times: int, seed: int, folder: Path) -> Counter[str]:
    """Kill a number of sweeps, and count what came of them.

    Raises
    ------
    AssertionError
        If a store cannot be opened, or has a row that is none, or lost one.
    """
    rng, counts = random.Random(seed), Counter[str]()
    outcome = answer()
    with contextlib.redirect_stdout(io.StringIO()):  # what this imports no sweep has to
        run([*WORDS, "--store", str(folder / "none"), "--dry-run"])
    planned = tasks.plan([INSTANCE], [METHOD], range(SEEDS), Limits(60.0))
    assert len({task.key for task in planned}) == SEEDS
    tasks.plan = lambda *_: planned  # once for all sweeps, which come to their rows the sooner
    store, known = folder / "0.sqlite", set[str]()
    while counts["kills"] < times:
        told, rows = killed(store, outcome, rng), checked(store, outcome)
        assert told <= rows, f"{len(told - rows)} rows were told to be stored and are not there"
        assert known <= rows, f"{len(known - rows)} rows are gone"
        counts["kills"] += 1
        counts["in which rows came"] += bool(rows - known)
        counts["of a row that was stored but not yet told"] += bool(rows - known - told)
        counts["rows"] += len(rows - known)
        known = rows
        if len(rows) == SEEDS:
            counts["stores"] += 1
            for ending in ("", "-wal", "-shm", ".lock"):
                Path(f"{store}{ending}").unlink(missing_ok=True)
            store, known = folder / f"{counts['stores']}.sqlite", set()
    child = os.fork()
    if child == 0:
        os._exit(bench(store, outcome, None))
    assert os.waitpid(child, 0)[1] == 0, "the last sweep did not end well"
    assert not [each for each in folder.iterdir() if each != store], "something was left behind"
    assert len(checked(store, outcome)) == SEEDS, "the last sweep did not do all that was left"
    counts["resumed to the end"] += 1
    return counts


def answer() -> dict[str, object]:
    """A solve's outcome, as its process would have sent it."""
    data = ddlopt.solve(INSTANCE, METHOD).to_data(with_solution=True)
    outcome = {name: data[name] for name in (*isolated._OF_RESULT, "details")}
    return json.loads(json.dumps(outcome)) | {"answer_s": 0.1, "peak_memory_bytes": 10**8}


def killed(store: Path, outcome: dict[str, object], rng: random.Random) -> set[str]:
    """Keys that a sweep told to have stored until it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(bench(store, outcome, writing))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = b"" if rng.random() < AT_ONCE else pipe.readline()
        time.sleep(rng.random() ** 2 * LONGEST_S)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = (first + pipe.read()).decode().split("\n")
    return set(lines[:-1])  # the last one may be half


def bench(store: Path, outcome: dict[str, object], told: int | None) -> int:
    """The command, with solves from a table, that tells the keys of stored rows; its exit code."""
    add = Store.add

    def telling(self, row, instance):
        add(self, row, instance)
        if told is not None:
            os.write(told, f"{row['key']}\n".encode())

    def answered(task, described, stopped=None):
        return Finished(run_row(task, described, dict(outcome), 0.1), dict(described))

    Store.add, sweep.solve_isolated = telling, answered
    sys.stdout = sys.stderr = io.StringIO()
    return run([*WORDS, "--store", str(store)])


def checked(path: Path, outcome: dict[str, object]) -> set[str]:
    """The keys of a store, all of whose rows are whole."""
    if not path.exists():
        return set()
    with Store(path, write=False) as store:
        rows = list(store.runs(solutions=True))
        assert not store.skipped, store.skipped
    for row in rows:
        assert all(row[name] == outcome[name] for name in outcome), row["key"]
    keys, seeds = {row["key"] for row in rows}, {row["seed"] for row in rows}
    assert len(keys) == len(seeds) == len(rows), "a row is there twice"
    return keys


BENCH = Benchmark(
    kills,
    times=Option(200, "how many kills", quick=10),
    seed=Option(0),
    folder=Option(None, "where stores are written; a temporary folder by default", type=Path),
)
