"""What methods by default leave open on instances that nobody has seen: ten of every problem, drawn from a seed.

    python benchmarks suite/drawn                    # the day's date as seed
    python benchmarks suite/drawn 20261127 --only deployment/plan gossip/matchings

Kinds and ranges of sizes are those of ``ddlopt.instances.drawn``. The gap is the certified one, between the checked
solution and the best bound; what has no bound or no solution has a gap of 100 %, unless it is proven that there is
none. After each larger change this is run with the date as seed, so that a method that is only good at a bundled name
shows. The aim after a minute: the median 0, nine of ten below 1 %, the worst below 10 %.
"""

import datetime
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import plan
from ddlopt.instances import drawn
from ddlopt.models.catalogue import problems
from ddlopt.solvers.contracts import Limits, Status

PROVEN = 1e-4
"""The gap at which a search may stop."""


def gaps(asked):
    """Certified gap by problem: how many are proven, the median, the ninth of ten, the worst and which it is."""
    yield f"Seed {asked.seed}: {asked.time_limit:g} s a solve, {asked.jobs} at a time."
    everything: list[float] = []
    for path in asked.only or problems():
        left = dict(left_open(drawn.names(f"drawn:{asked.seed}/{path}")[: asked.count], asked))
        everything += left.values()
        worst = max(left, key=left.__getitem__)
        yield row(path, left.values()) | {"which": worst.rpartition("/")[2] if left[worst] > PROVEN else "–"}
    yield row("all", everything) | {"which": "–"}


def left_open(names: Iterable[str], asked) -> Iterator[tuple[str, float]]:
    """The gap of every instance."""
    with tempfile.TemporaryDirectory() as folder, Store(asked.keep or Path(folder) / "r.sqlite") as store:
        tasks = {task.key: task for task in plan(names, ["auto"], [0], Limits(asked.time_limit, PROVEN))}
        for _ in Sweep(list(tasks.values()), store, asked.jobs).run():
            pass
        for found in store.rows(["key", "gap", "status"]):
            if found["key"] in tasks:
                gap = 0.0 if found["status"] == Status.INFEASIBLE else found["gap"]
                yield tasks[found["key"]].instance, 1.0 if gap is None else gap


def row(name: str, left: Iterable[float]) -> dict[str, str]:
    """What a table says of some gaps."""
    ordered = sorted(left)
    return {
        "problem": name,
        "drawn": str(len(ordered)),
        "proven": str(sum(gap <= PROVEN for gap in ordered)),
        "median": f"{statistics.median(ordered):.2%}",
        "9 of 10": f"{ordered[-(-9 * len(ordered) // 10) - 1]:.2%}",
        "worst": f"{ordered[-1]:.2%}",
    }


BENCH = Benchmark(
    gaps,
    in_all=False,
    seed=Option(int(f"{datetime.date.today():%Y%m%d}"), "of what is drawn", quick=7, type=int, positional=True),
    only=Option([], "problems, such as deployment/plan; all by default", quick=["compression/sfb"], type=str),
    count=Option(drawn.COUNT, "instances of each problem", quick=2),
    time_limit=Option(60.0, quick=1.0),
    jobs=Option(1, "solves at a time"),
    keep=Option(None, "keep the results in this store; the same command goes on", type=Path),
)
