"""Networks on which a collective runs: the links of a topology design, and the tiers of a cluster."""

from collections.abc import Mapping
from typing import Any

from ddlopt.instances.clusters.file import Cluster
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import CollectiveInstance, TopologyDesign, TopologyInstance
from ddlopt.models.topology.collective.instance import Arc, Link

# A definition.
_GIGA = 1e9


def of_design(
    instance: TopologyInstance,
    design: TopologyDesign,
    collective: str,
    collective_bytes: float,
    root: int | None = None,
) -> CollectiveInstance:
    """A collective of all servers on the links of a design; routes and rings of the design do not matter.

    Raises
    ------
    OptionError
        If servers do not forward, which a collective on any links needs.
    InstanceError
        If a server cannot be reached.
    """
    if not instance.host_forwarding:
        raise OptionError(f"servers of '{instance.name}' do not forward, and bytes of a collective go over any links")
    arcs = {link: count * instance.link_bandwidth_bytes_per_s for link, count in design.link_counts(instance).items()}
    return network(
        f"{collective}-on-{instance.name}", instance.servers, 0, arcs, collective, collective_bytes, root,
        source=f"the links of a design for {instance.name}",
    )  # fmt: skip


def of_cluster(
    cluster: Cluster, collective: str, collective_bytes: float, root: int | None = None
) -> CollectiveInstance:
    """A collective of all accelerators of a cluster: those of a server on a switch, the servers on another one.

    Raises
    ------
    OptionError
        If there are several servers and no network.
    """
    servers = [kind for kind in cluster.servers for _ in range(kind.count)]
    if len(servers) > 1 and cluster.network is None:
        raise OptionError(f"cluster '{cluster.name}' has {len(servers)} servers and no [network] (gigabit_per_s)")
    count, boxes = sum(kind.accelerators for kind in servers), sum(kind.accelerators > 1 for kind in servers)
    arcs: dict[Arc, float] = {}
    first, switch = 0, count
    for kind in servers:
        own = range(first, first + kind.accelerators)
        end = first
        if kind.accelerators > 1:
            given = kind.intra_gigabytes_per_s
            each = INTRA_BYTES_PER_S[kind.intra] if given is None else given * _GIGA
            arcs |= {arc: each for node in own for arc in ((node, switch), (switch, node))}
            end, switch = switch, switch + 1
        if cluster.network is not None and len(servers) > 1:
            each = cluster.network.gigabit_per_s * GIGABIT_PER_S
            arcs |= {(end, count + boxes): each, (count + boxes, end): each}
        first += kind.accelerators
    return network(
        f"{collective}-on-{cluster.name}", count, boxes + (len(servers) > 1), arcs, collective, collective_bytes, root
    )


def network(
    name: str,
    accelerators: int,
    switches: int,
    arcs: Mapping[Arc, float],
    collective: str,
    collective_bytes: float,
    root: int | None = None,
    source: str = "",
) -> CollectiveInstance:
    """A collective on links with these bytes per second; a broadcast's root is 0 unless it is told."""
    told: dict[str, Any] = {"collective": collective}
    return CollectiveInstance(
        name=name,
        source=source,
        accelerators=accelerators,
        switches=switches,
        links=tuple(Link(source=i, target=j, bytes_per_s=each) for (i, j), each in sorted(arcs.items())),
        collective_bytes=collective_bytes,
        root=(root or 0) if collective == "broadcast" else root,
        **told,
    )
