"""Iteration times on networks of packet switches: figures to compare a design with."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.catalogue import outside_of_room
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.certify import Gate
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result

Racks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Switched:
    """Every server has one port into a network of switches; the rack switches' uplinks may be narrower than that.

    Parameters
    ----------
    links_per_port : float
        Bandwidth of a port relative to all d links of a server: 1 is d times the link bandwidth.
    racks : tuple of tuple of int
        Servers behind each rack switch; none where uplinks limit nothing.
    oversubscription : float
        Bandwidth of a rack's ports over that of its uplinks.
    """

    links_per_port: float = 1.0
    racks: Racks = ()
    oversubscription: float = 1.0

    def busiest_bytes(self, job: TopologyInstance | None) -> float:
        """Bytes on the busiest port or rack uplink, for each link that it is worth; none where nothing is sent.

        Over a ring every member sends and receives the same, which is bandwidth-optimal; model-parallel bytes go
        straight to their target. A ring that visits one rack after the other leaves and enters each of them once, and
        no ring does less. Between the racks there is a non-blocking network.
        """
        if job is None:
            return 0.0
        busiest = float(job.node_bytes.max()) / (job.degree * self.links_per_port)
        for rack in self.racks:
            inside = [server in rack for server in range(job.servers)]
            outside = [not each for each in inside]
            rings = sum(
                group.hop_bytes
                for group in job.allreduce_groups
                if 0 < sum(inside[member] for member in group.members) < len(group.members)
            )
            traffic = job.traffic_bytes
            crossing = rings + max(traffic[inside][:, outside].sum(), traffic[outside][:, inside].sum())
            uplinks = job.degree * self.links_per_port * len(rack) / self.oversubscription
            busiest = max(busiest, float(crossing) / uplinks)
        return busiest

    def __str__(self) -> str:
        """Ports and racks."""
        racks = f", racks of {len(self.racks[0])} oversubscribed {self.oversubscription:g}:1" if self.racks else ""
        return f"reference: ports of {self.links_per_port:.3g} times d link bandwidths{racks}"


class Reference(ABC):
    """A job on a network of switches, as a figure to compare with."""

    family: ClassVar[str] = "topology"
    uses: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str]

    @abstractmethod
    def network(self, servers: int) -> Switched:
        """The network for a number of servers."""

    def refuses(self, instance: Any) -> str | None:
        """Every instance of the problem has this figure."""
        return outside_of_room(self, instance)

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """The iteration time, with status ``reference`` and no solution."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        began = time.perf_counter()
        network = self.network(instance.servers)
        bytes_per_link = network.busiest_bytes(instance)
        gate = Gate(instance, self.name, limits, seed, time.perf_counter() - began)
        return gate.reference(
            instance.iteration_time_s(bytes_per_link),
            {"communication_s": bytes_per_link / instance.link_bandwidth_bytes_per_s},
            str(network),
        )


@dataclass(frozen=True)
class IdealSwitch(Reference):
    """A non-blocking switch; every server has one port of bandwidth d · B."""

    name: ClassVar[str] = "ideal-switch"

    def network(self, servers: int) -> Switched:
        """All d links' bandwidth."""
        return Switched()


@dataclass(frozen=True)
class FatTree(Reference):
    """A full-bisection fat-tree that costs as much as the optical network: the ideal switch at a lower bandwidth.

    Cost is taken to be proportional to bandwidth, so that the port bandwidth is d · B / ``cost_ratio``.

    Parameters
    ----------
    cost_ratio : float
        How many times more a full-bisection switch of the same bandwidth costs than the optical network. The published
        figure is 3.2, for 128 servers; it is used for every size here.

    References
    ----------
    Thesis on TopoOpt, MIT, https://hdl.handle.net/1721.1/147321 (abstract).
    """

    cost_ratio: float = 3.2

    name: ClassVar[str] = "fat-tree"

    def __post_init__(self) -> None:
        if not self.cost_ratio > 0:
            raise OptionError(f"cost_ratio must be positive, got {self.cost_ratio}")

    def network(self, servers: int) -> Switched:
        """The bandwidth that the same money buys."""
        return Switched(1 / self.cost_ratio)
