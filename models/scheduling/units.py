"""In what the formulations count their objectives."""

from collections.abc import Sequence
from functools import lru_cache

from ddlopt.models.scheduling.fair_time import fair_slots
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.units import unit_of


def objective_unit(instance: SchedulingInstance, done: Sequence[float] = ()) -> float:
    """The unit of the objective, a power of two; slots count as they are (``makespan``).

    Parameters
    ----------
    done : sequence of float
        Mini-batches of each job that were done before; empty for none.

    Returns
    -------
    float
        Near the most that the utility of any job can come to, by itself on the empty cluster from its arrival to its
        deadline (``utility``); near the part that the job which then comes to least does (``max_min``); near the
        largest weight (``completion``); near the inverse of the fewest slots with a fair share
        (``finish_time_fairness``).
    """
    return _unit(instance, tuple(done))


@lru_cache(maxsize=64)
def _unit(instance: SchedulingInstance, done: tuple[float, ...]) -> float:
    goal, size = instance.goal, 1.0
    if goal.counts_utilities:
        size = max(goal.worth(job, reachable_part(instance, i, done)) for i, job in enumerate(instance.jobs))
    if goal.counts_least_part:
        size = min(reachable_part(instance, i, done) for i in range(len(instance.jobs)))
    if goal.counts_ends:
        size = max(job.utility.value for job in instance.jobs)
    if goal.counts_ratios:
        size = 1 / min(fair_slots(instance))
    return unit_of(size, parts=1)


def reachable_part(instance: SchedulingInstance, job: int, done: Sequence[float] = ()) -> float:
    """The most of its mini-batches that a job can do by its deadline, as a part of them: by itself, at its fastest."""
    one = instance.jobs[job]
    fastest = max(instance.progress(job, width) for width in one.widths) * instance.accelerators.fastest(job)
    slots = instance.last_slot(job) - one.arrival
    part = min(1.0, ((done[job] if done else 0.0) + slots * fastest) / one.minibatches)
    return 1.0 if part >= DONE else part
