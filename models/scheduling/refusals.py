"""Why a method that does not know a variant of the problem does not cover an instance."""

from ddlopt.models.scheduling.instance import SchedulingInstance

UNKNOWN = "the speed of jobs depends on the type of accelerators, which it does not know; use exact"
HASTY = "a job may not change in every slot, which it does not know; use exact or time-indexed"


def refusal(instance: SchedulingInstance) -> str | None:
    """Why a method that knows neither types nor least runs does not cover the instance; None if neither matters."""
    if instance.accelerators.matter:
        return UNKNOWN
    return HASTY if instance.changes.must_wait else None


def bandwidth_refusal(instance: SchedulingInstance) -> str | None:
    """Why a method that gives every ring its job's own bandwidth does not cover the instance; None if it does."""
    if instance.contention is not None:
        return "with contention the speed of a job depends on the others; use exact"
    if instance.bandwidth == "shared" and instance.server_count > 1:
        return "bandwidth is shared, but it reserves the bandwidth that each job's timing names; use exact"
    return None


def not_gangs(instance: SchedulingInstance) -> str | None:
    """Why the jobs of an instance are no gangs to be finished, each of one width; None if they are."""
    if (reason := refusal(instance)) is not None:
        return reason
    if not instance.goal.in_seconds:
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
