"""Small instances of ``slots``, and their optima by enumeration."""

import itertools
import math
from typing import Any

import numpy as np

from ddlopt.models.aggregation.slots.instance import SlotsInstance


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


def optimum_by_enumeration(instance: SlotsInstance) -> float:
    """The optimum of whole slots without links, over all numbers of slots and choices of who falls back."""
    assert instance.whole
    assert not instance.links
    menus = []
    for job in instance.jobs:
        ranges = [range(1, instance.switches[s].slots + 1) for s in job.switches]
        menu: list[tuple[dict[int, int], float]] = []
        for slots in itertools.product(*ranges):
            held = [
                n * instance.switches[s].payload_bytes / job.rtt_s for n, s in zip(slots, job.switches, strict=True)
            ]
            rate = min(job.nic_bytes_per_s, *held)
            time = job.weight * job.iterations * (job.compute_s + job.gradient_bytes / rate)
            menu.append((dict(zip(job.switches, slots, strict=True)), time))
        if job.fallback_bytes_per_s is not None:
            time = job.weight * job.iterations * (job.compute_s + job.gradient_bytes / job.fallback_bytes_per_s)
            menu.append(({}, time))
        menus.append(menu)
    best = math.inf
    for chosen in itertools.product(*menus):
        used = [sum(slots.get(s, 0) for slots, _ in chosen) for s in range(len(instance.switches))]
        if all(n <= switch.slots for n, switch in zip(used, instance.switches, strict=True)):
            times = [time for _, time in chosen]
            best = min(best, math.fsum(times) if instance.goal == "total" else max(times))
    return best
