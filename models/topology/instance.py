"""The data of one topology-design problem."""

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.contracts import Instance, Matrix, Part
from ddlopt.models.topology.family import TopologyProblem


class AllReduceGroup(Part):
    """Servers that sum a gradient among themselves once per iteration.

    A ring all-reduce over k members sends ``2(k-1)/k`` times the gradient over every hop of the ring.

    Parameters
    ----------
    members : tuple of int
        Servers, two or more, each once.
    gradient_bytes : float
        Bytes that every member has of the gradient.
    """

    members: tuple[int, ...]
    gradient_bytes: float = Field(gt=0)

    @property
    def hop_bytes(self) -> float:
        """Bytes that one ring carrying the whole gradient sends over each of its hops."""
        k = len(self.members)
        return 2 * (k - 1) / k * self.gradient_bytes


class Fabric(Instance):
    """The servers of one training job and the interfaces that optical links may join.

    The parameters are those of :class:`TopologyInstance`.
    """

    servers: int = Field(ge=2)
    degree: int = Field(ge=1)
    link_bandwidth_bytes_per_s: float = Field(gt=0)
    optics: Literal["one_way", "duplex"] = "one_way"
    parallel_links: bool = True
    host_forwarding: bool = True

    @model_validator(mode="after")
    def _has_neighbours_enough(self) -> Self:
        if self.degree >= self.servers:
            raise ValueError(
                f"degree is {self.degree}, but {self.servers} servers have at most {self.servers - 1} neighbours; "
                f"use degree <= {self.servers - 1}"
            )
        return self

    @property
    def fabric(self) -> dict[str, Any]:
        """The fields of the fabric, for another instance on the same."""
        return {name: getattr(self, name) for name in Fabric.model_fields if name not in Instance.model_fields}


class TopologyInstance(Fabric, TopologyProblem):
    """One training job whose optical links, rings and routes are to be chosen.

    Parameters
    ----------
    servers : int
        n >= 2 servers, numbered 0..n-1.
    degree : int
        d interfaces of each server, 1 <= d <= n-1; the i-th goes to the i-th optical plane.
    link_bandwidth_bytes_per_s : float
        Bandwidth B of one link, in each of its directions.
    optics : {"one_way", "duplex"}
        ``one_way``: an interface's transmitter and receiver may go to different servers; a plane is a permutation,
        so that in- and out-degrees of at most d suffice (König). ``duplex``: links come in pairs of directions and a
        plane is a matching, so that a design must be edge-colourable with d colours.
    parallel_links : bool
        Whether two servers may be joined by more than one link in the same direction.
    host_forwarding : bool
        Whether servers relay traffic for others; if not, every path is a single link.
    allreduce_groups : tuple of AllReduceGroup
        Each reduced over rings of its members, which the design chooses.
    traffic_bytes : (n, n) array
        Model-parallel bytes per iteration, row = source, zero diagonal.
    compute_s : float
        Compute time of one iteration.
    overlap : {"none", "full"}
        Iteration time = compute + communication, or the larger of the two.
    """

    kind: ClassVar[str] = "topology instance"

    family: Literal["topology"] = "topology"
    allreduce_groups: tuple[AllReduceGroup, ...] = ()
    traffic_bytes: Matrix
    compute_s: float = Field(default=0.0, ge=0)
    overlap: Literal["none", "full"] = "none"

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        n = self.servers
        for number, group in enumerate(self.allreduce_groups):
            place = f"allreduce_groups[{number}].members"
            if len(group.members) < 2:
                raise ValueError(f"{place} has {len(group.members)} member(s); a group needs at least 2")
            for server in group.members:
                if not 0 <= server < n:
                    raise ValueError(f"{place} contains server {server}, but there are {n} servers (0..{n - 1})")
            if list(group.members) != sorted(set(group.members)):
                raise ValueError(
                    f"{place} must list each server once and in increasing order, got {list(group.members)}"
                )
        traffic = self.traffic_bytes
        if traffic.shape != (n, n):
            raise ValueError(f"traffic_bytes has shape {traffic.shape}, but {n} servers need ({n}, {n})")
        for problem, bad in (
            ("is not finite; every entry must be a finite number of bytes", ~np.isfinite(traffic)),
            ("is negative; bytes must be >= 0", traffic < 0),
            ("is on the diagonal; a server sends nothing to itself, set it to 0", np.diag(np.diag(traffic) != 0)),
        ):
            if bad.any():
                i, j = (int(index) for index in np.argwhere(bad)[0])
                raise ValueError(f"traffic_bytes[{i}][{j}] = {traffic[i, j]:g} {problem}")
        if not self.allreduce_groups and not traffic.any():
            raise ValueError("there is nothing to send: give an all-reduce group or some traffic_bytes")
        return self

    @property
    def most_links_of_a_pair(self) -> int:
        """How many links two servers may share in one direction."""
        return self.degree if self.parallel_links else 1

    @property
    def servers_are_interchangeable(self) -> bool:
        """Whether all are: there is no all-reduce, and every pair exchanges the same."""
        pairs = self.traffic_bytes[~np.eye(self.servers, dtype=bool)]
        return not self.allreduce_groups and bool((pairs == pairs[0]).all())

    @cached_property
    def node_bytes(self) -> npt.NDArray[np.float64]:
        """(2, n) array: bytes that each server must send, and receive, whatever the design.

        In every ring each member sends one hop and receives one, so an all-reduce counts ``hop_bytes`` once each way.
        """
        reduced = np.zeros(self.servers)
        for group in self.allreduce_groups:
            reduced[list(group.members)] += group.hop_bytes
        return np.stack([self.traffic_bytes.sum(axis=1) + reduced, self.traffic_bytes.sum(axis=0) + reduced])

    def iteration_time_s(self, max_link_load_bytes: float) -> float:
        """Time of one iteration when the busiest link carries a number of bytes."""
        communication = max_link_load_bytes / self.link_bandwidth_bytes_per_s
        return max(self.compute_s, communication) if self.overlap == "full" else self.compute_s + communication
