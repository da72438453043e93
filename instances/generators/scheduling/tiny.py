"""Instances small enough for brute force, one feature of the family each; numbers of no unit in particular."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.instances.generators.clusters import leaf_spine, random_graph, star
from ddlopt.instances.generators.scheduling.jobs import (
    UTILITIES,
    Fields,
    Kind,
    check_sizes,
    figure,
    job_of_slots,
    utility_of,
)
from ddlopt.instances.options import one_of
from ddlopt.models.scheduling import Contention, Job, Network, PolluxTiming, RingTiming, ServerGroup

BANDWIDTH = 8.0
"""Of every job, bytes per second."""

_PLACED = ("star", "tree", "general", "directed", "shared")
_CROSSING = (*_PLACED, "contention")
"""Here two jobs of three workers on 3 × 2 GPUs cannot help but meet."""
_TIMED = ("makespan", "completion", "gangs", "contention")
_FINISHING = (*_TIMED, "finish_time_fairness")

FEATURES = (
    *UTILITIES,
    "deadlines",
    "min_workers",
    "energy",
    "max_min",
    *_TIMED,
    "unequal_servers",
    "resources",
    "pollux",
    *_PLACED,
    "change",
    "types",
    "finish_time_fairness",
    "least_runs",
)
"""What a tiny instance can be about: a utility, or …

``energy`` has a price and servers that idle; ``gangs`` run in one piece at one width, ``contention`` likewise, with
rings that slow each other down; ``resources`` are GPUs and CPUs; ``star``, ``tree``, ``general`` and ``directed`` are
networks that carry one ring on a link; with ``shared`` the schedule chooses the bandwidths on a star; with ``change``
a job loses half a slot when it changes, with ``least_runs`` it runs unchanged for two slots; with ``types`` one server
is slower, to some jobs more than to others.
"""


@dataclass(frozen=True)
class Tiny(Kind):
    """A few jobs over a few slots on two servers of 2 GPUs, or on 6 GPUs where places matter; see :data:`FEATURES`.

    Parameters
    ----------
    feature : str
        What it is about, one of :data:`FEATURES`.
    jobs, slots : int, optional
        None: 3 jobs, 2 of them with a network; 3 slots, and one more than jobs where all jobs have to finish: they do
        so one after the other.
    """

    feature: str = "capped"
    jobs: int | None = None
    slots: int | None = None

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        one_of("feature", self.feature, FEATURES)
        jobs = (2 if self.feature in _PLACED else 3) if self.jobs is None else self.jobs
        slots = (jobs + 1 if self.feature in _FINISHING else 3) if self.slots is None else self.slots
        check_sizes(jobs=jobs, slots=slots)
        return {
            "servers": _servers(self.feature),
            "network": _network(self.feature, rng),
            "jobs": [_job(self.feature, rng, place, slots) for place in range(jobs)],
            "slots": slots,
            "slot_s": 1.0,
            "note": "Made for exact proofs",
            **_rules(self.feature),
        }


def _servers(feature: str) -> list[ServerGroup]:
    if feature == "tree":
        return [ServerGroup(count=6, capacity={"gpu": 1})]
    if feature in _CROSSING:
        return [ServerGroup(count=3, capacity={"gpu": 2})]
    if feature == "unequal_servers":
        return [ServerGroup(capacity={"gpu": 3}), ServerGroup(capacity={"gpu": 1})]
    if feature == "types":
        return [ServerGroup(capacity={"gpu": 2}, type=name) for name in ("fast", "slow")]
    capacity = {"gpu": 2.0, "cpu": 3.0} if feature == "resources" else {"gpu": 2.0}
    power: Fields = {"idle_w": 1.0, "worker_w": 2.0} if feature == "energy" else {}
    return [ServerGroup(count=2, capacity=capacity, **power)]


def _network(feature: str, rng: np.random.Generator) -> Network | None:
    if feature == "star":
        return star(3, BANDWIDTH)
    if feature == "shared":
        return star(3, 1.5 * BANDWIDTH)
    if feature == "tree":
        return leaf_spine(6, 2, BANDWIDTH, 2.0)
    if feature == "general":
        return random_graph(rng, 3, 3, 1, BANDWIDTH, BANDWIDTH)
    if feature == "directed":
        return Network(links=((0, 1, BANDWIDTH), (1, 2, BANDWIDTH), (2, 0, BANDWIDTH)), duplex=False)
    return None


def _rules(feature: str) -> Fields:
    if feature == "energy":
        return {"energy_price_per_j": 0.1}
    if feature == "shared":
        return {"bandwidth": "shared"}
    if feature in ("max_min", "makespan", "completion", "finish_time_fairness"):
        return {"objective": feature}
    if feature == "gangs":
        return {"objective": "makespan", "preemptive": False}
    if feature == "contention":
        rules = Contention(
            between_servers_bytes_per_s=BANDWIDTH,
            within_server_bytes_per_s=4 * BANDWIDTH,
            degradation=0.5,
            server_overhead_s=1 / 256,
        )
        return {"objective": "makespan", "preemptive": False, "contention": rules}
    return {}


def _job(feature: str, rng: np.random.Generator, place: int, slots: int) -> Job:
    """Draws are the same for every feature, so that features differ in little else."""
    width = int(rng.choice([2, 3, 4]))
    compute_s, gradient_bytes = float(rng.choice([0.25, 0.5, 1.0])), float(rng.choice([1.0, 2.0, 4.0]))
    length = float(rng.choice([1.0, 1.5, 2.0, 2.5]))
    arrival = int(rng.integers(0, 2)) if place else 0
    due, value = int(rng.integers(arrival + 1, arrival + 3)), figure(rng.uniform(1, 3), 3)
    fields: dict[str, Any] = {"arrival": min(arrival, slots - 1)}
    if feature in _CROSSING:
        width = (3, 3, 2)[place % 3]
    if feature in _PLACED:  # both jobs need all slots
        fields, length = {}, 0.5 * length + 1.75
    if feature in _FINISHING:  # one after the other: two slots for the first job, one for each of the others
        fields, length = {}, (1.75 if place == 0 else 0.3 * length)
    if feature in ("gangs", "contention", "min_workers"):
        fields["min_workers"] = width if feature != "min_workers" else 2
    if feature == "change":
        fields["change_s"] = 0.5
    if feature == "least_runs":
        fields["least_run_slots"] = 2
    if feature == "types":
        fields["speeds"] = {"fast": 1.0, "slow": (0.25, 0.75, 0.5)[place % 3]}
    if feature == "deadlines":
        fields["deadline"] = min(due, slots)
    if feature == "resources":
        fields["demand"] = ({"gpu": 1, "cpu": 1}, {"gpu": 1, "cpu": 2}, {"gpu": 0, "cpu": 1})[place % 3]
        width = min(width, 2 if place % 3 == 1 else 4)
    timing: RingTiming | PolluxTiming = RingTiming(
        gradient_bytes=gradient_bytes, bandwidth_bytes_per_s=BANDWIDTH, forward_s_per_sample=compute_s
    )
    if feature == "pollux":
        timing = PolluxTiming(compute_s=compute_s, sync_s=gradient_bytes / 16, sync_s_per_worker=1 / 64, overlap=2.0)
    kind = feature if feature in UTILITIES else "capped"
    return job_of_slots(f"job-{place}", timing, width, length, 1.0, utility=utility_of(kind, value), **fields)
