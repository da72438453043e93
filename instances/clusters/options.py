"""A cluster as the options of generators and readers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ddlopt.instances.clusters.file import Cluster, Servers, load
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S
from ddlopt.instances.workloads.device_groups import Devices
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError
from ddlopt.models.sizes import require_memory

# Definitions.
_GIGA, _MICROSECONDS = 1e9, 1e6
_BYTES_A_SERVER, _BYTES_A_PAIR = 400.0, 32.0
"""What a group of devices takes in Python, and a bandwidth with the copies that are made of it."""
_LINKS = ("degree", "gigabit_per_s", "optics", "link_bandwidth_bytes_per_s")
_NETWORK = ("network_gigabit_per_s", "bandwidth_bytes_per_s", "latency_us", "unit_servers", "spine_gigabit_per_s")
_SERVERS = ("servers", "nodes", "gpus_per_server", "gpus_per_node", "gpus", "workers")
_ACCELERATORS = ("accelerator", "memory_gigabytes", "intra", "intra_gigabytes_per_s")
_TAKEN = (*_SERVERS, *_ACCELERATORS, *_LINKS, *_NETWORK, "devices_of", "coding_us", "slower_inside")
"""Options that a cluster gives, wherever they are."""
_TOPOLOGY = ("servers", "degree", "optics", "link_bandwidth_bytes_per_s")
"""Of kinds of topologies, which take fields of the instance."""
_OTHER_SENSE = {
    "openb": ("nodes", "servers"),
    "jobs-csv": ("servers",),
    "libffm": ("workers",),
    "topology-zoo": ("workers",),
}
"""Options of formats that mean something else by these words."""


def applied(options: Mapping[str, Any], known: Mapping[str, Any], what: str, family: str = "") -> dict[str, Any]:
    """Options with those that their ``cluster`` gives in its place; what is given beside it counts more.

    Parameters
    ----------
    options : dict
    known : dict
        Options of the kind or the format.
    what : str
        Kind or format, for messages.
    family : str
        Of a kind.

    Raises
    ------
    OptionError
        If the kind has neither a network nor devices, or the cluster lacks what it needs.
    UnknownNameError, InstanceError
        As of :func:`~ddlopt.instances.clusters.file.load`.
    """
    if "cluster" not in options or "cluster" in known:
        return dict(options)  # there is none, or the kind makes something of a whole cluster
    if not isinstance(options["cluster"], str | Path | Cluster):
        raise OptionError(f"cluster is {options['cluster']!r}; it is a file or one of the bundled names")
    cluster = load(options["cluster"])
    given = {name: value for name, value in options.items() if name != "cluster"}
    wanted = _TOPOLOGY if family == "topology" else [name for name in _TAKEN if name in known]
    if family == "aggregation":
        wanted = [name for name in wanted if name == "bandwidth_bytes_per_s"]
    elif family == "gossip" or (family, what) == ("codesign", "random"):
        wanted = []
    wanted = [name for name in wanted if name not in _OTHER_SENSE.get(what, ())]
    left = [name for name in wanted if name not in given]
    if not wanted:
        raise OptionError(f"'{what}' has no network and no devices that a cluster could give; leave out cluster")
    return {name: value for name in left for value in [_value(cluster, name, what)] if value is not None} | given


def with_cluster(instance: Instance, cluster: Any) -> Instance:
    """An instance that says which cluster it is for."""
    found = load(cluster)
    origin = f" ({found.source})" if found.source else ""
    return instance.model_copy(update={"source": f"{instance.source}; cluster '{found.name}'{origin}"})


def _value(cluster: Cluster, name: str, what: str) -> Any:
    if name == "devices_of":
        return _devices(cluster, what)
    if name == "coding_us":
        return {key: (each.encode_us, each.decode_us) for key, each in cluster.compression.items()} or None
    if name == "slower_inside":
        return any(cluster.slower_inside()) or None  # what is odd has been confirmed there
    if name in _LINKS:
        return _of_optics(cluster, name, what)
    if name in _NETWORK:
        return _of_network(cluster, name, what)
    return _of_servers(cluster, name, what)


def _of_optics(cluster: Cluster, name: str, what: str) -> Any:
    if cluster.optics is None:
        raise OptionError(f"cluster '{cluster.name}' has no [optics] (degree, gigabit_per_s), which '{what}' needs")
    return {
        "degree": cluster.optics.degree,
        "gigabit_per_s": cluster.optics.gigabit_per_s,
        "link_bandwidth_bytes_per_s": cluster.optics.gigabit_per_s * GIGABIT_PER_S,
        "optics": cluster.optics.kind,
    }[name]


def _of_network(cluster: Cluster, name: str, what: str) -> Any:
    if cluster.network is None:
        raise OptionError(f"cluster '{cluster.name}' has no [network] (gigabit_per_s), which '{what}' needs")
    return {
        "network_gigabit_per_s": cluster.network.gigabit_per_s,
        "bandwidth_bytes_per_s": cluster.network.gigabit_per_s * GIGABIT_PER_S,
        "latency_us": cluster.network.latency_us,
        "unit_servers": cluster.network.unit_servers,
        "spine_gigabit_per_s": cluster.network.spine_gigabit_per_s,
    }[name]


def _of_servers(cluster: Cluster, name: str, what: str) -> Any:
    if len(cluster.servers) > 1:
        raise OptionError(
            f"cluster '{cluster.name}' has {len(cluster.servers)} kinds of servers, and '{what}' takes servers that "
            "are identical; give it one kind"
        )
    (servers,) = cluster.servers
    if name == "workers" and servers.accelerators > 1:
        raise OptionError(
            f"'{what}' has a link for every worker, and cluster '{cluster.name}' one for {servers.accelerators} "
            "accelerators; set workers"
        )
    return {
        "servers": servers.count,
        "nodes": servers.count,
        "workers": servers.count,
        "gpus_per_server": servers.accelerators,
        "gpus_per_node": servers.accelerators,
        "gpus": servers.count * servers.accelerators,
        "intra": servers.intra,
        "intra_gigabytes_per_s": servers.intra_gigabytes_per_s,
        "accelerator": cluster.sustained(servers.accelerator),
        "memory_gigabytes": servers.memory_gigabytes,
    }[name]


def _devices(cluster: Cluster, what: str) -> Devices:
    """Every server is a group of devices; servers reach each other at the network's bandwidth."""
    if cluster.network is None:
        raise OptionError(f"cluster '{cluster.name}' has no [network] (gigabit_per_s), which '{what}' needs")
    many = sum(servers.count for servers in cluster.servers)
    what_for = f"cluster '{cluster.name}' has {many} servers: bandwidths between so many"
    require_memory(what_for, _BYTES_A_SERVER * many + _BYTES_A_PAIR * many**2, OptionError)
    groups = tuple(_group(cluster, servers) for servers in cluster.servers for _ in range(servers.count))
    between = np.full((len(groups), len(groups)), cluster.network.gigabit_per_s * GIGABIT_PER_S)
    np.fill_diagonal(between, 0)
    types = {servers.accelerator: cluster.sustained(servers.accelerator) for servers in cluster.servers}
    latency_us = cluster.network.latency_us
    latency_s = None if latency_us is None else latency_us / _MICROSECONDS
    return Devices(groups, between, f"devices of cluster '{cluster.name}'", types, latency_s, cluster.name)


def _group(cluster: Cluster, servers: Servers) -> dict[str, Any]:
    if servers.memory_gigabytes is None:
        raise OptionError(f"cluster '{cluster.name}': servers have no memory_gigabytes, which plans need")
    own = servers.intra_gigabytes_per_s
    return {
        "type": servers.accelerator,
        "count": servers.accelerators,
        "memory_bytes": _GIGA * servers.memory_gigabytes,
        "bandwidth_bytes_per_s": INTRA_BYTES_PER_S[servers.intra] if own is None else _GIGA * own,
    }
