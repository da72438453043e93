"""Schedules as tables: the runs of every job with start, end and servers."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, listed, path, rate, seconds, section
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule


def table(instance: SchedulingInstance, solution: Schedule) -> Iterator[Section]:
    """Sections of a schedule."""
    slot = instance.slot_s
    runs = sorted(enumerate(solution.runs), key=lambda pair: (pair[1].job, pair[1].start, pair[0]))
    rows = [
        (
            label(run.job, instance.jobs[run.job].name),
            place,
            seconds(run.start * slot),
            seconds(run.end * slot),
            f"{run.start}..{run.end - 1}",
            run.width,
            servers_of(run),
            path(run.ring),
            rate(run.bandwidth_bytes_per_s),
        )
        for place, run in runs
    ]
    columns = ("job", "run", "start", "end", "slots", "workers", "servers (workers)", "ring", "bandwidth")
    yield section("Runs by job", columns, rows)
    idle = sorted(set(range(len(instance.jobs))) - {run.job for run in solution.runs})
    yield section("Jobs that never run", ("job",), [(label(job, instance.jobs[job].name),) for job in idle])


def servers_of(run: Run) -> str:
    """Servers with their numbers of workers."""
    return listed(f"{server} ({count})" for server, count in run.workers)
