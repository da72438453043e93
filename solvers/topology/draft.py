"""A design in the making: ports, links, planes, and the last step that writes the design down."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.topology import Path, Ring, Route, TopologyDesign, TopologyInstance
from ddlopt.models.topology.permutations import hops_of
from ddlopt.models.topology.planes import Plane, colour_planes
from ddlopt.solvers.topology.routing import Network, Pair

RingOrder = tuple[int, tuple[int, ...], float]
"""Index of the all-reduce group, its members in ring order, relative share of the gradient."""


class Draft:
    """Links laid so far and ports still free.

    Attributes
    ----------
    links : Counter
        Ordered pairs for one-way optics; for duplex each undirected pair once, i < j.
    transmitters, receivers : (n,) arrays
        Free ports in each direction; the same array for duplex optics, where a port does both.
    notes : dict
        What is worth telling about how the links came about, for ``Result.details``.
    """

    def __init__(self, instance: TopologyInstance) -> None:
        self.instance = instance
        self.duplex = instance.optics == "duplex"
        self.links: Counter[Pair] = Counter()
        self.notes: dict[str, float] = {}
        self.transmitters = np.full(instance.servers, instance.degree)
        self.receivers = self.transmitters if self.duplex else self.transmitters.copy()

    def two_way(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The links that join each pair in both directions: one duplex link, or two one-way links."""
        if self.duplex:
            return [(min(pair), max(pair)) for pair in pairs]
        return [link for i, j in pairs for link in ((i, j), (j, i))]

    def ring_links(self, order: Sequence[int], both_ways: bool = False) -> list[Pair]:
        """The links of a ring; of the ring and its reverse for duplex optics or if ``both_ways``.

        A ring of two members is its own reverse.
        """
        hops = list(zip(order, [*order[1:], order[0]], strict=True))
        if len(order) == 2:
            return self.two_way(hops[:1])
        return self.two_way(hops) if self.duplex or both_ways else hops

    def fits(self, links: Iterable[Pair]) -> bool:
        """Whether ports, and the rule on parallel links, leave room for all of these links."""
        wanted = Counter(links)
        leaving, entering = Counter[int](), Counter[int]()
        for (i, j), count in wanted.items():
            if self.links[i, j] + count > self.instance.most_links_of_a_pair:
                return False
            leaving[i] += count
            entering[j] += count
        if self.duplex:
            leaving = entering = leaving + entering
        return all(self.transmitters[v] >= use for v, use in leaving.items()) and all(
            self.receivers[v] >= use for v, use in entering.items()
        )

    def add(self, links: Iterable[Pair], count: int = 1) -> None:
        """Lay links, or take them away with ``count=-1``."""
        for i, j in links:
            self.links[i, j] += count
            self.transmitters[i] -= count
            self.receivers[j] -= count

    def joinable(self) -> npt.NDArray[np.bool_]:
        """(n, n) symmetric array: pairs that one more two-way link may join."""
        free = (self.transmitters > 0) & (self.receivers > 0)
        pairs = np.outer(free, free)
        np.fill_diagonal(pairs, False)
        for (i, j), count in self.links.items():
            if count >= self.instance.most_links_of_a_pair:
                pairs[i, j] = pairs[j, i] = False
        return pairs

    def network(self) -> Network:
        """The arcs that traffic can use."""
        counts = Counter(self.links)
        if self.duplex:
            for (i, j), count in self.links.items():
                counts[j, i] += count
        return Network.of(self.instance.servers, counts)

    def colour(self, direct_bytes: npt.NDArray[np.float64], seed: int) -> tuple[Plane, ...]:
        """Planes of a duplex draft; empty for one-way optics.

        Links that no plane can hold are taken away: one at a time, those that would carry the fewest ``direct_bytes``
        ((n, n), bytes of each pair) first, never one whose loss would cut a component in two. A forest is bipartite and
        can always be coloured, so this ends.
        """
        if not self.duplex:
            return ()
        instance = self.instance
        worth = direct_bytes + direct_bytes.T
        spared = np.zeros(instance.servers)
        while True:
            self.links = +self.links
            planes = colour_planes(instance.servers, self.links, instance.degree, seed)
            if planes is not None:
                return planes
            i, j = min(
                _droppable(instance, self.links),
                key=lambda link: (worth[link], spared[link[0]] + spared[link[1]], link),
            )
            spared[[i, j]] += 1
            self.add([(i, j)], -1)

    def design(
        self,
        planes: tuple[Plane, ...],
        rings: Sequence[RingOrder],
        hop_paths: Mapping[Pair, Path],
        routes: Mapping[Pair, Path],
    ) -> TopologyDesign:
        """The design with one path per ring hop and per pair; equal rings of a group are merged."""
        shares: Counter[tuple[int, tuple[int, ...]]] = Counter()
        totals: Counter[int] = Counter()
        for group, order, share in rings:
            shares[group, order] += share  # type: ignore[assignment]
            totals[group] += share  # type: ignore[assignment]
        return TopologyDesign(
            instance=self.instance.name,
            instance_digest=self.instance.digest,
            links=tuple((i, j, count) for (i, j), count in sorted((+self.links).items())),
            planes=planes,
            rings=tuple(
                Ring(
                    group=group,
                    members=order,
                    share=share / totals[group],
                    paths=tuple(hop_paths[hop] for hop in hops_of(order)),
                )
                for (group, order), share in shares.items()
            ),
            routes=tuple(
                Route(source=i, target=j, paths=(path,), fractions=(1.0,)) for (i, j), path in sorted(routes.items())
            ),
        )


def traffic_pairs(instance: TopologyInstance) -> npt.NDArray[np.int32]:
    """(m, 2) array: ordered pairs with model-parallel traffic, row by row."""
    return np.argwhere(instance.traffic_bytes > 0).astype(np.int32)


def all_joined(instance: TopologyInstance, network: Network) -> bool:
    """Whether paths lead from everybody to everybody they have traffic or an all-reduce with."""
    hops = [hop for group in instance.allreduce_groups for hop in hops_of(group.members)]
    pairs = np.concatenate([traffic_pairs(instance), np.array(hops, dtype=np.int32).reshape(-1, 2)])
    return network.unreachable(pairs) is None


def require_paths(instance: TopologyInstance, network: Network, pairs: npt.NDArray[np.int32], method: str) -> None:
    """Raise :class:`NotApplicableError` if a pair has no path, or no link where nobody forwards."""
    farthest = 1 if not instance.host_forwarding else len(network.distances) - 1
    far = np.flatnonzero(network.distances[pairs[:, 0], pairs[:, 1]] > farthest)
    if len(far):
        i, j = (int(server) for server in pairs[far[0]])
        missing = "path" if instance.host_forwarding else "direct link (and host_forwarding is off)"
        raise NotApplicableError(
            f"{method} does not cover '{instance.name}': the links that it lays for degree {instance.degree} leave "
            f"server {i} without a {missing} to server {j}"
        )


def _droppable(instance: TopologyInstance, links: Mapping[Pair, int]) -> list[Pair]:
    """Links on a cycle of a component that holds too many links, or else of one that is not bipartite."""
    import networkx as nx  # takes long, and most designs need none of it

    graph = nx.Graph(list(links))
    parts = [graph.subgraph(part) for part in nx.connected_components(graph)]
    overfull = [
        part for part in parts if sum(links[min(e), max(e)] for e in part.edges) > instance.degree * (len(part) // 2)
    ]
    choices = []
    for part in overfull or [part for part in parts if not nx.is_bipartite(part)]:
        bridges = {(min(e), max(e)) for e in nx.bridges(part)}
        edges = [(min(e), max(e)) for e in part.edges]
        choices += [e for e in edges if e not in bridges or links[e] > 1]
    return choices
