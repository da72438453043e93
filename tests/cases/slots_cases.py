"""Small instances of ``slots``, and their optima by enumeration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from ddlopt.certificates.aggregation.slots.exact_bounds import exact_slots_bound
from ddlopt.models.aggregation import bound
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotJob, SlotsInstance, Stay
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.aggregation.slots.slowest import least_slowest_s


def slots_instance(
    seed: int,
    jobs: int = 3,
    switches: int = 2,
    links: int = 0,
    whole: bool = True,
    back: float = 0.0,
    goal: str = "total",
    slots: tuple[int, int] = (3, 9),
) -> SlotsInstance:
    """A random instance; switches of one payload where the seed is even."""
    rng = np.random.default_rng(seed)
    payloads = [float(rng.choice([128, 256])) if seed % 2 else 256.0 for _ in range(switches)]
    data: dict[str, Any] = {
        "name": f"random-{seed}",
        "goal": goal,
        "whole": whole,
        "switches": [
            {"name": f"s{k}", "slots": int(rng.integers(*slots)), "payload_bytes": payload}
            for k, payload in enumerate(payloads)
        ],
        "links": [{"name": f"l{k}", "bandwidth_bytes_per_s": float(10 ** rng.uniform(7.5, 8.5))} for k in range(links)],
        "jobs": [
            {
                "name": f"j{k}",
                "weight": float(rng.choice([1.0, 2.0])),
                "iterations": int(rng.integers(1, 50)),
                "compute_s": float(rng.exponential(0.1)),
                "gradient_bytes": float(10 ** rng.uniform(7, 9)),
                "nic_bytes_per_s": 1.25e8,
                "rtt_s": float(rng.uniform(5e-6, 2e-5)),
                "switches": sorted(rng.choice(switches, int(rng.integers(1, switches + 1)), replace=False).tolist()),
                "links": [int(each) for each in rng.integers(0, links, 2)] if links else [],
                "fallback_bytes_per_s": float(10 ** rng.uniform(7, 7.9)) if rng.random() < back else None,
            }
            for k in range(jobs)
        ],
    }
    return SlotsInstance.from_data(data)


def delivered(instance: SlotsInstance, seed: int) -> SlotsInstance:
    """The same with packets that are late or lost, other ones for each job."""
    rng, data = np.random.default_rng(seed), instance.model_dump(mode="json")
    for job in data["jobs"]:
        job["delivery"] = {
            "workers": rng.integers(1, 9, len(job["switches"])).tolist(),
            "delays_s": sorted(rng.uniform(5e-6, 5e-5, 2).tolist()),
            "chances": rng.uniform(0.01, 0.2, 2).tolist(),
            "loss": float(rng.choice([0.0, 0.001, 0.05])),
            "timeout_s": float(rng.choice([3e-5, 2e-4])),
        }
    return SlotsInstance.from_data(data)


def overlapped(instance: SlotsInstance, seed: int) -> SlotsInstance:
    """The same with most gradients in buckets, of which some are ready before the computation ends."""
    rng, data = np.random.default_rng(seed), instance.model_dump(mode="json")
    for job in data["jobs"]:
        count = int(rng.integers(0, 5))
        job["compute_s"] = float(rng.choice([0.1, 2.0, 10.0]))
        if count:
            sizes = (rng.dirichlet(np.ones(count)) * job["gradient_bytes"]).tolist()
            ready = sorted((rng.random(count) * job["compute_s"]).tolist())
            job["buckets"] = [{"size_bytes": s, "ready_s": r} for s, r in zip(sizes, ready, strict=True)]
    return SlotsInstance.from_data(data)


def staying(instance: SlotsInstance, seed: int) -> SlotsInstance:
    """The same with most jobs there for a time only; some come when others leave."""
    rng, data = np.random.default_rng(seed), instance.model_dump(mode="json")
    for job in data["jobs"]:
        if rng.random() < 0.8:
            begins_s = int(rng.integers(0, 6))
            job["stay"] = {"begins_s": begins_s, "ends_s": begins_s + int(rng.integers(1, 5))}
    return SlotsInstance.from_data(data)


def iteration_s(job: SlotJob, rate: float) -> float:
    """Seconds of an iteration, bucket by bucket."""
    clock = 0.0
    for bucket in job.buckets:
        clock = max(clock, bucket.ready_s) + bucket.size_bytes / rate
    return max(clock, job.compute_s) if job.buckets else job.compute_s + job.gradient_bytes / rate


def expected_hold_s(job: SlotJob, number: int) -> float:
    """Seconds for which a packet holds a slot: the maximum is below a time if all workers are, summed over times."""
    if job.delivery is None:
        return job.rtt_s
    given, workers = job.delivery, job.delivery.workers[number]
    ways = {0.0: 1.0 - sum(given.chances), **dict(zip(given.delays_s, given.chances, strict=True))}
    single = {
        delay + k * given.timeout_s: chance * (1 - given.loss) * given.loss**k
        for k in range(40 if given.loss else 1)
        for delay, chance in ways.items()
    }
    below, found = 0.0, job.rtt_s
    for time, chance in sorted(single.items()):
        found += time * ((below + chance) ** workers - below**workers)
        below += chance
    return found


def optimum_by_enumeration(instance: SlotsInstance) -> float:
    """The optimum of whole slots with links out of the way, over all numbers of slots and who falls back."""
    assert instance.whole
    for link, each in enumerate(instance.links):
        most = [
            job.links.count(link) * instance.switches[s].slots * instance.switches[s].payload_bytes / job.rtt_s
            for job in instance.jobs
            for s in job.switches[:1]
        ]
        assert sum(most) <= each.bandwidth_bytes_per_s
    menus = []
    for job in instance.jobs:
        ranges = [range(1, instance.switches[s].slots + 1) for s in job.switches]
        menu: list[tuple[dict[int, int], float]] = []
        gives = [instance.switches[s].payload_bytes / expected_hold_s(job, k) for k, s in enumerate(job.switches)]
        card = job.nic_bytes_per_s * (1 - job.delivery.loss if job.delivery else 1)
        for slots in itertools.product(*ranges):
            rate = min([card, *(n * give for n, give in zip(slots, gives, strict=True))])
            # A slot fewer at some switch would do for the same rate.
            if any(n > 1 and (n - 1) * give >= rate for n, give in zip(slots, gives, strict=True)):
                continue
            time = job.weight * job.iterations * iteration_s(job, rate)
            menu.append((dict(zip(job.switches, slots, strict=True)), time))
        if job.fallback_bytes_per_s is not None:
            time = job.weight * job.iterations * iteration_s(job, job.fallback_bytes_per_s)
            menu.append(({}, time))
        menus.append(menu)
    best = math.inf
    always = Stay(begins_s=0.0, ends_s=1e300)
    stays = [job.stay or always for job in instance.jobs]
    seconds = [[each.begins_s <= stay.begins_s < each.ends_s for each in stays] for stay in stays]
    for chosen in itertools.product(*menus):
        used = [
            max(
                sum(slots.get(s, 0) for (slots, _), here in zip(chosen, there, strict=True) if here)
                for there in seconds
            )
            for s in range(len(instance.switches))
        ]
        if all(n <= switch.slots for n, switch in zip(used, instance.switches, strict=True)):
            times = [time for _, time in chosen]
            best = min(best, math.fsum(times) if instance.goal == "total" else max(times))
    return best


def assert_bounds_hold(instance: SlotsInstance, seed: int) -> None:
    """Bounds are below what enumeration finds, and meet it for the slowest job; so are those of random prices."""
    optimum, arrays = optimum_by_enumeration(instance), SlotArrays(instance)
    assert bound(instance) <= optimum * (1 + 1e-12)
    if instance.goal == "slowest":
        assert bound(instance) == pytest.approx(optimum, rel=1e-9)
        assert least_slowest_s(arrays)[1] == pytest.approx(optimum, rel=1e-12)
        exact = exact_slots_bound(instance)
        assert (1 - 1e-8) * optimum <= float(exact) <= optimum * (1 + 1e-12)
        return
    rng = np.random.default_rng(seed)
    for _ in range(20):
        prices = optimum / arrays.limits * 10 ** rng.uniform(-4, 0, len(arrays.limits))
        assert price_bound(arrays, prices) <= optimum * (1 + 1e-12)
