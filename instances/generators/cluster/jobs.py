"""Jobs that share the servers of a cluster, with tables of step times by Amdahl's law and a price of talking."""

from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.models.cluster.jobs.instance import JobsInstance


def jobs(
    rng: np.random.Generator,
    *,
    jobs: int = 6,
    servers: int = 8,
    widest: int | None = None,
    mode: str = "rigid",
    objective: str = "makespan",
    spread: float = 0.5,
    known: float = 1.0,
    slack: float = 2.0,
) -> JobsInstance:
    """A step takes a part that servers share, a part that they do not, and some time for each server more.

    On one server it takes 2 to 20 s in whole seconds; on w of them (p + (1 - p) / w + c (w - 1)) of that, with p up to
    a tenth and c up to a fiftieth, rounded to tenths of a second: not always less with more servers. Jobs have 10 to 60
    iterations. Slots are as long as the mean job takes on two servers, over six.

    Parameters
    ----------
    jobs : int
        How many.
    servers : int
        Of the cluster, all equal.
    widest : int, optional
        Servers of a job at most; None: all.
    mode : {"rigid", "slots"}
        Whether a job keeps its servers until it ends, or widths may change from slot to slot.
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}
        The last end; the weighted sum of ends; or of how late jobs end.
    spread : float
        Arrivals are within this part of what all jobs take one after the other on all servers.
    known : float
        How near to the best plan's time, at least, a step time is; below 1 there are bounds ``least_s``.
    slack : float
        Deadlines are this many times the time on two servers after the arrival.
    """
    at_least("jobs", jobs, 1)
    at_least("servers", servers, 1)
    most = servers if widest is None else widest
    at_least("widest", most, 1)
    one_of("mode", mode, ("rigid", "slots"))
    one_of("objective", objective, ("makespan", "weighted_completion", "weighted_tardiness"))
    at_least("spread", spread, 0)
    part("known", known)
    positive("known", known)
    positive("slack", slack)
    found: list[dict[str, Any]] = []
    for place in range(jobs):
        alone, serial, talk = float(rng.integers(2, 21)), rng.uniform(0, 0.1), rng.uniform(0, 0.02)
        widths = range(1, min(most, servers) + 1)
        steps = [max(0.1, round(alone * (serial + (1 - serial) / w + talk * (w - 1)), 1)) for w in widths]
        job: dict[str, Any] = {
            "name": f"job-{place}",
            "iterations": int(rng.integers(10, 61)),
            "weight": int(rng.integers(1, 5)),
            "step_s": steps,
        }
        if known < 1:
            job["least_s"] = [float(f"{step * rng.uniform(known, 1):.4g}") for step in steps]
        found.append(job)
    whole = sum(job["iterations"] * min(job["step_s"]) for job in found)
    for job in found:
        job["arrival_s"] = float(int(rng.uniform(0, spread * whole)))
        job["deadline_s"] = float(round(job["arrival_s"] + slack * _on_two(job)))
    slot = float(f"{max(1.0, sum(map(_on_two, found)) / len(found) / 6):.2g}")
    return JobsInstance.from_data(
        {
            "name": f"jobs-{mode}-j{jobs}-k{servers}",
            "source": "step times by assumed laws, no measurements",
            "servers": servers,
            "jobs": found,
            "mode": mode,
            "slot_s": slot if mode == "slots" else None,
            "objective": objective,
        }
    )


def _on_two(job: dict[str, Any]) -> float:
    """Seconds on two servers, or one where there are no more."""
    return float(job["iterations"] * job["step_s"][min(1, len(job["step_s"]) - 1)])
