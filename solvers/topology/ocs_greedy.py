"""The greedy of reconfigurable optical circuit switches, applied once to the whole iteration's traffic."""

import heapq
from dataclasses import dataclass
from typing import Any, ClassVar

import networkx as nx
import numpy as np

from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.allreduce_links import Rings
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.routing import Floats, Pair
from ddlopt.solvers.topology.shortest import shortest_path_design
from ddlopt.solvers.topology.topoopt.matching import repeated_matching


@dataclass(frozen=True)
class OcsGreedy(Heuristic, uses=("seed",)):
    """Join the pair with the most demand, halve its demand, go on; then use the ports left and connect the parts.

    The demand of a pair is the larger of its two directions. All-reduce groups enter as the demands of their +1 ring
    and its reverse, half the gradient each, because the greedy knows fixed sources and targets only; they use these
    two rings in the end. Links are two-way: one duplex link or two one-way links. Ties are broken at random.

    Once no demand fits, free ports are joined: first those in different components, then any, pairs without a link
    first. Components that remain are connected by exchanging the ends of their cheapest links, one from each, of which
    at least one lies on a cycle. Every pair and ring hop takes a random shortest path. From degree 2 on this joins all
    servers; two-way links of degree 1 join them in pairs only, and the method then refuses what needs more.

    References
    ----------
    The OCS-reconfig baseline of TopoOpt (NSDI 2023), ``DemandHeuristicNetworkOptimizer`` of its released code. That
    reconfigures the network again and again for the bytes that wait; here it is laid once for those of an iteration.
    """

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    @property
    def name(self) -> str:
        """``ocs-greedy``."""
        return "ocs-greedy"

    def answer(self, instance: TopologyInstance, seed: int, clock: Clock, start: Any) -> Answer[TopologyDesign]:
        """Lay links by demand, connect, route."""
        rng = np.random.default_rng(seed)
        draft, rings = Draft(instance), Rings()
        for index, group in enumerate(instance.allreduce_groups):
            rings.give(index, group.members, [1], both_ways=True)
        bytes_by_pair = rings.direct_bytes(instance)
        demand = np.maximum(bytes_by_pair, bytes_by_pair.T)
        _serve(draft, demand, rng)
        join_all(draft, demand, rng)
        return shortest_path_design(draft, rings, seed, self.name), {}


def _serve(draft: Draft, demand: Floats, rng: np.random.Generator) -> None:
    """Lay a link for the largest demand that still has ports at both ends, halve the demand, repeat."""
    pairs = np.argwhere(np.triu(demand) > 0)
    ties = rng.permutation(len(pairs)).tolist()
    heap = [(-demand[i, j], tie, (i, j)) for (i, j), tie in zip(pairs.tolist(), ties, strict=True)]
    heapq.heapify(heap)
    while heap:
        waiting, tie, pair = heapq.heappop(heap)
        links = draft.two_way([pair])
        if draft.fits(links):
            draft.add(links)
            heapq.heappush(heap, (waiting / 2, tie, pair))


def join_all(draft: Draft, demand: Floats, rng: np.random.Generator) -> None:
    """Use the ports that a greedy has left, and connect what is not; see :class:`OcsGreedy`.

    Parameters
    ----------
    demand : (n, n) array
        Symmetric; tells which links are the cheapest to move.
    """
    _join_free_ports(draft, rng)
    _connect(draft, demand)


def _join_free_ports(draft: Draft, rng: np.random.Generator) -> None:
    """Join free ports of different components one by one, then the rest by matchings that prefer new pairs."""
    while True:
        component = {server: number for number, part in enumerate(_components(draft)) for server in part}
        across = [(i, j) for i, j in np.argwhere(np.triu(draft.joinable())).tolist() if component[i] != component[j]]
        if not across:
            break
        draft.add(draft.two_way([across[rng.integers(len(across))]]))
    n = draft.instance.servers
    worth = np.ones((n, n))
    for link in draft.links:
        worth[link] = worth[link[::-1]] = 0.5
    repeated_matching(draft, worth, None, rng, perfect=True)


def _connect(draft: Draft, demand: Floats) -> None:
    """Exchange links between components until there is one, or none of two components has a cycle."""
    while len(parts := _components(draft)) > 1:
        one, other = parts[:2]
        cut = _cheapest(draft, demand, one, on_cycle=True)
        if cut is None:
            one, other = other, one
            cut = _cheapest(draft, demand, one, on_cycle=True)
        if cut is None:
            return
        a, b = cut
        draft.add(draft.two_way([cut]), -1)
        partner = _cheapest(draft, demand, other, on_cycle=False)
        if partner is None:
            # A server that is still by itself has two free ports: it never had a link.
            (alone,) = other
            draft.add(draft.two_way([(a, alone), (b, alone)]))
        else:
            c, d = partner
            draft.add(draft.two_way([partner]), -1)
            draft.add(draft.two_way([(a, c), (b, d)]))


def _pairs(draft: Draft) -> dict[Pair, int]:
    """Two-way links by pair i < j."""
    return {(i, j): count for (i, j), count in draft.links.items() if i < j and count > 0}


def _components(draft: Draft) -> list[set[int]]:
    graph = nx.Graph(list(_pairs(draft)))
    graph.add_nodes_from(range(draft.instance.servers))
    return [set(part) for part in nx.connected_components(graph)]


def _cheapest(draft: Draft, demand: Floats, part: set[int], on_cycle: bool) -> Pair | None:
    """The link of least demand within a component; only among those on a cycle if asked for."""
    pairs = {pair: count for pair, count in _pairs(draft).items() if pair[0] in part}
    bridges = set(nx.bridges(nx.Graph(list(pairs)))) if on_cycle else set()
    bridges = {(min(bridge), max(bridge)) for bridge in bridges}
    choices = [pair for pair, count in pairs.items() if pair not in bridges or count > 1]
    return min(choices, key=lambda pair: (demand[pair], pair), default=None)
