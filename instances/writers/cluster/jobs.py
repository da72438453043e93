"""Schedules of cluster jobs as tables: when each job has how many servers."""

from collections.abc import Iterator
from fractions import Fraction

from ddlopt.instances.writers.layout import Section, label, seconds, section
from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule


def table(instance: JobsInstance, solution: JobsSchedule) -> Iterator[Section]:
    """Sections of a schedule."""
    rows = []
    for place, (job, own) in enumerate(zip(instance.jobs, solution.runs, strict=True)):
        for run in own:
            start = Fraction(run.start) * (1 if instance.slot_s is None else Fraction(instance.slot_s))
            step = job.step_s[run.servers - 1]
            rows.append((label(place, job.name), seconds(float(start)), run.servers, seconds(step)))
    yield section("Jobs", ("job", "from", "servers", "time of an iteration"), rows)
