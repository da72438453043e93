"""Odd schedules: tiny instances of every feature, and some with what no feature is about."""

import random
from typing import Any

from ddlopt.instances.generators import generate
from ddlopt.instances.generators.scheduling.tiny import FEATURES
from ddlopt.instances.odd.optional import PLAIN, RARE
from ddlopt.models.contracts import Instance
from ddlopt.models.scheduling import PolluxTiming, SchedulingInstance, ServerGroup


def drawn(draw: random.Random, seed: int) -> Instance:
    """A few jobs over a few slots, about one feature of the problem each or several."""
    if draw.random() < 0.7:
        instance = generate("scheduling", "tiny", seed, feature=draw.choice(FEATURES))
        assert isinstance(instance, SchedulingInstance)
        return instance if draw.random() < PLAIN else _other_jobs(instance, draw)
    limited_by = draw.choice(("workers", "contention", "network", "sharing"))
    return generate("scheduling", "small", seed, limited_by=limited_by, jobs=3, slots=3, servers=2, gpus=2)


def _other_jobs(instance: SchedulingInstance, draw: random.Random) -> SchedulingInstance:
    """Some jobs take time to change, some are timed in another way, some have a fair time where that counts.

    In place of the sum of utilities, of whatever kind, it may be the smallest part done that counts; and workers may
    have to be on one type of accelerators.
    """
    jobs = []
    for job in instance.jobs:
        fields: dict[str, Any] = {"change_s": draw.choice((0.0, 0.0, instance.slot_s / 2))}
        if instance.objective == "finish_time_fairness":
            fields["fair_s"] = draw.choice((None, 1.0, 2.0))
        if instance.contention is None and instance.bandwidth == "reserved" and draw.random() < RARE:
            sync_s = draw.choice((0.0, 0.05))
            overlap = draw.choice((1.0, 1.5, 3.0))
            fields["timing"] = PolluxTiming(compute_s=0.1, sync_s=sync_s, sync_s_per_worker=0.02, overlap=overlap)
        jobs.append(job.model_copy(update=fields))
    goal = "max_min" if instance.objective == "utility" and draw.random() < RARE else instance.objective
    mixed = draw.random() < PLAIN
    apart = instance.contention is None and instance.bandwidth == "reserved" and draw.random() < RARE
    servers = instance.servers if not apart else _of_types(instance.servers)
    if apart:
        speeds = [{group.type: draw.choice((0.5, 1.0, 1.0, 2.0)) for group in servers} for _ in jobs]
        unfair = {"fair_s": 1.0} if goal == "finish_time_fairness" else {}
        jobs = [
            job.model_copy(update={"speeds": job.speeds or each} | ({} if job.fair_s else unfair))
            for job, each in zip(jobs, speeds, strict=True)
        ]
    return instance.changed(jobs=tuple(jobs), servers=servers, objective=goal, mixed_types=mixed)


def _of_types(servers: tuple[ServerGroup, ...]) -> tuple[ServerGroup, ...]:
    """The servers in groups of one, of two types in turn; those that have types as they are."""
    if any(group.type for group in servers):
        return servers
    apart = [group.model_copy(update={"count": 1}) for group in servers for _ in range(group.count)]
    return tuple(group.model_copy(update={"type": ("a", "b")[place % 2]}) for place, group in enumerate(apart))
