"""Jobs of a cluster that share aggregating switches: kind ``slots``."""

import math
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads.cluster_models import CLUSTER_MODELS, cluster_model
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.models.errors import OptionError

HARDWARE: dict[str, tuple[int, float]] = {"switchml": (8192, 256.0), "atp": (40_000, 128.0)}
"""Slots and payload bytes of published programs for one pipeline of a Tofino switch.

SwitchML (p4lang/p4app-switchML, ``configuration.p4`` and README): 16 384 registers of 64 bits in each of 32 arrays,
half of them a shadow copy, 64 values of 32 bits a packet. ATP (in-ATP/ATP, ``registers.p4``, ``headers.p4``): 40 000
registers of 32 bits in each of 32 arrays.
"""
TIMEOUT_US, SLOW_US = 1000.0, 100.0
"""SwitchML sends again after a millisecond; ten round trips of this generator, ours."""
MOST_BUCKETS = 1000
"""More are of no use to anybody."""
LONGER = 2.0
"""Ours: jobs are expected to be slowed down by others, and reserve time for it."""
UNEVEN = 4.0
"""Between the mean and the most or least often that packets of a job are lost or late; ours, so that jobs differ."""


def shared(
    rng: np.random.Generator,
    jobs: int = 12,
    racks: int = 4,
    workers: int = 8,
    spread: float = 0.5,
    hardware: str = "switchml",
    memory: float = 0.25,
    nic_gbit_per_s: float = 100.0,
    uplink_gbit_per_s: float = 400.0,
    rtt_us: float = 10.0,
    servers: float = 0.0,
    goal: str = "total",
    whole: bool = False,
    loss: float | None = None,
    timeout_us: float | None = None,
    slow_chance: float | None = None,
    slow_us: float | None = None,
    bucket_mb: float | None = None,
    at_once: float | None = None,
) -> SlotsInstance:
    """Jobs in racks whose switches aggregate, and where a job has several racks the switch above them too.

    A job trains a network of :data:`~ddlopt.instances.workloads.cluster_models.CLUSTER_MODELS`; gradient bytes and
    compute seconds are that module's. Each rack of a job sends one sum over the rack's link to the switch above.

    Parameters
    ----------
    rng : numpy.random.Generator
    jobs, racks : int
    workers : int
        Mean number of a job; numbers are powers of two about it.
    spread : float
        Part of the jobs with workers in several racks.
    hardware : {"switchml", "atp"}
        See :data:`HARDWARE`.
    memory : float
        Part of the slots that there is for these jobs.
    nic_gbit_per_s, uplink_gbit_per_s : float
        Of a worker's network card, and from a rack's switch upwards.
    rtt_us : float
        Geometric mean; drawn up to a factor of two about it.
    servers : float
        Part of the jobs that may fall back on a server, whose network card the gradients of all workers share.
    goal : {"total", "slowest"}
    whole : bool
    loss, slow_chance : float, optional
        Chances that a packet of a worker is lost, and that it is late; without either, jobs have no ``delivery``.
        Those of a job are drawn up to a factor of :data:`UNEVEN` about them, at most 0.5. Workers are spread evenly
        over racks.
    timeout_us, slow_us : float, optional
        After which what was lost is sent again, 1000 unless given; by which a packet is late, 100.
    bucket_mb : float, optional
        Largest bucket of gradients, in 10^6 bytes; PyTorch's is 25 unless told otherwise. Buckets of a job are equal,
        and ready one after the other as the backward pass goes on evenly; without, all of it is sent after the pass.
    at_once : float, optional
        Mean number of jobs that are there at the same time; without, all of them always are. A job stays :data:`LONGER`
        times as long as its iterations would take by itself. Jobs come at random, in their order, while the first ones
        could be leaving: over a time of the sum of all stays over this number.

    Returns
    -------
    SlotsInstance
    """
    for option, value in (("jobs", jobs), ("racks", racks), ("workers", workers)):
        at_least(option, value, 1)
    for option, number in (
        ("memory", memory), ("nic_gbit_per_s", nic_gbit_per_s), ("uplink_gbit_per_s", uplink_gbit_per_s),
        ("rtt_us", rtt_us),
    ):  # fmt: skip
        positive(option, number)
    at_least("spread", spread, 0)
    for chance, often, figure, given in (
        ("loss", loss, "timeout_us", timeout_us),
        ("slow_chance", slow_chance, "slow_us", slow_us),
    ):
        part(chance, often or 0.0)
        positive(figure, 1.0 if given is None else given)
        if given is not None and often is None:
            raise OptionError(f"{figure} is given without {chance}; say how often that happens")
    positive("bucket_mb", 1.0 if bucket_mb is None else bucket_mb)
    positive("at_once", 1.0 if at_once is None else at_once)
    at_least("servers", servers, 0)
    one_of("hardware", hardware, tuple(HARDWARE))
    one_of("goal", goal, ("total", "slowest"))
    slots, payload = HARDWARE[hardware]
    drawn = [_job(rng, number, racks, workers, spread, nic_gbit_per_s, rtt_us, servers) for number in range(jobs)]
    counts = [job.pop("workers") for job in drawn]
    backward_s = [job.pop("backward_s") for job in drawn]
    if bucket_mb is not None:
        for job, seconds in zip(drawn, backward_s, strict=True):
            # From 10^6 bytes
            job["buckets"] = _buckets(job, seconds, 1e6 * bucket_mb)
    if loss is not None or slow_chance is not None:
        chances = (loss or 0.0, slow_chance or 0.0)
        figures_us = (TIMEOUT_US if timeout_us is None else timeout_us, SLOW_US if slow_us is None else slow_us)
        # After everything else, so that jobs are those of the same seed without.
        for job, count in zip(drawn, counts, strict=True):
            job["delivery"] = _delivery(rng, job, count, chances, figures_us)
    if at_once is not None:
        for job, stay in zip(drawn, _stays(rng, drawn, at_once), strict=True):
            job["stay"] = stay
    names = [f"rack{k}" for k in range(racks)] + (["spine"] if racks > 1 else [])
    return SlotsInstance.from_data(
        {
            "name": f"slots-{hardware}-n{jobs}-r{racks}",
            "switches": [
                {"name": name, "slots": max(1, round(memory * slots)), "payload_bytes": payload} for name in names
            ],
            "links": [
                {"name": f"rack{k} up", "bandwidth_bytes_per_s": uplink_gbit_per_s * GIGABIT_PER_S}
                for k in range(racks if racks > 1 else 0)
            ],
            "jobs": drawn,
            "goal": goal,
            "whole": whole,
        }
    )


def _job(
    rng: np.random.Generator,
    number: int,
    racks: int,
    workers: int,
    spread: float,
    nic_gbit_per_s: float,
    rtt_us: float,
    servers: float,
) -> dict[str, Any]:
    model = cluster_model(str(rng.choice(CLUSTER_MODELS)))
    count = max(2, workers * 2 ** int(rng.integers(-1, 2)))
    wide = racks > 1 and rng.random() < spread
    own = sorted(rng.choice(racks, int(rng.integers(2, min(racks, count) + 1)) if wide else 1, replace=False).tolist())
    nic = nic_gbit_per_s * GIGABIT_PER_S
    return {
        "name": f"{model.name}-{number}",
        "workers": count,
        "backward_s": model.backward_s,
        "iterations": round(10 ** rng.uniform(2, 4)),
        "compute_s": _rounded(model.forward_s_per_sample * model.batch_samples + model.backward_s),
        "gradient_bytes": model.gradient_bytes,
        "nic_bytes_per_s": nic,
        # From microseconds
        "rtt_s": _rounded(1e-6 * rtt_us * 2 ** rng.uniform(-1, 1)),
        "switches": [*own, racks] if wide else own,
        "links": own if wide else [],
        "fallback_bytes_per_s": _rounded(nic / count) if rng.random() < servers else None,
    }


def _buckets(job: dict[str, Any], backward_s: float, largest: float) -> list[dict[str, Any]]:
    count = math.ceil(job["gradient_bytes"] / largest)
    if count > MOST_BUCKETS:
        raise OptionError(f"bucket_mb is {largest / 1e6:g}, {count} buckets of a job; at most {MOST_BUCKETS} are made")
    return [
        {
            "size_bytes": job["gradient_bytes"] / count,
            "ready_s": job["compute_s"] - backward_s * (count - k) / count,
        }
        for k in range(1, count + 1)
    ]


def _stays(rng: np.random.Generator, jobs: list[dict[str, Any]], at_once: float) -> list[dict[str, float]]:
    alone = [job["compute_s"] + job["gradient_bytes"] / job["nic_bytes_per_s"] for job in jobs]
    stays = [LONGER * job["iterations"] * seconds for job, seconds in zip(jobs, alone, strict=True)]
    begins = sorted((rng.random(len(jobs)) * math.fsum(stays) / at_once).tolist())
    return [{"begins_s": _rounded(b), "ends_s": _rounded(b) + _rounded(s)} for b, s in zip(begins, stays, strict=True)]


def _delivery(
    rng: np.random.Generator,
    job: dict[str, Any],
    count: int,
    chances: tuple[float, float],
    figures_us: tuple[float, float],
) -> dict[str, Any]:
    racks = len(job["links"]) or 1
    below = [(count + rack) // racks for rack in range(racks)]
    own_loss, own_slow = (min(0.5, _rounded(chance * UNEVEN ** rng.uniform(-1, 1))) for chance in chances)
    # From microseconds
    timeout_s, slow_s = (_rounded(1e-6 * figure) for figure in figures_us)
    return {
        "workers": [*below, count] if job["links"] else below,
        "delays_s": [slow_s] if own_slow else [],
        "chances": [own_slow] if own_slow else [],
        "loss": own_loss,
        "timeout_s": timeout_s,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
