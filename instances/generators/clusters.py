"""Servers and networks of clusters: what no trace of jobs tells, so all of it is synthetic."""

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.scheduling import Network, ServerGroup

NETWORKS = ("none", "star", "leaf-spine")
"""Networks that follow from a number of servers; ``none``: bandwidth is no limit."""


def gpu_servers(gpus: int, gpus_per_server: int, idle_w: float = 0.0, worker_w: float = 0.0) -> tuple[ServerGroup, ...]:
    """Servers of one size that hold ``gpus`` GPUs in all; the last one is smaller where they do not divide."""
    at_least("gpus", gpus, 1)
    at_least("gpus_per_server", gpus_per_server, 1)
    full, rest = divmod(gpus, gpus_per_server)
    sizes = [(full, gpus_per_server)] * (full > 0) + [(1, rest)] * (rest > 0)
    return tuple(
        ServerGroup(count=count, capacity={"gpu": size}, idle_w=idle_w, worker_w=worker_w) for count, size in sizes
    )


def star(servers: int, nic_bytes_per_s: float) -> Network:
    """Every server on one switch, whose own capacity is no limit."""
    positive("nic_bytes_per_s", nic_bytes_per_s)
    return Network(switches=1, links=tuple((server, servers, nic_bytes_per_s) for server in range(servers)))


def leaf_spine(servers: int, rack_servers: int, nic_bytes_per_s: float, oversubscription: float = 1.0) -> Network:
    """Racks of servers below a spine, drawn as the tree that it is for traffic between racks.

    Parameters
    ----------
    rack_servers : int
        Servers of a rack; the last rack may have fewer.
    nic_bytes_per_s : float
        Between a server and its rack's switch.
    oversubscription : float
        Bandwidth of a full rack's servers over that of the rack's links to all spine switches together.
    """
    at_least("rack_servers", rack_servers, 1)
    positive("nic_bytes_per_s", nic_bytes_per_s)
    positive("oversubscription", oversubscription)
    racks = -(-servers // rack_servers)
    spine = servers + racks
    links = [(server, servers + server // rack_servers, nic_bytes_per_s) for server in range(servers)]
    uplink = rack_servers * nic_bytes_per_s / oversubscription
    links += [(servers + rack, spine, uplink) for rack in range(racks)]
    return Network(switches=racks + 1, links=tuple(links))


def random_graph(
    rng: np.random.Generator,
    servers: int,
    switches: int,
    extra_links: int,
    nic_bytes_per_s: float,
    trunk_bytes_per_s: float,
) -> Network:
    """Servers, each on a random switch; switches on a random tree with ``extra_links`` further links.

    Links between switches have ``trunk_bytes_per_s``. There are at most as many further links as pairs are left.
    """
    at_least("switches", switches, 1)
    at_least("extra_links", extra_links, 0)
    positive("nic_bytes_per_s", nic_bytes_per_s)
    positive("trunk_bytes_per_s", trunk_bytes_per_s)
    links = [(server, servers + int(rng.integers(switches)), nic_bytes_per_s) for server in range(servers)]
    trunks = {(int(rng.integers(switch)), switch) for switch in range(1, switches)}
    left = [(u, v) for v in range(switches) for u in range(v) if (u, v) not in trunks]
    trunks |= {left[place] for place in rng.permutation(len(left))[:extra_links].tolist()}
    links += [(servers + u, servers + v, trunk_bytes_per_s) for u, v in sorted(trunks)]
    return Network(switches=switches, links=tuple(links))


def network_of(
    network: str, servers: int, nic_bytes_per_s: float, rack_servers: int = 4, oversubscription: float = 2.0
) -> Network | None:
    """A network of :data:`NETWORKS`; None for ``none``, and where there is one server only."""
    one_of("network", network, NETWORKS)
    if network == "none" or servers == 1:
        return None
    if network == "star":
        return star(servers, nic_bytes_per_s)
    return leaf_spine(servers, rack_servers, nic_bytes_per_s, oversubscription)
