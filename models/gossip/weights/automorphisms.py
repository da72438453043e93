"""Which nodes and edges a graph does not tell apart."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from sympy.combinatorics import Permutation, PermutationGroup

from ddlopt.models.gossip.network import Network

Ints = npt.NDArray[np.int64]

MOST_NODES = 400
"""Of graphs whose automorphisms are looked for."""
# Symmetry that is not found makes a program larger, never wrong.
_MOST_REFINEMENTS = 4_000


@dataclass(frozen=True, eq=False)
class Automorphisms:
    """Permutations of nodes that map edges to edges.

    Parameters
    ----------
    network : Network
    generators : tuple of (n,) arrays
        Image of each node; all of them verified. The group that they generate need not have all automorphisms.
    """

    network: Network
    generators: tuple[Ints, ...]

    @cached_property
    def group(self) -> PermutationGroup:
        """The group in SymPy."""
        listed = [Permutation(each.tolist()) for each in self.generators]
        return PermutationGroup(listed or [Permutation(list(range(self.network.nodes)))])

    @cached_property
    def edge_orbits(self) -> Ints:
        """(m,) number of the class of each edge, by first edges."""
        return self._orbits(directed=False)

    @cached_property
    def arc_orbits(self) -> Ints:
        """(2m,) number of the class of each direction: of edge e = (i, j), i → j is 2e and j → i is 2e + 1."""
        return self._orbits(directed=True)

    def _orbits(self, directed: bool) -> Ints:
        pairs = [tuple(pair) for i, j in self.network.edges for pair in (((i, j), (j, i)) if directed else ((i, j),))]
        place = {pair: number for number, pair in enumerate(pairs)}
        if not directed:
            place |= {(j, i): number for (i, j), number in place.items()}
        leader = list(range(len(pairs)))

        def find(item: int) -> int:
            while leader[item] != item:
                leader[item] = leader[leader[item]]
                item = leader[item]
            return item

        for image in self.generators:
            for number, (i, j) in enumerate(pairs):
                one, other = find(number), find(place[int(image[i]), int(image[j])])
                leader[max(one, other)] = min(one, other)
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(find(item), len(numbers)) for item in range(len(pairs))], dtype=np.int64)


def automorphisms(network: Network) -> Automorphisms:
    """Generators of the group of automorphisms, or of a part of it where that takes too long.

    Nodes are fixed one after the other, until neighbours' colours tell all nodes apart. Each time, automorphisms that
    keep what was fixed and move the next node to each other one of its colour are looked for by individualisation and
    refinement (B. McKay, A. Piperno, "Practical graph isomorphism, II", Journal of Symbolic Computation 60, 2014,
    without their canonical labels and pruning).
    """
    if network.nodes > MOST_NODES:
        return Automorphisms(network, ())
    return Automorphisms(network, tuple(_Search(network).generators()))


class _Search:
    def __init__(self, network: Network) -> None:
        n = network.nodes
        self.nodes = n
        self.adjacency = np.zeros((n, n), dtype=np.int64)
        self.adjacency[tuple(network.ends.T)] = self.adjacency[tuple(network.ends.T[::-1])] = 1
        self.left = _MOST_REFINEMENTS

    def generators(self) -> list[Ints]:
        found: list[Ints] = []
        colours = self._refined(np.zeros(2 * self.nodes, dtype=np.int64))
        fixed: list[int] = []
        while self.left > 0:
            own = colours[: self.nodes]
            cell = _first_cell(own)
            if cell is None:
                break
            base, *others = cell
            keeping = [each for each in found if all(each[node] == node for node in fixed)]
            reached = _reached(base, keeping)
            for other in others:
                if other in reached:
                    continue
                image = self._mapping(self._individualised(colours, base, other))
                if image is not None:
                    found.append(image)
                    keeping.append(image)
                    reached = _reached(base, keeping)
            fixed.append(base)
            colours = self._individualised(colours, base, base)
        return found

    def _individualised(self, colours: Ints, node: int, other: int) -> Ints:
        """Colours after ``node`` of the graph and ``other`` of its copy have got one of their own."""
        fresh = colours.copy()
        fresh[node] = fresh[self.nodes + other] = colours.max() + 1
        return self._refined(fresh)

    def _refined(self, colours: Ints) -> Ints:
        """Colours of the graph and its copy, such that nodes of one colour have as many neighbours of each colour."""
        self.left -= 1
        n = self.nodes
        while True:
            count = int(colours.max()) + 1
            marks = np.zeros((2 * n, count), dtype=np.int64)
            marks[np.arange(2 * n), colours] = 1
            seen = np.vstack([self.adjacency @ marks[:n], self.adjacency @ marks[n:]])
            _, finer = np.unique(np.column_stack([colours, seen]), axis=0, return_inverse=True)
            finer = finer.reshape(-1).astype(np.int64)
            if finer.max() + 1 == count:
                return finer
            colours = finer

    def _mapping(self, colours: Ints) -> Ints | None:
        """An automorphism that maps every node to one of its colour in the copy; None if there is none, or no time."""
        n = self.nodes
        own, copied = colours[:n], colours[n:]
        if self.left <= 0 or (np.sort(own) != np.sort(copied)).any():
            return None
        cell = _first_cell(own)
        if cell is None:
            image = np.empty(n, dtype=np.int64)
            image[np.argsort(own)] = np.argsort(copied)
            kept = (self.adjacency[np.ix_(image, image)] == self.adjacency).all()
            return image if kept else None
        for other in np.flatnonzero(copied == own[cell[0]]).tolist():
            image_found = self._mapping(self._individualised(colours, cell[0], other))
            if image_found is not None:
                return image_found
        return None


def _first_cell(colours: Ints) -> list[int] | None:
    """The smallest set of two or more nodes of one colour."""
    values, counts = np.unique(colours, return_counts=True)
    if counts.max() == 1:
        return None
    chosen = values[counts > 1][counts[counts > 1].argmin()]
    found: list[int] = np.flatnonzero(colours == chosen).tolist()
    return found


def _reached(node: int, images: list[Ints]) -> set[int]:
    """The orbit of a node."""
    found, waiting = {node}, [node]
    while waiting:
        at = waiting.pop()
        for image in images:
            if int(image[at]) not in found:
                found.add(int(image[at]))
                waiting.append(int(image[at]))
    return found
