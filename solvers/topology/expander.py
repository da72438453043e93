"""A random regular network: what one gets without looking at the traffic."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.allreduce_links import Rings
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.routing import Pair
from ddlopt.solvers.topology.shortest import shortest_path_design
from ddlopt.solvers.topology.topoopt.matching import heaviest_matching


@dataclass(frozen=True)
class Expander(Heuristic, uses=("seed",)):
    """A random d-regular network with shortest-path routing.

    The links are a random Hamiltonian cycle and random permutations (one-way) or matchings (duplex) on top, which keep
    off links that are there already as long as they can. Such a sum of a Hamiltonian cycle and matchings is contiguous
    to the uniform random regular graph for d >= 3, and it is connected and realisable on d planes by construction; with
    an odd number of servers and duplex optics each plane leaves one server dark. An all-reduce group uses its "+p"
    rings of fewest hops, at most d of them, over several links where need be; every pair takes a random shortest path.

    References
    ----------
    S. Janson, "Random regular graphs: asymptotic distributions and contiguity", Combinatorics, Probability and
    Computing 4(4), 1995. TopoOpt's evaluation has such a baseline by the name of Expander.
    """

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    @property
    def name(self) -> str:
        """``expander``."""
        return "expander"

    def answer(self, instance: TopologyInstance, seed: int, clock: Clock, start: Any) -> Answer[TopologyDesign]:
        """Lay the planes one after the other, then route."""
        rng = np.random.default_rng(seed)
        draft = Draft(instance)
        cycle = rng.permutation(instance.servers).tolist()
        if instance.optics == "duplex":
            _lay_matchings(draft, cycle, rng)
        else:
            draft.add(draft.ring_links(cycle) if instance.servers > 2 else [(0, 1), (1, 0)])
            for _ in range(instance.degree - 1):
                draft.add(_random_permutation(draft, rng))
        return shortest_path_design(draft, Rings(), seed, self.name), {}


def _lay_matchings(draft: Draft, cycle: list[int], rng: np.random.Generator) -> None:
    """The cycle, without its last link if it is odd, is two planes; each other plane is a random matching."""
    n, degree = draft.instance.servers, draft.instance.degree
    hops = list(zip(cycle, cycle[1:] + cycle[:1], strict=True))[: n - n % 2 if n > 2 else 1]
    draft.add(draft.two_way(hops if degree > 1 else hops[::2]))
    for _ in range(degree - 2):
        # A plane leaves one of an odd number of servers out: the one whose port the colouring could not use anyway.
        laid = np.zeros((n, n))
        for link, count in draft.links.items():
            laid[link] = count
        allowed = ~np.eye(n, dtype=bool) & (laid + laid.T < draft.instance.most_links_of_a_pair)
        weights = (1 + rng.random((n, n))) / (1 + n * laid)
        draft.add(heaviest_matching(np.triu(weights, 1), allowed, rng, perfect=True))


def _random_permutation(draft: Draft, rng: np.random.Generator) -> list[Pair]:
    """A random permutation without fixed points that repeats as few links as possible; none that are forbidden."""
    n = draft.instance.servers
    cost = rng.random((n, n)) / n
    for link, count in draft.links.items():
        cost[link] += count
    np.fill_diagonal(cost, n * draft.instance.degree)
    images = linear_sum_assignment(cost)[1].tolist()
    links = [(i, j) for i, j in enumerate(images) if i != j]
    return [link for link in links if draft.links[link] < draft.instance.most_links_of_a_pair]
