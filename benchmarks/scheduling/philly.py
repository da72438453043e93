"""Greedy scheduling of whole virtual clusters of the Philly trace, and of all of it: times, memory, certified gap.

The job list is public (see ``ddlopt.instances.readers.traces.philly``) but not part of the project; it is looked for
under ``traces/philly.csv`` in the folder that ``DDLOPT_SHARED_DATA`` names. Every instance is solved in a process of
its own, so that the largest memory is its own. Times are wall-clock seconds of: reading; ``gadget`` (the exact greedy
over slots); the check; the bound by prices (Lagrangian), with which each result is merged.
"""

from pathlib import Path

from benchmarks.harness import Benchmark, Option, apart, data, timed
from ddlopt.analysis.texts import gap_text
from ddlopt.instances.readers.traces.philly import read_philly
from ddlopt.models.catalogue import family
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gadget import Gadget

CLUSTERS = ("103959", "ee9e8c", "0e4a51", "ed69ec")
WINDOWS_DAYS = (7.0, 14.0, 28.0, 56.0, None)
STAGES = ("read", "greedy", "check", "price bound")


def measure(path: str, options: dict) -> dict[str, str]:
    """One row, of an instance solved in this process."""
    laps: list[float] = []

    def lap(work, *arguments, **more):
        found, spent = timed(work, *arguments, **more)
        laps.append(spent.wall_s)
        return found

    instance = lap(read_philly, path, **options)
    kind = family("scheduling")
    schedule, _ = lap(Gadget().answer, instance, 0, Clock(Limits(), None), None)
    found = lap(kind.evaluate, instance, schedule)
    bound = lap(kind.bound, instance)
    if found.violations:
        raise SystemExit(f"{instance.name}: {found.violations[0]}")
    value = float(found.objective)
    return {
        "instance": instance.name,
        "jobs": len(instance.jobs),
        "slots": instance.slots,
        "GPUs": 8 * instance.server_count,
        "busy": f"{float(found.details['busy_part']):.0%}",
        "finished": int(found.details["finished_jobs"]),
        "utility": f"{value:.2f}",
        "gap": gap_text(max(0.0, bound / value - 1)),
        **{f"{stage} s": f"{seconds:.2f}" for stage, seconds in zip(STAGES, laps, strict=True)},
        "all s": f"{sum(laps):.1f}",
    }


def rows(asked, settings: list[dict]):
    """A row for each setting of the reader."""
    trace = asked.trace or data("traces/philly.csv")
    for options in settings:
        row, spent = apart(measure, str(trace), {"utility": asked.utility, "slot_s": asked.slot_s, **options})
        yield row | {"memory MB": f"{spent.peak_bytes / 2**20:.0f}"}


def clusters(asked):
    """Virtual clusters, by recorded demand and half of it."""
    wanted = [{"virtual_cluster": cluster, "busy_quantile": quantile}
              for cluster in asked.virtual_clusters for quantile in asked.busy_quantiles]  # fmt: skip
    yield from rows(asked, wanted)


def growth(asked):
    """All virtual clusters: 82 247 jobs, and shorter windows of them."""
    yield from rows(asked, [{"hours": days and 24 * days} for days in WINDOWS_DAYS[: asked.windows]])


BENCH = Benchmark(
    clusters, growth,
    trace=Option(None, "the job list", type=Path),
    virtual_clusters=Option(list(CLUSTERS), quick=["ed69ec"]),
    busy_quantiles=Option([0.9, 0.5], quick=[0.9]),
    windows=Option(len(WINDOWS_DAYS), "how many windows, shortest first", quick=1),
    utility=Option("capped"),
    slot_s=Option(3600.0, "seconds of a slot"),
)  # fmt: skip
