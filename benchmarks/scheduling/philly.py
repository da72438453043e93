"""Greedy scheduling of whole virtual clusters of the Philly trace, and of all of it: times, memory, certified gap.

    python benchmarks/philly.py                      # four virtual clusters, by recorded demand and half of it
    python benchmarks/philly.py --growth             # all 82 247 jobs, and shorter windows of them
    python benchmarks/philly.py --trace philly.csv --write docs/results

The job list is public (see ``ddlopt.instances.readers.philly``) but not part of the project; it is looked for under
``traces/philly.csv`` in the folder that ``DDLOPT_SHARED_DATA`` names. Every instance is solved in a process of its own,
so that the largest memory is its own. Times are wall-clock seconds of: reading; ``gadget`` (the exact greedy over
slots); its bound from the end state; the check; the bound by prices (Lagrangian), with which each result is merged.
"""

import argparse
import multiprocessing
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ddlopt.analysis import tables
from ddlopt.instances.readers.philly import read_philly
from ddlopt.models.catalogue import family
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gadget import Gadget

SHARED = Path(os.environ.get("DDLOPT_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CLUSTERS = ("103959", "ee9e8c", "0e4a51", "ed69ec")
WINDOWS_DAYS = (7.0, 14.0, 28.0, 56.0, None)
STAGES = ("read", "greedy", "end bound", "check", "price bound")


def measure(path: str, options: dict) -> dict[str, str]:
    """One row: solve an instance in this process and measure."""
    laps: list[float] = []

    def lap(work):
        began = time.perf_counter()
        found = work()
        laps.append(time.perf_counter() - began)
        return found

    instance = lap(lambda: read_philly(path, **options))
    method, kind = Gadget(), family("scheduling")
    clock = Clock(Limits(), None)
    schedule, _ = lap(lambda: method.answer(instance, 0, clock, None))
    at_end = lap(lambda: method.certificate(instance, schedule, clock))
    found = lap(lambda: kind.evaluate(instance, schedule))
    by_prices = lap(lambda: kind.bound(instance))
    if found.violations:
        raise SystemExit(f"{instance.name}: {found.violations[0]}")
    value = float(found.objective)
    return {
        "instance": instance.name,
        "jobs": str(len(instance.jobs)),
        "slots": str(instance.slots),
        "GPUs": str(8 * instance.server_count),
        "busy": f"{float(found.details['busy_part']):.0%}",
        "finished": str(int(found.details["finished_jobs"])),
        "utility": f"{value:.2f}",
        "gap by end state": tables.gap_text(max(0.0, at_end / value - 1)),
        "gap by prices": tables.gap_text(max(0.0, by_prices / value - 1)),
        **{f"{stage} s": f"{seconds:.2f}" for stage, seconds in zip(STAGES, laps, strict=True)},
        "all s": f"{sum(laps):.1f}",
        "memory MB": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    }


def tasks(options: argparse.Namespace) -> list[dict]:
    """Options of the reader for every row."""
    common = {"utility": options.utility, "slot_s": options.slot_s}
    if options.growth:
        return [{**common, "hours": None if days is None else 24 * days} for days in WINDOWS_DAYS]
    return [
        {**common, "virtual_cluster": cluster, "busy_quantile": quantile}
        for cluster in options.virtual_clusters
        for quantile in options.busy_quantiles
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, default=SHARED / "traces" / "philly.csv")
    parser.add_argument("--virtual-clusters", nargs="+", default=CLUSTERS)
    parser.add_argument("--busy-quantiles", nargs="+", type=float, default=(0.9, 0.5))
    parser.add_argument("--growth", action="store_true", help="all virtual clusters, in windows of growing length")
    parser.add_argument("--utility", default="capped")
    parser.add_argument("--slot-s", type=float, default=3600.0)
    parser.add_argument("--write", type=Path, help="folder for philly.md or philly_growth.md")
    options = parser.parse_args()
    if not options.trace.exists():
        print(f"{options.trace} is not here: skipped; give --trace, or DDLOPT_SHARED_DATA")
        return
    rows = []
    spawn = multiprocessing.get_context("spawn")
    for task in tasks(options):
        with ProcessPoolExecutor(1, mp_context=spawn) as process:
            rows.append(process.submit(measure, str(options.trace), task).result())
        print(rows[-1], flush=True)
    lines = [list(rows[0]), ["---"] + ["---:"] * (len(rows[0]) - 1), *(list(row.values()) for row in rows)]
    markdown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    print(markdown)
    if options.write:
        (options.write / f"philly{'_growth' if options.growth else ''}.md").write_text(markdown)


if __name__ == "__main__":
    main()
