"""What part of a sweep's time is spent outside of the solves.

The overhead is the part of jobs × wall-clock seconds of the command in which no method works on its answer: planning,
the start of the command, of the server that imports everything once and of every process, loading the instance,
sending the result, the store, and places without a solve at the end. What a method takes is told in two parts: its own
runtime, from the call to the answer, and the independent check of the answer with the bound of the instance that
certifies it. Reading compiled kernels from Numba's cache counts for whatever needs them first. Runs that do not tell
the second part apart, of older versions and without a result, have their runtime only.

With ``--store`` nothing is run: of a sweep by ``--jobs`` jobs that was neither interrupted nor repeated, the wall clock
is that from the start of the first solve to the end of the last.
"""

import os
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.harness import DDLOPT, Benchmark, Option, command
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.export import frame

TARGET = 0.05
"""On the default suite."""


def overhead(asked):
    """Where the time went."""
    if asked.store:
        runs = read(asked.store)
        ends = pd.to_datetime(runs["finished"])
        began = (ends - pd.to_timedelta(runs["wall_s"], unit="s")).min()
        yield from parts(runs, (ends.max() - began).total_seconds(), asked.jobs)
        return
    if asked.keep and asked.keep.exists():
        raise SystemExit(f"{asked.keep} is there already: what is in it would not be measured")
    with tempfile.TemporaryDirectory() as folder:
        store = asked.keep or Path(folder) / "results.sqlite"
        limits = ["--jobs", asked.jobs, "--time-limit", asked.time_limit]
        spent = command([*DDLOPT, "bench", *asked.suite, *limits, "--store", store], quiet=False)
        yield from parts(read(store), spent.wall_s, asked.jobs)


def read(path: Path) -> pd.DataFrame:
    """The runs of a store."""
    with Store(path, write=False) as store:
        return frame(store)


def parts(runs: pd.DataFrame, wall_s: float, jobs: int):
    """Rows and what they are of."""
    total_s, solved_s = jobs * wall_s, runs["runtime_s"].sum()
    answered_s = runs["answer_s"].astype(float).fillna(runs["runtime_s"])
    beside_s = runs["wall_s"] - answered_s
    yield f"{len(runs)} solves, {jobs} at a time, load of the machine now {os.getloadavg()[0]:.1f}."
    rows = {
        "jobs × wall clock": total_s,
        "solves' own runtimes": solved_s,
        "checks of answers and bounds of instances": answered_s.sum() - solved_s,
        "their processes besides": beside_s.sum(),
        "the rest: start, planning, store, idle places": total_s - runs["wall_s"].sum(),
        "overhead": total_s - answered_s.sum(),
    }
    for name, seconds in rows.items():
        yield {"time": name, "s": f"{seconds:.1f}", "part": f"{seconds / total_s:.2%}"}
    yield f"A process besides takes {beside_s.median():.3f} s in the median; the target on default is {TARGET:.0%}."


BENCH = Benchmark(
    overhead,
    in_all=False,
    suite=Option(["quick"], "suites or patterns", quick=["topology/tiny-n4-d2"], positional=True),
    jobs=Option(os.cpu_count(), "solves at a time"),
    time_limit=Option(10.0, quick=1.0),
    keep=Option(None, "keep the results in this store, which must not be there yet", type=Path),
    store=Option(None, "measure a sweep that was done; nothing is run", type=Path),
)
