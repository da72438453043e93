"""Whether every method keeps its limits on the largest bundled instance that it covers: time and memory.

    python benchmarks/limits.py [FAMILY|FAMILY/METHOD…] [--limit 5] [--keep limits.jsonl] [--again]
    python benchmarks/limits.py --instance philly.json scheduling/lp-guided scheduling/gadget --limit 60

Each solve is a process of its own. Its kernels are compiled and its instance is read before; the time limit counts from
then on until the result has been checked. A solve may take its limit, a tenth of it and a second, and 2 GiB. What
comes after the limit is told in processor seconds, so that a busy machine changes nothing: those that the process and
its children spend between the end of the limit and the result. Every row is kept as soon as it is there: the same
command goes on where it was interrupted; ``--again`` repeats the rows that were over, by the names given.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from ddlopt.instances import index

TIME_PART, TIME_S, MEMORY_BYTES = 0.1, 1.0, 2 * 2**30
"""What a solve may take beyond its limit: a part of it, and seconds; and the memory that it may have."""
_PATIENCE = 6.0, 120.0
"""Part of the limit, and seconds, after which a solve is ended."""
_POLL_S = 0.02
_ONE_THREAD = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
"""As in a sweep: threads of linear algebra that wait for each other would count as work."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="families, or FAMILY/METHOD; all by default")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for each solve")
    parser.add_argument("--keep", type=Path, default=Path("limits.jsonl"), help="where rows are kept")
    parser.add_argument("--instance", help="this one, by name or file, in place of the largest")
    parser.add_argument("--again", action="store_true", help="repeat rows that were over")
    parser.add_argument("--over", action="store_true", help="only print rows that were over")
    parser.add_argument("--solve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve:
        solve(*options.solve)
        return
    options.keep.parent.mkdir(parents=True, exist_ok=True)
    known = read(options.keep)
    shown = []
    for family, method, instance in pairs(options.names, options.instance):
        key = f"{family}/{method}", instance, options.limit
        if key not in known or (options.again and over(known[key])):
            known[key] = measured(family, method, instance, options.limit)
            with options.keep.open("a") as file:
                file.write(json.dumps(known[key]) + "\n")
            print(cells(known[key]), file=sys.stderr, flush=True)
        shown.append(known[key])
    print(table([row for row in shown if not options.over or over(row)]))


def pairs(names: list[str], instance: str | None) -> list[tuple[str, str, str]]:
    """(family, method, instance) that are asked for: of each problem the largest instance that a method covers."""
    if instance is not None:
        return [(*name.split("/"), instance) for name in names]  # type: ignore[misc]
    found: dict[tuple[str, str, str], index.Listed] = {}
    for listed in index.read().instances.values():
        for method in listed.methods:
            if names and not {listed.family, f"{listed.family}/{method}"} & set(names):
                continue
            key = listed.problem, listed.family, method
            if key not in found or weight(listed) > weight(found[key]):
                found[key] = listed
    return [(family, method, listed.name) for (_, family, method), listed in found.items()]


def weight(listed: index.Listed) -> tuple[int, int]:
    """The larger the more there is to solve: its size, then its file."""
    return listed.size, (index.FILE.parent / f"{listed.name}.json").stat().st_size


def read(file: Path) -> dict[tuple[str, str, float], dict[str, Any]]:
    """The rows kept so far, the latest of each."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {(row["method"], row["instance"], row["limit_s"]): row for row in rows}


def measured(family: str, method: str, instance: str, limit_s: float) -> dict[str, Any]:
    """One row, of a solve in a process of its own."""
    command = [sys.executable, __file__, "--solve", f"{family}/{method}", instance, str(limit_s)]
    environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    assert child.stdout is not None
    row: dict[str, Any] = {"method": f"{family}/{method}", "instance": instance, "limit_s": limit_s}
    if child.stdout.readline().strip() != "ready":
        return {**row, "status": f"crashed, {child.wait()}"}
    process, began, at_limit = psutil.Process(child.pid), time.perf_counter(), None
    while child.poll() is None and time.perf_counter() - began < _PATIENCE[0] * limit_s + _PATIENCE[1]:
        time.sleep(_POLL_S)
        if at_limit is None and time.perf_counter() - began >= limit_s:
            at_limit = processor_s(process)
    if child.poll() is None:
        os.killpg(child.pid, 9)
        child.wait()
        return {**row, "status": "killed", "after_s": time.perf_counter() - began - limit_s}
    text = child.stdout.read().strip().splitlines()
    if not text:
        return {**row, "status": f"crashed, {child.returncode}"}
    found = json.loads(text[-1])
    after = 0.0 if at_limit is None else max(0.0, found.pop("processor_s") - at_limit)
    return {**row, **found, "after_s": after}


def processor_s(process: psutil.Process) -> float:
    """Processor seconds that a process and its children have spent."""
    try:
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        mine = process.cpu_times()
        return sum(each.user + each.system for each in times) + mine.children_user + mine.children_system
    except psutil.Error:
        return 0.0


def solve(method: str, name: str, limit: str) -> None:
    """Solve here, and print what it took."""
    import ddlopt
    from ddlopt.analysis.compare import attempt
    from ddlopt.models.compilation import compile_kernels
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.contracts import Limits, kernels_of

    family, _, own = method.partition("/")
    instance, chosen = ddlopt.load(name), catalogue.method(own, family)
    compile_kernels(kernels_of(chosen, instance))
    print("ready", flush=True)
    began = time.perf_counter()
    result = attempt(instance, chosen, Limits(float(limit)))
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    row = {
        "status": str(result.status),
        "wall_s": time.perf_counter() - began,
        "runtime_s": result.runtime_s,
        "processor_s": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "memory_bytes": sum(usage.ru_maxrss for usage in usages) * 1024,
        "message": result.message[:200],
    }
    print(json.dumps(row), flush=True)


def over(row: dict[str, Any]) -> bool:
    """Whether a solve took more than it may."""
    late = row.get("after_s", 0.0) > TIME_PART * row["limit_s"] + TIME_S
    return late or row.get("memory_bytes", 0) > MEMORY_BYTES or row["status"].startswith(("crashed", "killed"))


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, with a line that counts."""
    if not rows:
        return "no rows"
    found = [cells(row) for row in rows]
    lines = [list(found[0]), ["---"] * len(found[0]), *(list(row.values()) for row in found)]
    count = sum(map(over, rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{count} of {len(rows)} solves over"


def cells(row: dict[str, Any]) -> dict[str, str]:
    """A row of the table."""

    def figure(name: str, unit: float = 1.0) -> str:
        return f"{row[name] / unit:.1f}" if name in row else ""

    return {
        "method": row["method"],
        "largest instance": Path(row["instance"]).name,
        "status": row["status"],
        "wall clock s": figure("wall_s"),
        "after the limit, processor s": figure("after_s"),
        "memory GB": figure("memory_bytes", 1e9),
        "": "over" if over(row) else "",
    }


if __name__ == "__main__":
    main()
