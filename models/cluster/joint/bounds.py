"""A bound on the objective of every schedule with any plans, without a search."""

from collections.abc import Callable

from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster.jobs.bounds import jobs_bound
from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.models.cluster.joint.instance import Choice, JointInstance
from ddlopt.models.errors import InfeasibleError, InstanceError
from ddlopt.models.tolerances import ROUNDING


def joint_bound(instance: JointInstance) -> float:
    """What no schedule is below, whatever the plans: that of cluster jobs, at times that no plan is below.

    In a fabric these are also no less than :meth:`JointInstance.crossing_s`, and uplinks are counted as servers are.

    Raises
    ------
    InfeasibleError
        If a job has no choice whose problem has a plan.
    """
    known: dict[tuple[int | None, int | None], float | None] = {}

    def least(_: int, choice: Choice) -> float | None:
        key = choice.problem, choice.devices
        if key not in known:
            known[key] = simple_step_bound(instance, choice)
        return known[key]

    jobs = least_times(instance, least)
    return max(jobs_bound(jobs), uplinks_bound(instance, jobs))


def uplinks_bound(instance: JointInstance, jobs: JobsInstance) -> float:
    """For a makespan in a fabric: from the first arrival on all uplinks of a cut carry what jobs send at least."""
    if instance.fabric is None or instance.objective != "makespan":
        return 0.0
    begins, found = min(job.arrival_s for job in instance.jobs), 0.0
    for load in instance.fabric.loads(instance.widths):
        sent = 0.0
        for place, job in enumerate(jobs.jobs):
            sent += min(load.least[width] * instance.sent_bytes(place, width) for width in job.widths)
        found = max(found, (begins + sent / load.rate) * (1 - ROUNDING))
    return found


def least_times(instance: JointInstance, least: Callable[[int, Choice], float | None]) -> JobsInstance:
    """:meth:`JointInstance.at`, where a job that fits nowhere is a proof that there is no answer."""
    try:
        return instance.at(least, f"{instance.name}-least", crossing=True)
    except InstanceError as fault:
        raise InfeasibleError(f"'{instance.name}': no plan for any number of servers: {fault}") from None


def simple_step_bound(instance: JointInstance, choice: Choice) -> float | None:
    """What no plan with this choice takes less than, a positive number; None where its bound says there is none."""
    inner = instance.inner(choice)
    assert inner is not None
    try:
        found = problem_of(inner).bound(inner)
    except InfeasibleError:
        return None
    return max(found or 0.0, TINY_S)


TINY_S = 1e-12
"""Shorter than any step."""
