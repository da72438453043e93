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
    jobs = range(len(instance.jobs))
    match instance.objective:
        case "utility":
            parts = [reachable_part(instance, i, done) for i in jobs]
            return unit_of(
                max(float(job.utility.of(part)) for job, part in zip(instance.jobs, parts, strict=True)), parts=1
            )
        case "max_min":
            return unit_of(min(reachable_part(instance, i, done) for i in jobs), parts=1)
        case "completion":
            return unit_of(max(job.utility.value for job in instance.jobs), parts=1)
        case "finish_time_fairness":
            return unit_of(1 / min(fair_slots(instance)), parts=1)
        case _:
            return 1.0


def reachable_part(instance: SchedulingInstance, job: int, done: Sequence[float] = ()) -> float:
    """The most of its mini-batches that a job can do by its deadline, as a part of them: by itself, at its fastest."""
    one = instance.jobs[job]
    pace = max(one.speeds.values(), default=1.0)
    fastest = max(instance.progress(job, width) for width in one.widths) * pace
    slots = instance.last_slot(job) - one.arrival
    part = min(1.0, ((done[job] if done else 0.0) + slots * fastest) / one.minibatches)
    return 1.0 if part >= DONE else part
