"""What limits the bandwidth of rings: links of a network, or network cards that jobs share."""

import math
from collections import defaultdict
from fractions import Fraction
from functools import cached_property

from pydantic import Field

from ddlopt.models.contracts import Number, Part
from ddlopt.models.scheduling.timing import Timing


class Network(Part):
    """Links between servers (nodes 0..S-1 in the order of the groups) and switches (S, S+1, …).

    Parameters
    ----------
    switches : int
        Nodes of the network besides servers.
    links : tuple of (int, int, float)
        (u, v, bandwidth in bytes/s); with ``duplex`` the link has that bandwidth in each direction.
    duplex : bool
        Whether a link carries its bandwidth in each direction at once.
    """

    switches: int = Field(default=0, ge=0)
    links: tuple[tuple[int, int, float], ...]
    duplex: bool = True

    @cached_property
    def arcs(self) -> dict[tuple[int, int], float]:
        """Bandwidth by directed pair of nodes, bytes/s; parallel links add up."""
        bandwidth: dict[tuple[int, int], float] = defaultdict(float)
        for u, v, rate in self.links:
            bandwidth[u, v] += rate
            if self.duplex:
                bandwidth[v, u] += rate
        return dict(bandwidth)

    @cached_property
    def neighbours(self) -> dict[int, tuple[int, ...]]:
        """Nodes that a node has an arc to, in increasing order."""
        found: dict[int, set[int]] = defaultdict(set)
        for u, v in self.arcs:
            found[u].add(v)
        return {node: tuple(sorted(targets)) for node, targets in found.items()}

    def is_tree(self, servers: int) -> bool:
        """Whether every link has both directions and the links form a tree over all nodes."""
        nodes = servers + self.switches
        pairs = {(u, v) for u, v in self.arcs if u < v}
        both = all((v, u) in self.arcs for u, v in self.arcs)
        return both and len(pairs) == nodes - 1 and not self.unreachable(servers)

    def unreachable(self, servers: int) -> list[int]:
        """Servers that node 0 does not reach, or that do not reach node 0."""
        lost: set[int] = set()
        for reverse in (False, True):
            following: dict[int, list[int]] = defaultdict(list)
            for u, v in self.arcs:
                following[v if reverse else u].append(u if reverse else v)
            seen, stack = {0}, [0]
            while stack:
                for node in following[stack.pop()]:
                    if node not in seen:
                        seen.add(node)
                        stack.append(node)
            lost |= set(range(servers)) - seen
        return sorted(lost)


class Contention(Part):
    r"""Ring bandwidth that depends on who else uses a server's network card.

    A job whose workers are on several servers is *split*. Let p be the number of split jobs, itself included, on the
    most crowded of its servers; :math:`k = \max(1, \xi_1 p)` of them compete at once, and its ring has bandwidth
    :math:`b^e / (k + \alpha (k - 1))`. A job on one server has :math:`b^i`. Every server of a job adds
    :math:`\xi_2` seconds to its iteration. The form is that of SJF-BCO; that progress is not rounded down to whole
    iterations in each slot is ours.

    Parameters
    ----------
    between_servers_bytes_per_s, within_server_bytes_per_s : float
        b^e, b^i.
    degradation : float
        alpha.
    share : float
        xi_1, the part of the competing jobs that send at the same time.
    server_overhead_s : float
        xi_2.
    """

    between_servers_bytes_per_s: float = Field(gt=0)
    within_server_bytes_per_s: float = Field(gt=0)
    degradation: float = Field(default=0.0, ge=0)
    share: float = Field(default=1.0, gt=0, le=1)
    server_overhead_s: float = Field(default=0.0, ge=0)

    def minibatches_per_s(
        self,
        timing: Timing,
        workers: int,
        servers: int,
        competitors: int,
        number: type[float] | type[Fraction] = float,
    ) -> Number:
        """Mini-batches that all workers of a job together do in a second.

        Parameters
        ----------
        timing : Timing
        workers, servers : int
            Of the job, at least 1.
        competitors : int
            p, with the job itself; 0 for a job on one server.
        number : type
            Arithmetic: floats or rational numbers.
        """
        bandwidth = number(self.within_server_bytes_per_s)
        if competitors:
            at_once = max(number(1), number(self.share) * competitors)
            slower = at_once + number(self.degradation) * (at_once - 1)
            bandwidth = number(self.between_servers_bytes_per_s) / slower
        iteration_s = timing.iteration_s(workers, bandwidth, number)
        return workers / (iteration_s + servers * number(self.server_overhead_s))


def check_network(network: Network, servers: int) -> None:
    """Raise ValueError where it makes no sense for this number of servers."""
    nodes = servers + network.switches
    for place, (u, v, rate) in enumerate(network.links):
        for end in (u, v):
            if not 0 <= end < nodes:
                raise ValueError(
                    f"network.links[{place}] ends at node {end}, but there are {servers} servers and "
                    f"{network.switches} switches (0..{nodes - 1})"
                )
        if u == v:
            raise ValueError(f"network.links[{place}] leads from node {u} to itself; remove it")
        if not (math.isfinite(rate) and rate > 0):
            raise ValueError(f"network.links[{place}] has bandwidth {rate}; it must be finite and > 0")
    lost = network.unreachable(servers)
    if lost:
        raise ValueError(
            f"network does not connect server {lost[0]} with server 0 in both directions ({len(lost)} such servers); "
            "add links"
        )
