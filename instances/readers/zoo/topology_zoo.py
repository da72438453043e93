"""Networks of the Internet Topology Zoo with training jobs on them."""

from pathlib import Path

import numpy as np

from ddlopt.instances.generators.aggregation.graph import hosts_at_switches
from ddlopt.instances.generators.aggregation.jobs import JobOptions, instance_on
from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.zoo.zoo_graph import read_zoo_file, restricted
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.sizes import require_memory

_BYTES_EACH = 20_000
"""What a job or host takes, roughly."""


@checked
def read_topology_zoo(
    path: str | Path,
    *,
    jobs: int = 4,
    workers: int = 4,
    hosts: int = 1,
    seed: int = 0,
    placement: str = "random",
    gradient_bytes: float | None = None,
    bandwidth_bytes_per_s: float = 1.25e9,
    speeds: bool = True,
    largest: bool = True,
    slots: int = 2,
    job_slots: int = 1,
    aggregation_bytes_per_s: float | None = None,
    goal: str = "congestion",
    aggregators: int | None = None,
    connections: int | None = None,
    merging: bool = False,
    name: str | None = None,
) -> GraphInstance:
    """A network whose nodes are switches with hosts, and jobs drawn by seed.

    Parameters
    ----------
    path : str or Path
        A file ``.gml`` or ``.graphml``.
    jobs, workers, placement, gradient_bytes, slots, job_slots, aggregation_bytes_per_s, goal
        See :class:`~ddlopt.instances.generators.aggregation.jobs.JobOptions`.
    hosts : int
        At each node.
    seed : int
        Of the jobs.
    bandwidth_bytes_per_s : float
        Of links of hosts, and of links for which the file has none.
    speeds : bool
        Whether bandwidths of the file (``LinkSpeedRaw``) are used.
    largest : bool
        Whether a network in several parts is cut down to the largest one; it is refused otherwise.
    aggregators, connections, merging
        Fields of the instance.
    name : str, optional
        None: that of the file.

    Raises
    ------
    InstanceError
        If the file cannot be read or holds no network in one part.
    OptionError
        If an option is out of range.
    """
    at_least("hosts", hosts, 1)
    at_least("seed", seed, 0)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    for what, count in (("jobs", jobs), ("hosts", hosts), ("slots", slots)):
        if isinstance(count, int):
            require_memory(f"{what} is {count}: so many", _BYTES_EACH * count, OptionError)
    file = read_zoo_file(path)
    if len(file.parts) > 1 and not largest:
        raise InstanceError(
            f"{path}: the network is in {len(file.parts)} parts; with largest=true, that with {len(file.parts[0])} of "
            f"its {len(file.graph.names)} nodes is taken"
        )
    graph = restricted(file.graph, file.parts[0])
    known = graph.bandwidths if speeds and graph.bandwidths is not None else (None,) * len(graph.edges)
    job_options = JobOptions(
        jobs, workers, placement, gradient_bytes, slots, job_slots, aggregation_bytes_per_s, goal, aggregators,
        connections, merging,
    )  # fmt: skip
    fabric = hosts_at_switches(
        list(graph.names),
        list(graph.edges),
        bandwidth_bytes_per_s,
        hosts,
        [bandwidth_bytes_per_s if each is None else each for each in known],
    )
    told = [
        file.origin,
        f"{sum(each is not None for each in known)} of {len(known)} bandwidths from the file, "
        f"others {bandwidth_bytes_per_s:g} bytes/s",
        f"{jobs} jobs drawn with seed {seed}",
    ]
    if len(file.parts) > 1:
        told.append(f"the largest of {len(file.parts)} parts")
    if file.parallel or file.loops:
        told.append(f"{file.parallel} parallel edges merged, {file.loops} loops dropped")
    chosen = name or f"zoo-{Path(path).name.partition('.')[0].lower()}-j{jobs}-w{workers}-{goal}"
    return instance_on(np.random.default_rng(seed), chosen, "; ".join(told), fabric, job_options)
