"""Partition of the published graphs: our methods beside the published ones, in one run.

``--folder`` is a checkout of msr-fiddle/dnn-partitioning, by default ``dnn-partitioning`` in the folder that
DDLOPT_SHARED_DATA names; ``--released`` the C++ built from it (``g++ -O3 throughput-dp/dp.cpp``). Milliseconds of the
objective, seconds of the whole solve, models and loads of files included on the C++ side only; ``*`` is a bound within
the class of plans that is searched. The published programs, by HiGHS as ours, run where they are not too large
(``--largest``).
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import Benchmark, Option, data, shown, solved, timed
from ddlopt.instances.readers.graphs.dnn_partitioning import read_dnn_partitioning
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.formulations.tarnawski_max_load import Tarnawski2020MaxLoad
from ddlopt.solvers.contracts import Result
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram
from ddlopt.solvers.deployment.partition.exact import Latency, MaxLoad
from ddlopt.solvers.deployment.partition.latency_search import LatencyGreedy, LatencySearch
from ddlopt.solvers.deployment.partition.linear import Linear, PipeDream
from ddlopt.solvers.deployment.partition.search import GraphCut, HeaviestFirst, LocalSearch, PartitionSearch
from ddlopt.solvers.exact import Exact


def graphs(asked, kind: str, **options) -> Iterator[tuple[str, Path, object]]:
    """Granularity and name, file and instance of the graphs of a kind, small files first."""
    folder = asked.folder or data("dnn-partitioning")
    wanted: Sequence[str] = asked.graphs or [""]
    files = list(folder.glob(f"{kind}-inputs/*/*.json")) or folder.glob("*.json")
    found = [each for each in files if any(part in str(each) for part in wanted)]
    for path in sorted(found, key=lambda each: each.stat().st_size)[: asked.most]:
        name = f"{path.parent.name.removesuffix('Graphs')} {path.stem}".lower()
        yield name, path, read_dnn_partitioning(path, **options)


def cells(label: str, result: Result | None) -> dict[str, str | None]:
    """Objective, bound and seconds."""
    headings = [f"{label}: ms", f"{label}: bound", f"{label}: s"]
    if result is None:
        return dict.fromkeys(headings)
    within = result.scope is not None and result.scope_bound is not None
    best = result.scope_bound if within else result.bound
    bound = None if best is None else f"{1e3 * best:.6f}{'*' if within else ''}"
    objective = shown(None if result.objective is None else 1e3 * result.objective, ".10f")
    return dict(zip(headings, (objective, bound, f"{result.runtime_s:.2f}"), strict=True))


def released(program: str, path: Path, time_limit: float) -> dict[str, str | None]:
    """What the released dynamic program finds, and how long it takes."""

    def run() -> subprocess.CompletedProcess[str]:
        with path.open() as graph:
            options = {"capture_output": True, "text": True, "timeout": time_limit, "check": False}
            return subprocess.run([program], stdin=graph, **options)

    try:
        done, spent = timed(run)
    except subprocess.TimeoutExpired:
        return {"released: ms": None, "released: s": f"> {time_limit:.0f}"}
    found = re.search(r'"maxLoad": ([0-9.e+-]+)', done.stdout)
    return {"released: ms": found and f"{float(found[1]):.10f}", "released: s": f"{spent.wall_s:.2f}"}


def contiguous(asked):
    """Contiguous throughput: the dynamic program over ideals, and the released one."""
    for name, path, instance in graphs(asked, "throughput", contiguous=True):
        result = solved(IdealProgram(), instance, asked.limits)
        row = {"graph": name, "ideals": result and f"{result.details['ideals']:.0f}", **cells("ours", result)}
        yield row | (released(asked.released, path, asked.released_limit) if asked.released else {})


def anywhere(asked):
    """Throughput anywhere: search and integer program, and the published program."""
    for name, _, instance in graphs(asked, "throughput"):
        plain = Exact("plain", "deployment", Tarnawski2020MaxLoad())
        theirs = solved(plain, instance, asked.limits) if len(instance.nodes) <= asked.largest else None
        yield {"graph": name, **cells("ours", solved(MaxLoad("highs"), instance, asked.limits)),
               **cells("published", theirs)}  # fmt: skip


def heuristics(asked):
    """Milliseconds (seconds); contiguous: linear, pipedream; anywhere: the others."""
    methods = (Linear(), PipeDream(), HeaviestFirst(), GraphCut(), LocalSearch(), PartitionSearch())
    for name, path, _ in graphs(asked, "throughput"):
        row = {"graph": name}
        for method in methods:
            instance = read_dnn_partitioning(path, contiguous=method.name in ("linear", "pipedream"))
            result = solved(method, instance, asked.limits)
            missing = result is None or result.objective is None
            row[method.name] = None if missing else f"{1e3 * result.objective:.4f} ({result.runtime_s:.2f})"
        yield row


def latencies(asked):
    """Latency: search and program over sets, search, and the published greedy and program."""
    for name, _, instance in graphs(asked, "latency", goal="latency"):
        methods = {"program": Latency("highs"), "search": LatencySearch(), "greedy": LatencyGreedy()}
        row = {"graph": name}
        for label, method in methods.items():
            row |= cells(label, solved(method, instance, asked.limits))
        plain = Exact("plain", "deployment", Tarnawski2020Latency())
        theirs = solved(plain, instance, asked.limits) if len(instance.nodes) <= asked.largest else None
        yield row | cells("published", theirs)


BENCH = Benchmark(
    contiguous, anywhere, heuristics, latencies,
    folder=Option(None, "checkout of msr-fiddle/dnn-partitioning", type=Path),
    released=Option(None, "the released dynamic program, built"),
    released_limit=Option(300.0, "seconds for it"),
    time_limit=Option(100.0, quick=1.0),
    largest=Option(250, "most nodes for the published programs", quick=20),
    graphs=Option([], "parts of names of files", type=str),
    most=Option(1000, "how many graphs, smallest first", quick=1),
)  # fmt: skip
