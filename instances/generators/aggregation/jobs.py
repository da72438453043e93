"""Training jobs on the hosts of a network of switches, drawn by seed; and the instance that they make with it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads import bert, gpt2, resnet50, resnet101, vgg16, vgg19
from ddlopt.instances.workloads.training import Workload
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.errors import OptionError

PLACEMENTS = ("random", "clustered")
GOALS = ("utilization", "congestion", "rates")


class Fabric(NamedTuple):
    """Switches, cables between them, and hosts.

    Parameters
    ----------
    switches : sequence of str
        Names.
    cables : sequence of (int, int, float)
        Two switches, and bytes per second of each direction.
    hosts : sequence of (str, int)
        Name, and the switch that it hangs on; neighbours in the sequence are near to each other.
    host_bandwidth_bytes_per_s : float
    """

    switches: Sequence[str]
    cables: Sequence[tuple[int, int, float]]
    hosts: Sequence[tuple[str, int]]
    host_bandwidth_bytes_per_s: float


class JobOptions(NamedTuple):
    """How many jobs there are, what they send, and what the switches can do.

    Parameters
    ----------
    jobs, workers : int
        Jobs, and workers of each; a host is a worker or the server of one job at most, while there are enough hosts,
        and of several otherwise.
    placement : {"random", "clustered"}
        Hosts of a job: drawn one by one, or neighbours.
    gradient_bytes : float, optional
        None: those of a network drawn for each job.
    slots, job_slots : int
        Of each switch, and what a job needs of them where it is aggregated.
    aggregation_bytes_per_s : float, optional
        Of each switch.
    goal, aggregators, connections, merging
        Fields of the instance.
    """

    jobs: int = 4
    workers: int = 3
    placement: str = "random"
    gradient_bytes: float | None = None
    slots: int = 2
    job_slots: int = 1
    aggregation_bytes_per_s: float | None = None
    goal: str = "congestion"
    aggregators: int | None = None
    connections: int | None = None
    merging: bool = False


def networks() -> tuple[Workload, ...]:
    """Those whose gradients the jobs send."""
    return (resnet50(1), resnet101(1), vgg16(1), vgg19(1), bert(12, 768, 512, 1), gpt2(1))


def refuse_odd(job_options: JobOptions) -> None:
    """Raise OptionError where an option is out of its range."""
    for option in ("jobs", "workers", "job_slots"):
        at_least(option, getattr(job_options, option), 1)
    at_least("slots", job_options.slots, 0)
    one_of("placement", job_options.placement, PLACEMENTS)
    one_of("goal", job_options.goal, GOALS)
    for option in ("gradient_bytes", "aggregation_bytes_per_s"):
        if getattr(job_options, option) is not None:
            positive(option, getattr(job_options, option))


def instance_on(
    rng: np.random.Generator, name: str, source: str, fabric: Fabric, job_options: JobOptions
) -> GraphInstance:
    """Jobs on the hosts of a network; nodes are the hosts, then the switches.

    Raises
    ------
    OptionError
        If a job needs more hosts than there are.
    """
    refuse_odd(job_options)
    count = len(fabric.hosts)
    if job_options.workers + 1 > count:
        raise OptionError(f"workers is {job_options.workers}; with the server that is more than the {count} hosts")
    groups = _groups(rng, count, job_options)
    drawn = networks()
    jobs = []
    for number, group in enumerate(groups):
        network = drawn[rng.integers(len(drawn))]
        size = network.gradient_bytes if job_options.gradient_bytes is None else job_options.gradient_bytes
        jobs.append(
            {
                "name": f"job{number}" if job_options.gradient_bytes is not None else f"job{number}.{network.name}",
                "workers": sorted(group[1:]),
                "server": group[0],
                "gradient_bytes": float(size),
                "slots": job_options.job_slots,
            }
        )
    switch = {"slots": job_options.slots, "aggregation_bytes_per_s": job_options.aggregation_bytes_per_s}
    return GraphInstance.from_data(
        {
            "name": name,
            "source": source,
            "nodes": [{"name": host, "forwards": False} for host, _ in fabric.hosts]
            + [{"name": each, **switch} for each in fabric.switches],
            "links": [
                {"ends": (host, count + place), "bandwidth_bytes_per_s": fabric.host_bandwidth_bytes_per_s}
                for host, (_, place) in enumerate(fabric.hosts)
            ]
            + [
                {"ends": (count + one, count + other), "bandwidth_bytes_per_s": bandwidth}
                for one, other, bandwidth in fabric.cables
            ],
            "jobs": jobs,
            "goal": job_options.goal,
            "aggregators": job_options.aggregators,
            "connections": job_options.connections,
            "merging": job_options.merging,
        },
        name,
    )


def _groups(rng: np.random.Generator, hosts: int, job_options: JobOptions) -> list[list[int]]:
    """Server and workers of each job."""
    size = job_options.workers + 1
    groups: list[list[int]] = []
    left: list[int] = []
    for _ in range(job_options.jobs):
        if len(left) < size:
            # Enough hosts for the next job: all are free again.
            left = list(range(hosts))
        if job_options.placement == "random":
            group = rng.choice(left, size, replace=False).tolist()
        else:
            first = int(rng.integers(len(left) - size + 1)) if len(left) == hosts else 0
            group = rng.permutation(left[first : first + size]).tolist()
        left = [host for host in left if host not in set(group)]
        groups.append(group)
    return groups
