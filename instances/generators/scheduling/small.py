"""Instances of at most some jobs, slots and servers in which everything is scarce: for proofs and enumerations."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.instances.generators.clusters import random_graph, star
from ddlopt.instances.generators.scheduling.jobs import UTILITIES, Fields, Kind, check_sizes, figure, utility_of
from ddlopt.instances.options import one_of
from ddlopt.models.scheduling import Contention, Job, Network, RingTiming, ServerGroup

LIMITED_BY = ("workers", "contention", "network", "sharing")
"""What a small instance is limited by besides time: see :class:`Small`."""

_BANDWIDTH = 8.0
"""Of every job, bytes per second."""


@dataclass(frozen=True)
class Small(Kind):
    """Jobs that want about twice of what there is, with all that a schedule may have to obey drawn as well.

    Drawn are arrivals, deadlines, least widths, utilities, the sizes of servers, the objective, and whether jobs run in
    one piece. Where all jobs have to finish they want less, but some instances have no schedule.

    Parameters
    ----------
    limited_by : {"workers", "contention", "network", "sharing"}
        ``workers``: places on servers, of which workers take one or two. ``contention``: jobs on several servers slow
        each other down. ``network``: rings reserve bandwidth on a star, a graph with cycles, or links of one direction.
        ``sharing``: the schedule chooses the bandwidths, and jobs are preemptive with concave utilities.
    jobs, slots, servers : int
    gpus : int
        Of a server, at most.
    """

    limited_by: str = "workers"
    jobs: int = 6
    slots: int = 6
    servers: int = 3
    gpus: int = 3

    def fields(self, rng: np.random.Generator) -> Fields:
        """Draw everything."""
        one_of("limited_by", self.limited_by, LIMITED_BY)
        check_sizes(jobs=self.jobs, slots=self.slots, servers=self.servers, gpus=self.gpus)
        sharing = self.limited_by == "sharing"
        objectives = ["utility", "max_min"] if sharing else ["utility", "utility", "max_min", "makespan", "completion"]
        objective = str(rng.choice(objectives))
        preemptive = sharing or bool(rng.random() < 0.6)
        rooms = rng.integers(1, self.gpus + 1, self.servers).tolist()
        takes = [1] * self.jobs
        if self.limited_by == "workers" and self.gpus > 1:
            rooms = [max(2, room) for room in rooms]
            takes = rng.integers(1, 3, self.jobs).tolist()
        kinds = [kind for kind in UTILITIES if kind != "all_or_nothing" or not sharing]
        jobs = [self._job(rng, place, objective, rooms, takes[place], kinds) for place in range(self.jobs)]
        return {
            "jobs": jobs,
            "slots": self.slots,
            "slot_s": 1.0,
            "servers": [ServerGroup(capacity={"gpu": float(room)}) for room in rooms],
            "objective": objective,
            "preemptive": preemptive,
            **self._rules(rng),
        }

    def _job(
        self, rng: np.random.Generator, place: int, objective: str, rooms: list[int], takes: int, kinds: list[str]
    ) -> Job:
        held = sum(room // takes for room in rooms)
        width = int(rng.integers(1, min(4, held) + 1))
        arrival = int(rng.integers(0, max(1, self.slots // 2))) if place else 0
        span = int(rng.integers(1, self.slots - arrival + 1))
        timing = RingTiming(
            gradient_bytes=figure(rng.uniform(1, 4), 3),
            bandwidth_bytes_per_s=_BANDWIDTH,
            forward_s_per_sample=figure(rng.uniform(0.2, 1), 3),
            latency_s=figure(rng.uniform(0, 0.05), 2) if rng.random() < 0.3 else 0.0,
        )
        # Twice the places in all slots together; jobs that must finish want a third of that.
        slots = 2 * held * self.slots / (self.jobs * width) * rng.uniform(0.5, 1.5)
        must = objective in ("makespan", "completion")
        slots = min(slots / 3, 0.8 * (self.slots - arrival)) if must else min(slots, 1.5 * self.slots)
        return Job(
            name=f"job-{place}",
            arrival=arrival,
            deadline=arrival + span if not must and rng.random() < 0.3 else None,
            min_workers=int(rng.integers(1, width + 1)) if rng.random() < 0.3 else 1,
            max_workers=width,
            timing=timing,
            minibatches=figure(float(timing.minibatches_per_s(width)) * slots),
            demand={"gpu": float(takes)},
            utility=utility_of(str(rng.choice(kinds)), rng.uniform(0.5, 3), 3),
        )

    def _rules(self, rng: np.random.Generator) -> dict[str, Any]:
        if self.limited_by == "contention":
            rules = Contention(
                between_servers_bytes_per_s=figure(rng.uniform(0.5, 2) * _BANDWIDTH, 3),
                within_server_bytes_per_s=4 * _BANDWIDTH,
                degradation=figure(rng.uniform(0, 0.5), 2),
                share=float(rng.choice([0.3, 0.6, 1.0])),
                server_overhead_s=figure(rng.uniform(0, 0.02), 2) if rng.random() < 0.5 else 0.0,
            )
            return {"contention": rules}
        if self.limited_by == "workers" or self.servers == 1:
            return {}
        network = self._network(rng)
        return {"network": network, "bandwidth": "shared"} if self.limited_by == "sharing" else {"network": network}

    def _network(self, rng: np.random.Generator) -> Network:
        shape = int(rng.integers(3))
        if shape == 0:
            return star(self.servers, figure(rng.uniform(1, 2.5) * _BANDWIDTH, 3))
        if shape == 1:
            nic = figure(rng.uniform(1, 2.5) * _BANDWIDTH, 3)
            return random_graph(rng, self.servers, 3, 1, nic, figure(rng.uniform(1, 2.5) * _BANDWIDTH, 3))
        ring = [(s, (s + 1) % self.servers) for s in range(self.servers)]
        more = [(u, v) for u in range(self.servers) for v in range(self.servers) if u != v and rng.random() < 0.3]
        links = tuple((u, v, figure(rng.uniform(1, 2.5) * _BANDWIDTH, 3)) for u, v in [*ring, *more])
        return Network(links=links, duplex=False)
