"""Public instances of strategy selection: cost, bound, seconds and peak memory of a method.

``--folder`` has B.json.gz and so on, as google/iopddl has them in benchmarks/; by default it is ``iopddl`` in the
folder that DDLOPT_SHARED_DATA names.
"""

from pathlib import Path

from benchmarks.harness import Benchmark, Option, apart, clocked, data
from ddlopt.instances.readers.graphs.iopddl import read_iopddl
from ddlopt.solvers.contracts import Limits

BEST_KNOWN = {
    "example": 445,
    "B": 532_843,
    "G": 217_039,
    "V": 1_617_084,
    "S": 1_511_377_982,
    "A": 6_548_641_531,
    "M": 49_928_460_991,
    "C": 84_102_445_260,
}
"""Costs that others found."""


def measure(file: Path, name: str, time_limit: float) -> dict[str, object]:
    """One solve in this process."""
    instance = read_iopddl(file)
    result, spent = clocked(name, instance, Limits(time_s=time_limit, gap=0.0))
    return {
        "nodes / edges": f"{instance.size} / {len(instance.edges)}",
        "cost": result.objective,
        "bound": result.bound,
        "CPU s": spent.processor_s,
        "wall s": result.runtime_s,
    }


def costs(asked):
    """A row for each instance, each solved in a process of its own."""
    folder = asked.folder or data("iopddl")
    for name in asked.names:
        found, spent = apart(measure, next(folder.glob(f"**/*{name}.json*")), asked.method, asked.time_limit)
        best, cost = BEST_KNOWN.get(name), found["cost"]
        away = "" if best is None or cost is None else f" ({100 * (cost / best - 1):+.2f} %)"
        yield {
            "instance": name, "nodes / edges": found["nodes / edges"], "best known": best, "cost": f"{cost}{away}",
            "bound": str(found["bound"]), "CPU s": f"{found['CPU s']:.1f}", "wall s": f"{found['wall s']:.1f}",
            "peak GB": f"{spent.peak_bytes / 1e9:.2f}",
        }  # fmt: skip


BENCH = Benchmark(
    costs,
    names=Option(list(BEST_KNOWN)[1:], "of instances", quick=["example"]),
    folder=Option(None, "where the files are", type=Path),
    time_limit=Option(600.0, quick=2.0),
    method=Option("exact", "of the catalogue"),
)
