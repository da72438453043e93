"""Bounds on the objective of every schedule that need no search."""

import math
from fractions import Fraction

from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance
from ddlopt.models.tolerances import ROUNDING


def jobs_bound(instance: JobsInstance) -> float:
    """What no schedule is below: each job alone at its best width, and the server-seconds of all."""
    return float(exact_jobs_bound(instance)) * (1 - ROUNDING)


def exact_jobs_bound(instance: JobsInstance) -> Fraction:
    """The same in rational numbers.

    A job ends no earlier than alone on the width that suits it best. For the makespan also: K servers from the first
    arrival on need at least the least server-seconds of every job.
    """
    alone = instance.cost(first_start(instance, job, Fraction(0)) + shortest_s(job) for job in instance.jobs)
    if instance.objective != "makespan":
        return alone
    begins = min(first_start(instance, job, Fraction(0)) for job in instance.jobs)
    work = sum((least_work(job) for job in instance.jobs), Fraction(0))
    return max(alone, begins + work / instance.servers)


def first_start(instance: JobsInstance, job: ClusterJob, earliest: Fraction) -> Fraction:
    """When a job may start at the earliest, from a time on: at its arrival, or the next slot."""
    start = max(earliest, Fraction(job.arrival_s))
    if instance.slot_s is None:
        return start
    slot = Fraction(instance.slot_s)
    return math.ceil(start / slot) * slot


def shortest_s(job: ClusterJob) -> Fraction:
    """Of all widths."""
    return min(job.length_s(width) for width in job.widths)


def least_work(job: ClusterJob) -> Fraction:
    """Server-seconds, of the width that needs the fewest."""
    return min(width * job.length_s(width) for width in job.widths)
