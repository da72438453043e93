"""Gangs: jobs of one width that are all to be finished."""

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.types import refusal


def not_gangs(instance: SchedulingInstance) -> str | None:
    """Why the jobs of an instance are no gangs to be finished, each of one width; None if they are."""
    if (reason := refusal(instance)) is not None:
        return reason
    if instance.objective not in ("makespan", "completion"):
        return f"the objective is '{instance.objective}', but it finishes all jobs; use time-indexed or gadget"
    for place, job in enumerate(instance.jobs):
        if job.min_workers < job.max_workers:
            return (
                f"jobs[{place}] '{job.name}' may have {job.min_workers}..{job.max_workers} workers, but it takes jobs "
                "of one width; use time-indexed"
            )
    if instance.needs_rings:
        return "it reserves no bandwidth in a network; use time-indexed"
    return None
