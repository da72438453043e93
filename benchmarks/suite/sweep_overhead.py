"""What part of a sweep's time is spent outside of the solves.

    python benchmarks/sweep_overhead.py [SUITE …] [--jobs 2] [--time-limit 10] [--keep results.sqlite]
    python benchmarks/sweep_overhead.py --store results.sqlite --jobs 1

The overhead is the part of jobs × wall-clock seconds of the command in which no method works on its answer: planning,
the start of the command, of the server that imports everything once and of every process, loading the instance,
sending the result, the store, and places without a solve at the end. What a method takes is told in two parts: its own
runtime, from the call to the answer, and the independent check of the answer with the bound of the instance that
certifies it. Reading compiled kernels from Numba's cache counts for whatever needs them first. Runs that do not tell
the second part apart, of older versions and without a result, have their runtime only.

With ``--store`` nothing is run: of a sweep by ``--jobs`` jobs that was neither interrupted nor repeated, the wall clock
is that from the start of the first solve to the end of the last.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.export import frame

TARGET = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", default=["quick"], help="suites or patterns; quick by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="solves at a time, by default one a core")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds for each solve")
    parser.add_argument("--keep", type=Path, help="keep the results in this store, which must not be there yet")
    parser.add_argument("--store", type=Path, help="measure a sweep that was done")
    asked = parser.parse_args()
    if asked.store:
        runs = read(asked.store)
        ends = pd.to_datetime(runs["finished"])
        began = (ends - pd.to_timedelta(runs["wall_s"], unit="s")).min()
        table(runs, (ends.max() - began).total_seconds(), asked.jobs)
        return
    if asked.keep and asked.keep.exists():
        raise SystemExit(f"{asked.keep} is there already: what is in it would not be measured")
    with tempfile.TemporaryDirectory() as folder:
        store = asked.keep or Path(folder) / "results.sqlite"
        words = ["bench", *asked.suite, "--jobs", str(asked.jobs), "--time-limit", str(asked.time_limit)]
        began = time.perf_counter()
        code = "import sys; from ddlopt.cli import run; sys.exit(run(sys.argv[1:]))"
        subprocess.run([sys.executable, "-I", "-c", code, *words, "--store", str(store)], check=True)
        table(read(store), time.perf_counter() - began, asked.jobs)


def read(path: Path) -> pd.DataFrame:
    """The runs of a store."""
    with Store(path, write=False) as store:
        return frame(store)


def table(runs: pd.DataFrame, wall_s: float, jobs: int) -> None:
    """Print where the time went."""
    total_s, solved_s = jobs * wall_s, runs["runtime_s"].sum()
    answered_s = runs["answer_s"].astype(float).fillna(runs["runtime_s"])
    beside_s = runs["wall_s"] - answered_s
    print(f"{len(runs)} solves, {jobs} at a time, load of the machine now {os.getloadavg()[0]:.1f}")
    rows = {
        "jobs × wall clock": total_s,
        "solves' own runtimes": solved_s,
        "checks of answers and bounds of instances": answered_s.sum() - solved_s,
        "their processes besides": beside_s.sum(),
        "the rest: start, planning, store, idle places": total_s - runs["wall_s"].sum(),
    }
    for name, seconds in rows.items():
        print(f"{name:46} {seconds:9.1f} s {seconds / total_s:8.2%}")
    over_s = total_s - answered_s.sum()
    print(f"{'a process besides, median':46} {beside_s.median():9.3f} s")
    print(f"{'overhead':46} {over_s:9.1f} s {over_s / total_s:8.2%} (target {TARGET:.0%} on default)")


if __name__ == "__main__":
    main()
