"""Jobs of TopoOpt's networks, or small transformers, that share servers with optical links of their own."""

from math import ceil
from typing import Any

import numpy as np

from ddlopt.instances.generators.codesign import generate as codesign
from ddlopt.instances.generators.codesign.jobs import network_job
from ddlopt.instances.generators.deployment import generate as deployment
from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.accelerators import Accelerator
from ddlopt.instances.workloads.racks import in_racks
from ddlopt.instances.workloads.topoopt import JOBS, setting_of
from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.models.errors import OptionError

SMALL = ("tiny-step", "tiny-codesign")
"""Workloads beside TopoOpt's, whose plans are found in an instant."""
# Definitions.
_HOURS_S = 3600.0
_BYTES_OF_GIGABIT = 1e9 / 8  # eight bits a byte


def joint(
    rng: np.random.Generator,
    *,
    jobs: int = 4,
    servers: int = 8,
    workloads: tuple[str, ...] = ("tiny-step", "tiny-codesign"),
    widths: tuple[int, ...] = (),
    degree: int = 4,
    gigabit_per_s: float = 100.0,
    hours: float = 2.0,
    spread: float = 0.25,
    slack: float = 2.0,
    objective: str = "makespan",
    rack: int | None = None,
    uplink_gigabit_per_s: float | None = None,
) -> JointInstance:
    """Jobs that take turns with the workloads, and take about a given number of hours on the fewest servers.

    An iteration has the same samples on any number of servers, as many as TopoOpt's job has on the fewest ones.
    The hours are drawn between a half and three halves; arrivals within a part ``spread`` of all hours over the
    servers, deadlines ``slack`` times its hours after a job's arrival, weights 1 to 4. What a job's iterations take
    is guessed from the simplest bound, so that plans decide nothing of the instance.

    Parameters
    ----------
    jobs, servers : int
        How many.
    workloads : tuple of str
        Jobs of :data:`ddlopt.instances.workloads.topoopt.JOBS`, as co-designs; ``tiny-step``, a transformer of
        two blocks, and ``tiny-codesign``, four layers of a drawn network.
    widths : tuple of int
        Servers that a job may have; empty: powers of two from 2 on.
    degree : int
        Of a server's optics, at most; one less than there are servers where they are few.
    gigabit_per_s : float
        Of an optical link.
    hours : float
        Of a job in the mean.
    spread, slack : float
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}
    rack : int, optional
        Servers of a rack, which share its uplink; without it nothing is shared.
    uplink_gigabit_per_s : float, optional
        Of a rack, in each direction. A job in several racks sends a ring's share of its gradients over each uplink.
    """
    _check_racks(servers, rack, uplink_gigabit_per_s)
    at_least("jobs", jobs, 1)
    at_least("servers", servers, 1)
    at_least("spread", spread, 0)
    positive("hours", hours)
    positive("slack", slack)
    one_of("objective", objective, ("makespan", "weighted_completion", "weighted_tardiness"))
    for workload in workloads:
        one_of("workloads", workload, (*JOBS, *SMALL))
    if not workloads:
        raise OptionError("workloads is empty; name at least one")
    chosen = sorted(set(widths)) or [2**power for power in range(1, 20) if 2**power <= servers] or [1]
    at_least("widths", chosen[0], 1)
    problems, menus = list[Instance](), list[dict[str, Any]]()
    for workload in workloads:
        choices: list[dict[str, Any]] = []
        for width in chosen:
            made = _problem(workload, width, chosen[0], degree, gigabit_per_s, int(rng.integers(2**31)))
            devices = {"devices": width * _GPUS} if isinstance(made, StepInstance) else {}
            if devices and choices:
                problems[choices[-1]["problem"]] = made
                choices.append({"servers": width, "problem": choices[-1]["problem"], **devices})
            else:
                choices.append({"servers": width, "problem": len(problems), **devices})
                problems.append(made)
        menus.append({"name": workload, "choices": choices})
    data: dict[str, Any] = {
        "name": f"joint-j{jobs}-k{servers}",
        "servers": servers,
        "problems": problems,
        "workloads": menus,
        "objective": objective,
    }
    one = [{"name": "one", "workload": place, "iterations": 1} for place in range(len(workloads))]
    steps = [_guess_s(JointInstance.from_data(data | {"jobs": [job], "objective": "makespan"})) for job in one]
    found = []
    for place in range(jobs):
        kind = place % len(workloads)
        length_s = float(rng.uniform(0.5, 1.5)) * hours * _HOURS_S
        arrival_s = float(int(rng.uniform(0, spread * jobs * hours * _HOURS_S * chosen[0] / servers)))
        found.append(
            {
                "name": f"{workloads[kind]}-{place}",
                "workload": kind,
                "iterations": max(1, round(length_s / steps[kind])),
                "arrival_s": arrival_s,
                "weight": int(rng.integers(1, 5)),
                "deadline_s": round(arrival_s + slack * length_s),
            }
        )
    made = JointInstance.from_data(data | {"jobs": found, "source": "jobs by a drawn rule"})
    if rack is None or uplink_gigabit_per_s is None:
        return made
    shared = in_racks(made, rack, uplink_gigabit_per_s * _BYTES_OF_GIGABIT)
    return shared.changed(name=f"{made.name}-racks{rack}")


def _check_racks(servers: int, rack: int | None, uplink_gigabit_per_s: float | None) -> None:
    if (rack is None) != (uplink_gigabit_per_s is None):
        raise OptionError("rack and uplink_gigabit_per_s are given together, or neither is")
    if rack is None or uplink_gigabit_per_s is None:
        return
    at_least("rack", rack, 1)
    positive("uplink_gigabit_per_s", uplink_gigabit_per_s)
    if servers % rack:
        raise OptionError(f"rack is {rack}, and {servers} servers are no multiple of it")


_SHARED = 16
"""Servers of a job of TopoOpt's shared cluster, by which its setting is known."""
_GPUS = 2
"""Accelerators of a server of the tiny transformer."""


def _problem(workload: str, width: int, least: int, degree: int, gigabit_per_s: float, seed: int) -> Instance:
    if workload == "tiny-step":
        return deployment(
            "step", 1, layers=2, heads=4, sequence=256, global_batch=16, servers=width, gpus_per_server=_GPUS,
            memory_gigabytes=1.0,
        )  # fmt: skip
    if width < 2:
        raise OptionError(f"widths has {width}; a co-design takes at least 2 servers")
    own = min(degree, width - 1)
    if workload == "tiny-codesign":
        return codesign("random", seed, servers=width, degree=min(2, own), layers=2, strategies=2)
    return of_topoopt(workload, width, least, degree=own, gigabit_per_s=gigabit_per_s)


def of_topoopt(
    job: str,
    servers: int,
    least: int,
    batch_per_gpu: int | None = None,
    *,
    degree: int,
    gigabit_per_s: float | None = None,
    optics: str = "one_way",
    gpus_per_server: int | None = None,
    accelerator: str | Accelerator = "a100",
    memory_gigabytes: float | None = 40.0,
    compressors: tuple[str, ...] = (),
    error_budget: float | None = None,
) -> CodesignInstance:
    """A job of TopoOpt's shared cluster, on any number of servers the same network and the same samples.

    ``batch_per_gpu`` is that on the ``least`` servers, by default TopoOpt's; on more a GPU has fewer samples.
    """
    setting = setting_of(_SHARED)
    workload = setting.jobs[job]()
    return network_job(
        workload,
        setting.source,
        servers=servers,
        degree=degree,
        gigabit_per_s=setting.link_gigabit_per_s if gigabit_per_s is None else gigabit_per_s,
        gpus_per_server=setting.gpus_per_server if gpus_per_server is None else gpus_per_server,
        batch_per_gpu=share_of_batch(batch_per_gpu or workload.batch_per_gpu, least, servers),
        fabric={"optics": optics, "overlap": "none", "parallel_links": True, "host_forwarding": True},
        accelerator=accelerator,
        memory_gigabytes=memory_gigabytes,
        state_bytes_per_parameter=8.0,
        groups=None,
        subsets=None,
        owners="round_robin",
        measures=None,
        compressors=compressors,
        error_budget=error_budget,
    ).changed(name=f"{job}-n{servers}-d{degree}")


def share_of_batch(batch: int, least: int, width: int) -> int:
    """Samples of a GPU, of which it has ``batch`` on the fewest servers, so that an iteration is the same on more."""
    return max(1, ceil(batch * least / width))


def _guess_s(instance: JointInstance) -> float:
    """What a step takes at least, by the simplest bound of the workload's narrowest choice."""
    from ddlopt.models.cluster.joint.bounds import simple_step_bound

    choices = instance.workloads[instance.jobs[0].workload].choices
    return next((found for each in choices if (found := simple_step_bound(instance, each))), 1.0)
