"""Partition of the published graphs: our methods beside the published ones, in one run.

    python benchmarks/partition.py FOLDER --released DP_EXE --time-limit 100

``FOLDER`` is a checkout of msr-fiddle/dnn-partitioning. Tables: contiguous throughput by the dynamic program over
ideals and, with ``--released``, by the released C++ built from the folder (``g++ -O3 throughput-dp/dp.cpp``);
non-contiguous throughput by our search and integer program and by the published program, both with HiGHS; latency
likewise, with the published greedy. Milliseconds of the objective, seconds of the whole solve, models and loads of
files included on the C++ side only. The published programs run where they are not too large (``--largest``).
"""

import argparse
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ddlopt.instances.readers.dnn_partitioning import read_dnn_partitioning
from ddlopt.models.deployment.latency_plain import PlainLatency
from ddlopt.models.deployment.max_load_plain import PlainMaxLoad
from ddlopt.models.deployment.partition import PartitionInstance
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.deployment.latency_search import LatencyGreedy, LatencySearch
from ddlopt.solvers.deployment.partition_dynamic import IdealProgram
from ddlopt.solvers.deployment.partition_exact import MaxLoad, latency
from ddlopt.solvers.deployment.partition_linear import Linear, PipeDream
from ddlopt.solvers.deployment.partition_search import GraphCut, HeaviestFirst, LocalSearch, PartitionSearch
from ddlopt.solvers.exact import Exact

TABLES = ("contiguous", "anywhere", "heuristics", "latency")


def files(folder: Path, kind: str, names: Sequence[str]) -> list[Path]:
    """Graphs of a kind, small files first."""
    found = [each for each in folder.glob(f"{kind}-inputs/*/*.json") if not names or any(n in str(each) for n in names)]
    return sorted(found, key=lambda each: each.stat().st_size)


def shown(path: Path) -> str:
    """Granularity and name."""
    return f"{path.parent.name.removesuffix('Graphs')} {path.stem}".lower()


def answered(method: Method, instance: PartitionInstance, time_limit: float, gap: float = 1e-4) -> Result | None:
    """The result; None where the method refuses."""
    if method.refuses(instance) is not None:
        return None
    return method.solve(instance, Limits(time_s=time_limit, gap=gap))


def cells(result: Result | None) -> str:
    """Objective, bound and seconds."""
    if result is None:
        return f"{'–':>16} {'–':>14} {'–':>8}"
    objective = "–" if result.objective is None else f"{1e3 * result.objective:.10f}"
    best = result.bound if result.scope is None or result.scope_bound is None else result.scope_bound
    bound = "–" if best is None else f"{1e3 * best:.6f}" + ("*" if result.scope_bound is not None else "")
    return f"{objective:>16} {bound:>14} {result.runtime_s:8.2f}"


def released(program: str, path: Path, time_limit: float) -> str:
    """What the released dynamic program finds, and how long it takes."""
    began = time.perf_counter()
    try:
        with path.open() as graph:
            run = subprocess.run(
                [program], stdin=graph, capture_output=True, text=True, timeout=time_limit, check=False
            )
    except subprocess.TimeoutExpired:
        return f"{'–':>16} > {time_limit:6.0f}"
    found = re.search(r'"maxLoad": ([0-9.e+-]+)', run.stdout)
    return f"{float(found[1]) if found else float('nan'):16.10f} {time.perf_counter() - began:8.2f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--released", help="the released dynamic program, built")
    parser.add_argument("--released-limit", type=float, default=300.0)
    parser.add_argument("--time-limit", type=float, default=100.0)
    parser.add_argument("--largest", type=int, default=250, help="most nodes for the published programs")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--graphs", nargs="*", default=(), help="parts of names of files")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, 1 thread, {options.time_limit:g} s each")
    warm = files(options.folder, "throughput", ("bert24_inference",))[0]
    for kind in ("throughput", "latency"):  # compile
        for contiguous in (True, False):
            instance = read_dnn_partitioning(warm, goal=kind, contiguous=contiguous and kind == "throughput")
            for method in (
                Linear(),
                IdealProgram(),
                HeaviestFirst(),
                LocalSearch(),
                PartitionSearch(),
                LatencySearch(),
            ):
                answered(method, instance, 60.0)
            if kind == "latency":
                answered(latency("highs"), instance, 60.0)
    if "contiguous" in options.tables:
        print("\ncontiguous: ideals | dynamic program: ms, bound, s | released C++: ms, s")
        for path in files(options.folder, "throughput", options.graphs):
            instance = read_dnn_partitioning(path, contiguous=True)
            result = answered(IdealProgram(), instance, options.time_limit)
            ideals = "–" if result is None else f"{result.details['ideals']:.0f}"
            other = released(options.released, path, options.released_limit) if options.released else ""
            print(f"{shown(path):28} {ideals:>7} | {cells(result)} | {other}", flush=True)
    if "anywhere" in options.tables:
        print("\nanywhere: search and integer program: ms, bound, s | published program: ms, bound, s")
        for path in files(options.folder, "throughput", options.graphs):
            instance = read_dnn_partitioning(path)
            plain = Exact("plain", "deployment", PlainMaxLoad()) if len(instance.nodes) <= options.largest else None
            ours = answered(MaxLoad("highs"), instance, options.time_limit)
            theirs = None if plain is None else answered(plain, instance, options.time_limit)
            print(f"{shown(path):28} | {cells(ours)} | {cells(theirs)}", flush=True)
    if "heuristics" in options.tables:
        print("\nheuristics: ms and s; contiguous: linear, pipedream; anywhere: the others")
        for path in files(options.folder, "throughput", options.graphs):
            row = []
            for method in (Linear(), PipeDream(), HeaviestFirst(), GraphCut(), LocalSearch(), PartitionSearch()):
                instance = read_dnn_partitioning(path, contiguous=method.name in ("linear", "pipedream"))
                result = answered(method, instance, options.time_limit)
                value = None if result is None or result.objective is None else f"{1e3 * result.objective:.4f}"
                row.append(f"{value or '–':>10} {result.runtime_s if result else 0:6.2f}")
            print(f"{shown(path):28} | {' | '.join(row)}", flush=True)
    if "latency" in options.tables:
        print("\nlatency: search and program over sets: ms, bound, s | search | published greedy | published program")
        for path in files(options.folder, "latency", options.graphs):
            instance = read_dnn_partitioning(path, goal="latency")
            found = [answered(each, instance, options.time_limit) for each in (latency("highs"), LatencySearch())]
            greedy = answered(LatencyGreedy(), instance, options.time_limit)
            plain = Exact("plain", "deployment", PlainLatency())
            large = len(instance.nodes) > options.largest
            found += [greedy, None if large else answered(plain, instance, options.time_limit)]
            print(f"{shown(path):28} | {' | '.join(map(cells, found))}", flush=True)


if __name__ == "__main__":
    main()
