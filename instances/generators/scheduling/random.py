"""Clusters and jobs drawn at random: our own settings, and settings in the style of published ones."""

from dataclasses import dataclass

import numpy as np

from ddlopt.instances.generators.clusters import gpu_servers, leaf_spine, network_of, random_graph, star
from ddlopt.instances.generators.scheduling.jobs import (
    NETWORK_BYTES_PER_S,
    ElasticJobs,
    Fields,
    Kind,
    arrivals,
    check_sizes,
    enough_slots,
    figure,
    utility_of,
)
from ddlopt.instances.options import at_least, part, positive
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import Contention, Job, Network, RingTiming, ServerGroup

# A definition.
GIGABYTE = 1e9
CAPACITY = {"gpu": 8.0, "cpu": 32.0, "memory_bytes": 128 * GIGABYTE, "storage_bytes": 200 * GIGABYTE}
"""Of a server with four resources."""
_MIX = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
"""Jobs by width, of 160."""
# Accelerators of a server as they are sold.
_SIZES = (4, 8, 16, 32)
_NOTE = "Networks and iteration times are those of ddlopt's cluster models, a roofline: synthetic"


@dataclass(frozen=True)
class Elastic(ElasticJobs):
    """Equal GPUs, bandwidth no limit; with ``types`` GPUs of several types, and jobs that differ in what they gain.

    Types are written ``"v100:1,p100:0.45,k80:0.2"``, with the speed of a middling job on each; GPUs are split evenly
    among them. Of a speed s a job has :math:`s^x`, x uniform between 1/4 and 7/4, the same on all types: some jobs are
    nearly as fast on old accelerators, others hardly run there. The range is ours.

    Parameters
    ----------
    gpus : int
        Of the cluster.
    gpus_per_server : int
        GPUs of a server.
    idle_w, worker_w : float
        Watts of a server without work, and of each worker besides.
    types : str, optional
        Types of GPUs with the speed of a middling job on each, ``"v100:1,k80:0.2"``.
    """

    gpus: int = 16
    gpus_per_server: int = 8
    idle_w: float = 0.0
    worker_w: float = 0.0
    types: str | None = None

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(gpus=self.gpus)
        at_least("idle_w", self.idle_w, 0)
        at_least("worker_w", self.worker_w, 0)
        jobs = self.draw(rng, self.gpus)
        servers = gpu_servers(self.gpus, self.gpus_per_server, self.idle_w, self.worker_w)
        if self.types is not None:
            speeds = _speeds_of(self.types, self.gpus)
            servers = tuple(
                group.model_copy(update={"type": name})
                for place, name in enumerate(speeds)
                for group in gpu_servers(
                    self.gpus // len(speeds) + (place < self.gpus % len(speeds)),
                    self.gpus_per_server,
                    self.idle_w,
                    self.worker_w,
                )
            )
            powers = rng.uniform(0.25, 1.75, len(jobs))
            jobs = [
                job.model_copy(update={"speeds": {name: figure(speed**power) for name, speed in speeds.items()}})
                for job, power in zip(jobs, powers.tolist(), strict=True)
            ]
        return {
            "jobs": jobs,
            "slots": self.slots,
            "slot_s": self.slot_s,
            "servers": servers,
            "note": _NOTE,
        }


def _speeds_of(types: str, gpus: int) -> dict[str, float]:
    """Speed by type."""
    speeds: dict[str, float] = {}
    for each in types.split(","):
        name, _, speed = each.strip().partition(":")
        if name in speeds:
            raise OptionError(f"types has '{name}' twice; give each type one speed")
        try:
            speeds[name] = float(speed)
        except ValueError:
            raise OptionError(
                f"types has '{each.strip()}'; write a name and a speed, such as 'v100:1,k80:0.2'"
            ) from None
        positive(f"types, speed of '{name}',", speeds[name])
    if len(speeds) > gpus:
        raise OptionError(f"types has {len(speeds)} types, but there are {gpus} GPUs; use at most one for each GPU")
    return speeds


@dataclass(frozen=True)
class Contended(ElasticJobs):
    """A star whose servers' cards carry few rings, ``rings_per_nic`` bandwidths of a job: places matter.

    Parameters
    ----------
    servers : int
        How many.
    rings_per_nic : float
        Rings at full bandwidth that the card of a server carries.
    """

    slots: int = 10
    widths: str = "any"
    utility: str = "capped"
    by_size: bool = True
    servers: int = 4
    gpus_per_server: int = 4
    rings_per_nic: float = 1.0

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(servers=self.servers, gpus_per_server=self.gpus_per_server)
        workers = self.servers * self.gpus_per_server
        return {
            "network": self.network(rng) if self.servers > 1 else None,
            "jobs": self.draw(rng, workers),
            "slots": self.slots,
            "slot_s": self.slot_s,
            "servers": gpu_servers(workers, self.gpus_per_server),
            "note": _NOTE,
        }

    def network(self, rng: np.random.Generator) -> Network:
        """A star."""
        return star(self.servers, self.rings_per_nic * self.bandwidth_bytes_per_s)


@dataclass(frozen=True)
class Racks(Contended):
    """Racks below a spine: a tree that has ``oversubscription`` times less bandwidth above than below.

    Parameters
    ----------
    rack_servers : int
        Servers of a rack.
    oversubscription : float
        Bandwidth of the servers of a rack, over that of the rack to the spine.
    """

    servers: int = 8
    gpus_per_server: int = 2
    rack_servers: int = 2
    oversubscription: float = 2.0

    def network(self, rng: np.random.Generator) -> Network:
        """A tree of three levels."""
        nic = self.rings_per_nic * self.bandwidth_bytes_per_s
        return leaf_spine(self.servers, self.rack_servers, nic, self.oversubscription)


@dataclass(frozen=True)
class RandomNetwork(Contended):
    """Servers on random switches, these on a random tree with ``extra_links`` more links: rings have to be routed.

    Parameters
    ----------
    switches : int
        How many.
    extra_links : int
        Links between switches beyond those of a tree.
    rings_per_trunk : float
        Rings at full bandwidth that a link between switches carries.
    """

    jobs: int = 12
    slots: int = 6
    widest: int = 4
    servers: int = 6
    gpus_per_server: int = 2
    switches: int = 4
    extra_links: int = 2
    rings_per_trunk: float = 1.0

    def network(self, rng: np.random.Generator) -> Network:
        """A connected graph."""
        nic, trunk = (rings * self.bandwidth_bytes_per_s for rings in (self.rings_per_nic, self.rings_per_trunk))
        return random_graph(rng, self.servers, self.switches, self.extra_links, nic, trunk)


@dataclass(frozen=True)
class PdOrsLike(Kind):
    """Jobs that take four resources: a synthetic setting in the style of OASiS and PD-ORS, not a copy of theirs.

    A worker takes 0–4 GPUs, 1–10 CPUs, 2–32 GB of memory and 5–10 GB of storage; 50–200 epochs of 20 000–500 000
    samples in mini-batches of 1–200; gradients of 30–575 MB; values of 1–100; for a part of the jobs a deadline 1–15
    slots after the arrival. These ranges are modelled on what such evaluations use, and were not checked against the
    papers. The rest is ours: equal servers (8 GPUs, 32 CPUs, 128 GB, 200 GB), 0.1–1 ms a sample forward and twice that
    backward, 1..``widest`` workers, all of it uniform, and utilities that are concave in progress.
    """

    jobs: int = 50
    slots: int = 20
    servers: int = 100
    slot_s: float = 3600.0
    widest: int = 16
    network: str = "none"
    rings_per_nic: float = 4.0
    arrival_part: float = 0.6
    utility: str = "logarithmic"
    deadline_part: float = 0.35
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(jobs=self.jobs, slots=self.slots, servers=self.servers, widest=self.widest)
        part("deadline_part", self.deadline_part)
        for name in ("slot_s", "bandwidth_bytes_per_s", "rings_per_nic"):
            positive(name, getattr(self, name))
        come = enumerate(arrivals(rng, self.jobs, self.slots, self.arrival_part))
        return {
            "jobs": [self._job(rng, place, arrival) for place, arrival in come],
            "slots": self.slots,
            "slot_s": self.slot_s,
            "servers": [ServerGroup(count=self.servers, capacity=CAPACITY)],
            "network": network_of(self.network, self.servers, self.rings_per_nic * self.bandwidth_bytes_per_s),
            "note": "A synthetic setting in the style of OASiS (arXiv:1801.00936) and PD-ORS, not their data",
        }

    def _job(self, rng: np.random.Generator, place: int, arrival: int) -> Job:
        batch, sample_s = int(rng.integers(1, 201)), figure(rng.uniform(1e-4, 1e-3), 3)
        timing = RingTiming(
            gradient_bytes=figure(rng.uniform(30e6, 575e6), 3),
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            forward_s_per_sample=sample_s,
            batch_samples=batch,
            backward_s=figure(2 * sample_s * batch, 6),
        )
        demand = {
            "gpu": float(rng.integers(0, 5)),
            "cpu": float(rng.integers(1, 11)),
            "memory_bytes": float(rng.integers(2, 33)) * GIGABYTE,
            "storage_bytes": float(rng.integers(5, 11)) * GIGABYTE,
        }
        room = self.servers * int(min(CAPACITY[name] // amount for name, amount in demand.items() if amount))
        samples = int(rng.integers(50, 201)) * int(rng.integers(20_000, 500_001))
        due, after = rng.random() < self.deadline_part, int(rng.integers(1, 16))
        return Job(
            name=f"job-{place}",
            arrival=arrival,
            deadline=min(self.slots, arrival + after) if due else None,
            max_workers=min(room, int(rng.integers(1, self.widest + 1))),
            timing=timing,
            minibatches=figure(samples / batch),
            demand=demand,
            utility=utility_of(self.utility, rng.uniform(1, 100)),
        )


@dataclass(frozen=True)
class SjfBco(Kind):
    """Rigid gangs that run in one piece, all there from the start; the last end is minimised.

    A synthetic setting in the style of SJF-BCO: widths in the proportions 80 × 1, 14 × 2, 26 × 4, 30 × 8, 8 × 16,
    2 × 32 GPUs, servers of 4, 8, 16 or 32 GPUs, 1000–6000 iterations of 0.01–0.05 time units. These figures are
    modelled on such evaluations, and were not checked against the paper. Ours: the unit is a second, so that the
    default slot has ten; 5–15 % of an iteration is communication.

    Parameters
    ----------
    gpus : int, optional
        Of all servers together, which are drawn until this is reached; None: ``servers`` servers of random sizes.
    slots : int, optional
        None: as many as list scheduling needs at most.
    widest : int
        The proportions stop here.
    contention : bool
        Rings on the same network card slow each other down, by ``share`` and ``degradation``.
    share, degradation : float
        Of k rings on a card share · k send at once, at least one; each beyond the first makes all slower by one
        plus the degradation.
    """

    jobs: int = 160
    gpus: int | None = None
    servers: int = 20
    slots: int | None = None
    slot_s: float = 10.0
    widest: int = 32
    contention: bool = False
    share: float = 1.0
    degradation: float = 0.2
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(jobs=self.jobs, servers=self.servers, widest=self.widest)
        for name in ("slot_s", "bandwidth_bytes_per_s", "share"):
            positive(name, getattr(self, name))
        sizes = _server_sizes(rng, self.gpus, self.servers)
        widths = rng.permutation(_mixed(self.jobs, self.widest)).tolist()
        if max(widths) > sum(sizes):
            raise OptionError(f"widest is {self.widest}, but there are {sum(sizes)} GPUs; lower it to {sum(sizes)}")
        jobs = [_gang(rng, place, width, self.bandwidth_bytes_per_s) for place, width in enumerate(widths)]
        rules = self._rules() if self.contention else None
        slowest = _slowest(jobs, rules, max(sizes)) if rules else 1.0
        return {
            "jobs": jobs,
            "slots": enough_slots(jobs, sum(sizes), self.slot_s, slowest) if self.slots is None else self.slots,
            "slot_s": self.slot_s,
            "servers": [ServerGroup(count=sizes.count(size), capacity={"gpu": size}) for size in sorted(set(sizes))],
            "contention": rules,
            "objective": "makespan",
            "preemptive": False,
            "note": "A synthetic setting in the style of SJF-BCO (MobiHoc 2022), not its data",
        }

    def _rules(self) -> Contention:
        part("share", self.share)
        at_least("degradation", self.degradation, 0)
        return Contention(
            between_servers_bytes_per_s=self.bandwidth_bytes_per_s,
            within_server_bytes_per_s=10 * self.bandwidth_bytes_per_s,
            degradation=self.degradation,
            share=self.share,
            server_overhead_s=1e-4,
        )


def _server_sizes(rng: np.random.Generator, gpus: int | None, servers: int) -> list[int]:
    if gpus is None:
        return [int(size) for size in rng.choice(_SIZES, servers)]
    at_least("gpus", gpus, 1)
    sizes: list[int] = []
    while (left := gpus - sum(sizes)) > 0:
        fitting = [size for size in _SIZES if size <= left] or [left]
        sizes.append(int(rng.choice(fitting)))
    return sizes


def _mixed(jobs: int, widest: int) -> list[int]:
    """Widths in the proportions of the mix, by largest remainders."""
    mix = {width: count for width, count in _MIX.items() if width <= widest}
    exact = {width: jobs * count / sum(mix.values()) for width, count in mix.items()}
    counts = {width: int(amount) for width, amount in exact.items()}
    by_remainder = sorted(mix, key=lambda width: (counts[width] - exact[width], width))
    for width in by_remainder[: jobs - sum(counts.values())]:
        counts[width] += 1
    return [width for width, count in counts.items() for _ in range(count)]


def _gang(rng: np.random.Generator, place: int, width: int, bandwidth_bytes_per_s: float) -> Job:
    iteration_s, moved = rng.uniform(0.01, 0.05), rng.uniform(0.05, 0.15)
    alone = max(width, 2)  # a single worker's gradient never moves
    timing = RingTiming(
        gradient_bytes=figure(moved * iteration_s * bandwidth_bytes_per_s * alone / (2 * (alone - 1))),
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        forward_s_per_sample=figure((1 - moved) * iteration_s if width > 1 else iteration_s),
    )
    return Job(
        name=f"gang-{place}",
        min_workers=width,
        max_workers=width,
        timing=timing,
        minibatches=float(width * rng.integers(1000, 6001)),
    )


def _slowest(jobs: list[Job], rules: Contention, most_rings: int) -> float:
    """How many times slower a job can become with the most rings on a card and a worker on each server."""
    at_once = max(1.0, rules.share * most_rings)
    bandwidth = rules.between_servers_bytes_per_s / (at_once + rules.degradation * (at_once - 1))
    ratios = []
    for job in jobs:
        width = job.max_workers
        worst = float(job.timing.iteration_s(width, bandwidth)) + width * rules.server_overhead_s
        ratios.append(worst / float(job.timing.iteration_s(width)))
    return max(ratios)
