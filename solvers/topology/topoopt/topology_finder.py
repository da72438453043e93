"""TopoOpt's TopologyFinder, as its paper describes it and as its authors released it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import WHOLE_TOL
from ddlopt.models.topology import Path, TopologyDesign, TopologyInstance
from ddlopt.models.topology.permutations import hops_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled
from ddlopt.solvers.topology.allreduce_links import HopRouter, Rings, lay_backbone, paper_rings, released_rings
from ddlopt.solvers.topology.draft import Draft, all_joined, require_paths, traffic_pairs
from ddlopt.solvers.topology.routing import (
    Floats,
    Network,
    Pair,
    balanced_paths,
    k_shortest_paths,
    shortest_paths,
)
from ddlopt.solvers.topology.topoopt.matching import repeated_matching

Variant = Literal["paper", "released"]
ReleasedSplit = Literal["all", "two", "rounded"]


@dataclass(frozen=True)
class TopologyFinder(Heuristic, uses=("seed",)):
    r"""Split the ports between rings and matchings, lay both, then route.

    ``variant="paper"``:

    1. :func:`allreduce_degree`: a part of the d ports in proportion to the bytes goes to all-reduce rings.
    2. Ring generators by TotientPerms and SelectPermutations (:func:`.select_permutations`), group by group
       (:func:`.paper_rings`).
    3. The other ports join pairs by repeated maximum-weight matching, halving a pair's traffic with every link
       (:func:`.repeated_matching`).
    4. Groups without rings of their own use the generators whose rings need the fewest links in all, at most d of
       them, routed by CoinChangeMod. A group's gradient is split equally over its rings.
    5. Model-parallel pairs, by descending bytes, each take the one of their k shortest paths whose busiest link ends
       up least busy, on top of the rings' load.

    ``variant="released"`` follows the authors' FlexNet code, which differs: every port goes to the rings of the group
    size with the most bytes (:func:`.released_rings`), generators by :func:`.choose_geometric`, every ring with its
    reverse; another size shares one shortest multi-hop ring and its reverse; ports for matchings, where
    ``released_split`` leaves some, get maximum perfect matchings on the lower triangle of the traffic with harmonically
    diminishing worth; every pair takes one random shortest path.

    Where the sources are silent, this is what happens here:

    - A link between matched servers is a two-way link: one duplex link or two one-way links. Its worth is the sum of
      the pair's traffic in both directions (paper).
    - Duplex rings take two ports, so the paper's ring degree is rounded up to an even number where d allows.
    - Ports left over by rounding, or at servers outside all groups, go to further matchings (paper); the odd port of an
      odd degree, which the released code does not accept, goes to one perfect matching (released). What no traffic
      asks for stays dark.
    - Among equally heavy matchings one is drawn at random.
    - Where some traffic or ring would have no path, the paper's variant starts again with one +1 ring over all servers
      laid first; so it does at once where there is no group, which is the paper's "at least one" ring port.
    - A generator without room, e.g. because parallel links are forbidden, gives way to the next larger one.
    - Links that no duplex plane can hold (odd cycles) are taken away and routed around: :meth:`.Draft.colour`.
    - Without host forwarding the method refuses instances where some pair ends up without a direct link.

    Parameters
    ----------
    variant : {"paper", "released"}
    paths_per_pair : int
        k of the k shortest paths (paper); the paper gives no number.
    primes_only : bool
        Ring generators 1 and primes only (paper).
    released_split : {"all", "two", "rounded"}
        Ring ports in the released code: all of them (since June 2022), two (August 2021 to June 2022), or
        the rounded share of the bytes, made even (before).
    allreduce_ports : int, optional
        Ports for rings in place of the paper's split, to see what that costs.
    generators : tuple of int, optional
        Ring generators of the group with the most bytes in place of SelectPermutations', likewise (paper).

    References
    ----------
    W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training
    jobs", NSDI 2023; roundings are our reading of it. Released code: ``SpMulMat`` in ``src/runtime/network.cc`` of
    FlexNet.
    """

    variant: Variant = "paper"
    paths_per_pair: int = 4
    primes_only: bool = False
    released_split: ReleasedSplit = "all"
    allreduce_ports: int | None = None
    generators: tuple[int, ...] | None = None

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.paths_per_pair < 1:
            raise OptionError(f"paths_per_pair must be at least 1, got {self.paths_per_pair}")
        if self.allreduce_ports is not None and self.allreduce_ports < 0:
            raise OptionError(f"allreduce_ports must be at least 0, got {self.allreduce_ports}")

    @property
    def name(self) -> str:
        """``topology-finder``, with its variant."""
        return spelled("topology-finder", self, "variant")

    def answer(self, instance: TopologyInstance, seed: int, clock: Clock, start: Any) -> Answer[TopologyDesign]:
        """The design, and in the details the ring ports, generators and dropped links."""
        draft, rings = self._lay_links(instance, np.random.default_rng(seed))
        laid = sum(draft.links.values())
        planes = draft.colour(rings.direct_bytes(instance), seed)
        network = draft.network()
        require_paths(instance, network, traffic_pairs(instance), self.name)
        hop_paths = self._route_rings(instance, network, rings, seed)
        routes = self._route_traffic(instance, network, rings, hop_paths, seed)
        details = {
            **draft.notes,
            "allreduce_degree": self._ring_degree(instance),
            "generators": {str(group): generators for group, generators in sorted(rings.generators.items())},
            "dropped_links": laid - sum(draft.links.values()),
        }
        return draft.design(planes, rings.orders, hop_paths, routes), details

    def _ring_degree(self, instance: TopologyInstance) -> int:
        if self.allreduce_ports is not None:
            return min(self.allreduce_ports, instance.degree)
        return allreduce_degree(instance) if self.variant == "paper" else released_degree(instance, self.released_split)

    def _lay_links(self, instance: TopologyInstance, rng: np.random.Generator) -> tuple[Draft, Rings]:
        degree = self._ring_degree(instance)
        if self.variant == "released":
            draft = Draft(instance)
            rings = released_rings(draft, degree)
            lower = np.tril(instance.traffic_bytes)
            repeated_matching(
                draft, lower + lower.T, instance.degree - degree, rng, perfect=True, diminishing="harmonic"
            )
            return draft, rings
        # Only where servers forward can a ring over all of them join what has no link.
        if not instance.host_forwarding or instance.allreduce_groups:
            draft, rings = self._lay_paper_links(instance, degree, rng, backbone=False)
            if not instance.host_forwarding or all_joined(instance, draft.network()):
                return draft, rings
        return self._lay_paper_links(instance, degree, rng, backbone=True)

    def _lay_paper_links(
        self, instance: TopologyInstance, degree: int, rng: np.random.Generator, backbone: bool
    ) -> tuple[Draft, Rings]:
        draft = Draft(instance)
        if backbone and lay_backbone(draft):
            degree = max(0, degree - instance.degree + int(draft.transmitters.min()))
        rings = paper_rings(draft, degree, self.primes_only, self.generators)
        self._lay_matchings(draft, rng)
        return draft, rings

    def _lay_matchings(self, draft: Draft, rng: np.random.Generator) -> None:
        """Join model-parallel pairs by the free ports (paper)."""
        traffic = draft.instance.traffic_bytes
        repeated_matching(draft, traffic + traffic.T, None, rng)

    def _route_rings(
        self, instance: TopologyInstance, network: Network, rings: Rings, seed: int
    ) -> Mapping[Pair, Path]:
        """Give the groups without rings of their own multi-hop rings, and every ring hop a path."""
        released = self.variant == "released"
        router = HopRouter.of(network, seed, random_ties=released)
        for index, group in enumerate(instance.allreduce_groups):
            if index not in rings.generators:
                most = 1 if released else instance.degree
                rings.give(index, group.members, router.shortest_generators(group.members, most), both_ways=released)
        hops = [hop for _, order, _ in rings.orders for hop in hops_of(order)]
        require_paths(instance, network, np.array(hops, dtype=np.int32).reshape(-1, 2), self.name)
        return router.paths(hops)

    def _route_traffic(
        self,
        instance: TopologyInstance,
        network: Network,
        rings: Rings,
        hop_paths: Mapping[Pair, Path],
        seed: int,
    ) -> dict[Pair, Path]:
        pairs = traffic_pairs(instance)
        if not instance.host_forwarding:
            paths: list[Path] = [(i, j) for i, j in pairs.tolist()]
        elif self.variant == "released":
            paths = shortest_paths(network, pairs, seed)
        else:
            loads = ring_loads(instance, network, rings, hop_paths)
            sets = k_shortest_paths(network, pairs, self.paths_per_pair, seed)
            paths = balanced_paths(network, sets, instance.traffic_bytes[pairs[:, 0], pairs[:, 1]], loads)
        return {(i, j): path for (i, j), path in zip(pairs.tolist(), paths, strict=True)}


def ring_loads(instance: TopologyInstance, network: Network, rings: Rings, hop_paths: Mapping[Pair, Path]) -> Floats:
    """(arcs,) array: bytes that the rings put on each arc."""
    loads = np.zeros(len(network.tails))
    rings_of = np.bincount([group for group, _, _ in rings.orders], minlength=len(instance.allreduce_groups))
    for group, order, _ in rings.orders:
        for hop in hops_of(order):
            network.carry(loads, hop_paths[hop], instance.allreduce_groups[group].hop_bytes / rings_of[group])
    return loads


def allreduce_degree(instance: TopologyInstance) -> int:
    """The paper's degree split: max(1, ceil(d * all-reduce bytes / all bytes)) ports for rings.

    Bytes are those that leave servers: 2(k-1) times the gradient for a group of k, by its ring's k members. Duplex
    rings of more than two members need ports in pairs, so that the number is rounded up to an even one where d allows,
    or else down.
    """
    d = instance.degree
    reduced = sum(len(group.members) * group.hop_bytes for group in instance.allreduce_groups)
    share = reduced / (reduced + float(instance.traffic_bytes.sum()))
    ports = max(1, math.ceil(d * share - WHOLE_TOL))
    in_pairs = instance.optics == "duplex" and (
        not instance.allreduce_groups or any(len(group.members) > 2 for group in instance.allreduce_groups)
    )
    if in_pairs and ports % 2 and d > 1:
        ports += 1 if ports < d else -1
    return ports


def released_degree(instance: TopologyInstance, split: ReleasedSplit = "all") -> int:
    """Ring ports in the released code, which lays every ring with its reverse and so needs an even number.

    An odd degree, which the code does not accept, is rounded down; degree 1 gives its one port to a ring. The
    ``"rounded"`` split weighs groups with (2k - 1) times the gradient, as the code does.
    """
    d = instance.degree
    if d == 1:
        return 1
    even = d - d % 2
    if split == "all":
        return even
    if split == "two":
        return 2
    reduced = sum(group.gradient_bytes * (2 * len(group.members) - 1) for group in instance.allreduce_groups)
    ports = math.floor(reduced / (reduced + float(instance.traffic_bytes.sum())) * d + 0.5)
    return min(even, max(2, ports + ports % 2))
