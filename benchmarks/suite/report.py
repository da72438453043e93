"""Seconds and peak memory of a report on a store of 100 000 made-up runs.

The runs are drawn from a seed; some of the instances are bundled ones with their best known solutions, so that pictures
are drawn too.
"""

import json
import sqlite3
import tempfile
import zlib
from pathlib import Path

import numpy as np

from benchmarks.harness import DDLOPT, Benchmark, Option, command
from ddlopt import instances
from ddlopt.analysis.bench import Store

FAMILIES = ("topology", "scheduling", "compression", "codesign")
LIMIT_S = 60.0
STATUSES = ("optimal", "feasible", "error", "crashed", "killed", "out_of_memory", "no_solution")


def report(asked):
    """Of ``ddlopt report``, in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        path = folder / "made.sqlite"
        path.unlink(missing_ok=True)
        runs = make(path, asked.instances, asked.methods, asked.seeds, asked.bundled)
        spent = command([*DDLOPT, "report", path, "-o", folder / "report"])
        written = [file.stat().st_size for file in (folder / "report").rglob("*") if file.is_file()]
        yield {
            "runs": runs, "store MB": f"{path.stat().st_size / 1e6:.0f}", "seconds": f"{spent.wall_s:.1f}",
            "CPU s": f"{spent.processor_s:.1f}", "peak MB": f"{spent.peak_bytes / 1e6:.0f}",
            "report MB": f"{sum(written) / 1e6:.0f}", "files": len(written),
        }  # fmt: skip


def make(path: Path, count: int, methods: int, seeds: int, bundled: int) -> int:
    """Write the store; how many runs it has."""
    rng = np.random.default_rng(0)
    with Store(path):
        pass  # an empty store of the right version
    connection = sqlite3.connect(path)
    known = [name for name in instances.names() if instances.best(name) is not None][:bundled]
    quality = {family: np.sort(rng.gamma(1.0, 0.15, methods)) for family in FAMILIES}
    total = 0
    for place in range(count):
        row, solution = instance_row(rng, place, known)
        insert(connection, "instances", [row])
        runs = [
            run_row(rng, row, method, seed, float(quality[row["family"]][method]), solution)
            for method in range(methods)
            for seed in range(seeds)
        ]
        insert(connection, "runs", runs)
        total += len(runs)
    connection.commit()
    connection.close()
    return total


def instance_row(rng: np.random.Generator, place: int, known: list[str]) -> tuple[dict[str, object], bytes | None]:
    """An instance and, of a bundled one, its best known solution."""
    if place < len(known):
        instance, best = instances.load(known[place]), instances.best(known[place])
        assert best is not None
        names = {"digest": instance.digest, "name": instance.name, "family": instance.family, "sense": instance.sense}
        solution = zlib.compress(best.to_json(indent=None).encode())
        unit = instance.objective_unit
    else:
        family = FAMILIES[place % len(FAMILIES)]
        sense = "maximize" if family == "scheduling" else "minimize"
        names = {"digest": f"{place:064x}", "name": f"made-up-{place}", "family": family, "sense": sense}
        solution, unit = None, "" if sense == "maximize" else "s"
    best_objective = float(rng.lognormal(2.0, 2.0))
    more = {
        "unit": unit,
        "sizes": json.dumps({"n": 8 + place % 56}),
        "source": "made up",
        "best_objective": best_objective,
    }
    return names | more, solution


def run_row(
    rng: np.random.Generator, row: dict[str, object], method: int, seed: int, gap: float, solution: bytes | None
) -> dict[str, object]:
    """A run: a trace that falls to a gap about the method's own, or a failure."""
    best, maximise = float(str(row["best_objective"])), row["sense"] == "maximize"
    status = STATUSES[int(rng.choice(len(STATUSES), p=[0.2, 0.72, 0.02, 0.01, 0.02, 0.01, 0.02]))]
    answered = status in STATUSES[:2]
    final = 0.0 if status == "optimal" else float(gap * rng.gamma(4.0, 0.25))
    runtime_s = float(min(LIMIT_S, rng.lognormal(method / 5 - 1, 1.0)))
    points = int(rng.integers(1, 16))
    gaps = final + np.sort(rng.exponential(0.3, points))[::-1]
    times = np.sort(rng.random(points)) * runtime_s

    def objective(distance: float) -> float:
        return best / (1 + distance) if maximise else best * (1 + distance)

    bound = best * (1.05 if maximise else 0.95) if status != "optimal" else best
    trace = [[float(t), objective(float(g)), bound] for t, g in zip(times, gaps, strict=True)] if answered else []
    value = objective(final) if answered else None
    return {
        "key": f"{row['digest']}-{method}-{seed}", "instance_digest": row["digest"], "instance": row["name"],
        "family": row["family"], "method": f"method-{method:02d}", "options": json.dumps({"effort": method}),
        "solver": "", "seed": seed, "time_limit_s": LIMIT_S, "gap_limit": 1e-4, "threads": 1,
        "memory_limit_bytes": None, "status": status, "objective": value, "bound": bound, "gap": None,
        "checked": int(answered), "scope": None, "scope_bound": None, "runtime_s": runtime_s, "wall_s": runtime_s + 0.3,
        "peak_memory_bytes": int(rng.integers(2e8, 9e8)), "message": "" if answered else f"ended: {status}",
        "host": f"node-{seed % 3}", "finished": f"2026-01-{1 + seed:02d}T00:00:00+00:00",
        "versions": json.dumps({"ddlopt": "0.1.0", "numpy": np.__version__}), "details": "{}",
        "trace": json.dumps(trace), "solution": solution if answered else None,
    }  # fmt: skip


def insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    places = ", ".join(f":{name}" for name in rows[0])
    connection.executemany(f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({places})", rows)


BENCH = Benchmark(
    report,
    instances=Option(500, "how many", quick=5),
    methods=Option(20, "how many", quick=2),
    seeds=Option(10, quick=1),
    bundled=Option(40, "how many of the instances are bundled ones", quick=2),
    keep=Option(None, "keep the store and the report in this folder", type=Path),
)
