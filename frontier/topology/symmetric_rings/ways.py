"""Shortest paths and short rings on a Cayley graph whose generators have lengths."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.frontier.topology.symmetric_rings.sight import Floats, Ints
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.solvers.topology.balance.ring_kernels import shorten_ring

_IDLE = 1e-9
"""Length of a generator whose links are not full, in parts of the longest: nothing wanders over them for nothing."""


class Ways(NamedTuple):
    """Shortest paths under some lengths.

    Parameters
    ----------
    links : (n, g) array
        Links of each generator on the path from server 0 to x.
    before : (n,) array
        Predecessors in the tree of these paths.
    between : (n, n) array
        Distances.
    """

    links: Floats
    before: Ints
    between: Floats


class CayleyGraph:
    """Links from every x to x + g.

    Parameters
    ----------
    group : AbelianGroup
    generators : (g,) array
        Different elements.
    """

    def __init__(self, group: AbelianGroup, generators: Ints) -> None:
        self.group, self.generators = group, generators
        everybody = np.arange(group.order)
        self._place = np.zeros(group.order, dtype=np.int64)
        self._place[generators] = np.arange(len(generators))
        self._minus = group.translations[group.negate(everybody)]  # [u, v] is v - u
        self._tails = np.repeat(everybody, len(generators))
        self._heads = group.translations[generators].T.ravel()

    def ways(self, length: Floats) -> Ways | None:
        """Shortest paths from server 0; None where they do not lead to everybody."""
        n = self.group.order
        length = np.maximum(length, _IDLE * length.max())
        arcs = csr_array(coo_array((np.tile(length, n), (self._tails, self._heads)), shape=(n, n)))
        distance, before = dijkstra(arcs, indices=0, return_predecessors=True)
        if not np.isfinite(distance).all():
            return None
        links = np.zeros((n, len(self.generators)))
        for v in np.argsort(distance, kind="stable")[1:].tolist():
            links[v] = links[before[v]]
            links[v, self._place[self._minus[before[v], v]]] += 1
        return Ways(links, before, np.ascontiguousarray(distance[self._minus]))

    def ring_links(self, ways: Ways, ring: Ints) -> Floats:
        """(g,) links that a hop of a ring takes, in the mean."""
        return np.asarray(ways.links[self._minus[ring, np.roll(ring, -1)]].mean(axis=0))

    def rings(self, ways: Ways, length: Floats, subgroup: Ints, best: Ints | None, kicks: int) -> list[Ints]:
        """Short rings of a subgroup: found from scratch, from the best one so far, and from one cosets in cosets.

        ``kicks`` of the search for each.
        """
        members = np.ascontiguousarray(subgroup)
        if len(members) <= 3:
            return [members, members[::-1].copy()][: len(members) - 1]
        begins = [np.full(len(members), -1, dtype=np.int64), self.nested(length, members)]
        begins += [] if best is None else [best.copy()]
        for ring in begins:
            shorten_ring(ways.between, members, ring, False, kicks)
        return begins

    def nested(self, length: Floats, members: Ints) -> Ints:
        """All members, with most hops over the shortest generator, the others from coset to coset."""
        move, inside = self.group.translations, set(members.tolist())
        ring, met = [0], {0}
        for g in self.generators[np.argsort(length, kind="stable")].tolist():
            block, ahead = ring, int(move[ring[-1], g])
            while g in inside and ahead not in met:
                ring = ring + move[ahead, block].tolist()
                met.update(ring)
                ahead = int(move[ring[-1], g])
        return np.array(ring + sorted(inside - met), dtype=np.int64)
