"""Speeds that depend on the type of the accelerators: what leaves them out, and who does not know them."""

import math

from ddlopt.models.scheduling.instance import SchedulingInstance

UNKNOWN = "the speed of jobs depends on the type of accelerators, which it does not know; use exact"
HASTY = "a job may not change in every slot, which it does not know; use exact or time-indexed"


def refusal(instance: SchedulingInstance) -> str | None:
    """Why a method that knows neither types nor least runs does not cover the instance; None if neither matters."""
    if instance.typed:
        return UNKNOWN
    return HASTY if instance.runs_are_long else None


def at_their_fastest(instance: SchedulingInstance) -> SchedulingInstance:
    """A relaxation without types: every job is everywhere as fast as on its best type.

    Speeds are 1 in it, and fewer mini-batches are wanted instead, rounded down: each job does at least the part that it
    does in the instance, in exact arithmetic too. Without speeds it is the instance itself.
    """
    if not instance.typed:
        return instance
    jobs = []
    for place, job in enumerate(instance.jobs):
        if job.speeds:
            wanted = math.nextafter(job.minibatches / float(instance.paces[place].max()), 0.0)
            job = job.model_copy(update={"minibatches": wanted, "speeds": {}})
        jobs.append(job)
    return instance.changed(jobs=tuple(jobs))
