"""From a network to a topology instance: one training job, its traffic and its compute time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads.accelerators import A100, Accelerator
from ddlopt.instances.workloads.networks.layers import EmbeddingTable, Layer
from ddlopt.instances.workloads.precision import FP32, Precision
from ddlopt.models.errors import InstanceError
from ddlopt.models.topology import TopologyInstance

PASSES = 3
"""A training step costs three forward passes: one forward, two backward (gradients of inputs and of weights)."""


@dataclass(frozen=True)
class Workload:
    """A network as it is trained: replicated layers, embedding tables that are not, samples per GPU and iteration."""

    name: str
    layers: tuple[Layer, ...]
    batch_per_gpu: int
    tables: tuple[EmbeddingTable, ...] = ()

    @property
    def precision(self) -> Precision:
        """Of all layers."""
        return self.layers[0].precision if self.layers else FP32

    def at(self, precision: Precision) -> "Workload":
        """The same in another precision; tables stay in single precision."""
        return replace(self, layers=tuple(replace(layer, precision=precision) for layer in self.layers))

    @property
    def dense_parameters(self) -> int:
        """Parameters that every server holds."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def parameters(self) -> int:
        """All parameters, tables included."""
        return self.dense_parameters + sum(table.parameters for table in self.tables)

    @property
    def gradient_bytes(self) -> int:
        """Bytes that the all-reduce sums."""
        return sum(layer.gradient_bytes for layer in self.layers)

    @property
    def activation_bytes(self) -> int:
        """Bytes that one sample's layers write."""
        return sum(layer.activation_bytes for layer in self.layers)

    @property
    def flops(self) -> int:
        """Operations of one sample's forward pass."""
        return sum(layer.flops for layer in self.layers)


GIGABIT_PER_S = 1e9 / 8
"""In bytes per second."""


def training_job(
    workload: Workload,
    servers: int,
    degree: int,
    link_bandwidth_bytes_per_s: float,
    gpus_per_server: int,
    optics: Literal["one_way", "duplex"] = "one_way",
    accelerator: Accelerator = A100,
    name: str = "",
    source: str = "",
) -> TopologyInstance:
    """One job that uses all servers: layers data-parallel, embedding tables spread over the servers table by table.

    All servers all-reduce the gradients of the layers. A table's owner sends every other server the pooled vectors of
    that server's samples and gets their gradients back, which makes the all-to-all. Compute and communication do not
    overlap. Only what crosses the network is counted: the GPUs of a server are one node.

    Parameters
    ----------
    link_bandwidth_bytes_per_s : float
        Of one of the ``degree`` links of a server, per direction.
    gpus_per_server : int
        Samples of a server = this times the workload's batch per GPU.
    accelerator : Accelerator
        What compute times assume of one GPU.

    Raises
    ------
    InstanceError
        If the numbers make no instance, e.g. a degree as large as the number of servers.
    """
    for what, number, least in (("servers", servers, 2), ("gpus_per_server", gpus_per_server, 1)):
        if number < least:
            raise InstanceError(f"{what} is {number}; a training job needs at least {least}")
    batch = workload.batch_per_gpu * gpus_per_server
    owners = table_owners(workload.tables, servers)
    strategy = (
        f"data parallel, {len(workload.tables)} embedding tables spread round robin"
        if workload.tables
        else "data parallel"
    )
    counted = (
        f"{workload.name}: {workload.dense_parameters} replicated parameters, {batch} samples a server and iteration "
        f"({gpus_per_server} GPUs), {workload.precision}, {strategy}; compute time assumes {accelerator.name}"
    )
    return TopologyInstance.from_data(
        {
            "name": name or f"{workload.name}-n{servers}-d{degree}",
            "source": f"{source}. {counted}" if source else counted,
            "servers": servers,
            "degree": degree,
            "link_bandwidth_bytes_per_s": link_bandwidth_bytes_per_s,
            "optics": optics,
            "allreduce_groups": [
                {"members": range(servers), "gradient_bytes": workload.gradient_bytes},
            ],
            "traffic_bytes": table_traffic_bytes(owners, servers, batch),
            "compute_s": compute_s(workload, owners, servers, gpus_per_server, accelerator),
        }
    )


Owners = tuple[tuple[int, EmbeddingTable], ...]
"""Which server holds which table."""


def table_owners(tables: Iterable[EmbeddingTable], servers: int) -> Owners:
    """The k-th table lives on server k modulo n."""
    return tuple((place % servers, table) for place, table in enumerate(tables))


def table_traffic_bytes(owners: Owners, servers: int, batch: int) -> npt.NDArray[np.float64]:
    """(n, n) bytes per iteration: pooled vectors from owners forward, gradients to owners backward.

    Between servers s and t go, in each direction, the vectors of ``batch`` samples for the tables of both.
    """
    held_bytes = np.zeros(servers)
    for server, table in owners:
        held_bytes[server] += batch * table.pooled_bytes
    traffic = held_bytes[:, np.newaxis] + held_bytes[np.newaxis, :]
    np.fill_diagonal(traffic, 0)
    return traffic


def compute_s(
    workload: Workload, owners: Owners, servers: int, gpus_per_server: int, accelerator: Accelerator
) -> float:
    """Time of forward and backward passes on the GPU with the most to look up, to three significant digits.

    A table lives on one GPU of its owner, which looks up the rows for the samples of *all* servers; an owner deals its
    tables out to its GPUs in turn.
    """
    layers_s = sum(accelerator.forward_s(layer, workload.batch_per_gpu) for layer in workload.layers)
    samples = servers * gpus_per_server * workload.batch_per_gpu
    lookups_s = np.zeros((servers, gpus_per_server))
    for place, (server, table) in enumerate(owners):
        lookups_s[server, place // servers % gpus_per_server] += accelerator.lookup_s(table, samples)
    return float(f"{PASSES * (layers_s + lookups_s.max()):.3g}")
