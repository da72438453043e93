"""Classes of servers by the type of their accelerators, where the speed of a job depends on it."""

from typing import NamedTuple

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers


class Class(NamedTuple):
    """Servers on which a job may be together, and the pace at which it then goes at least."""

    pace: float
    servers: tuple[int, ...]


def classes(instance: SchedulingInstance, job: int) -> list[Class]:
    """The classes of a job with speeds, the fastest first.

    Where types mix, class k are all servers that are no slower than the k-th pace, so that each holds the one before
    it; else the servers of one type.
    """
    paces = instance.paces[job].tolist()
    if instance.mixed_types:
        return [
            Class(pace, tuple(s for s, each in enumerate(paces) if each >= pace))
            for pace in sorted({pace for pace in paces if pace}, reverse=True)
        ]
    speeds = instance.jobs[job].speeds
    return [
        Class(speeds[name], tuple(s for s, own in enumerate(instance.types) if own == name))
        for name in sorted(speeds, key=lambda name: (-speeds[name], name))
        if speeds[name]
    ]


def class_of(instance: SchedulingInstance, job: int, workers: Workers) -> int:
    """The class in which workers of a job are; 0 where types make no difference to it."""
    if not instance.jobs[job].speeds:
        return 0
    here = {server for server, _ in workers}
    return next((k for k, each in enumerate(classes(instance, job)) if here <= set(each.servers)), 0)
