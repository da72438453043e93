"""The proof that no plan of matchings is below a claim: a tree of regions, and its check in rational numbers.

Nodes stand in the order in which a walk meets them, the first child of each before the second; a region that is seen
to be empty has none. There are five kinds.

``["split", variable, point]``
    The probability is at most the point, then at least; in units of 2^-``POINT_BITS``.
``["edge", e]``
    Edge e is at the first level that it may have, then at none before the next.
``["orbit", e]``
    The same, where automorphisms map the region to itself: if any edge to which the symmetries of the proof take e is
    at that level, e may as well be; then none of them is.
``["image", place, permutation]``
    An automorphism, by the image of each node, takes the region into that of an earlier node, which is proven with all
    that is below it: it is no ancestor.
``["leaf", vectors, flows, prices]`` or ``["leaf", vectors, flows, prices, lent]``
    See :mod:`~ddlopt.certificates.gossip.matchings.leaf`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.certificates.gossip.matchings.leaf import leaf_bound
from ddlopt.certificates.gossip.matchings.regions import Region, Regions
from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance

POINT_BITS = 20
"""After the binary point of where a probability is split."""
_LARGEST = 2**256
"""Of a number: honest ones have some twenty-four bits."""


@dataclass(frozen=True)
class MatchingsCertificate(OwnCertificate):
    """A proof that no plan is below ``claim``, which is at most 1.

    Parameters
    ----------
    symmetries : sequence of sequences of n int
        Automorphisms of the graph, by the image of each node.
    nodes : sequence
        Of the tree; see the module.
    """

    format: ClassVar[str] = "ddlopt matchings certificate"
    kind: ClassVar[str] = "matchings"
    says: ClassVar[str] = "of the instance, by a tree of regions and vectors of whole numbers"

    symmetries: Sequence[Sequence[int]]
    nodes: Sequence[Any]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Lists of whole numbers, none too large, and nodes of the five kinds."""
        if not _is_table(data["symmetries"]):
            return "symmetries is a list of lists of whole numbers below 2^256"
        if not isinstance(data["nodes"], list):
            return "nodes is a list"
        for place, node in enumerate(data["nodes"]):
            if not _is_node(node):
                return f"nodes[{place}] is none of split, edge, orbit, image and leaf with whole numbers below 2^256"
        return None

    def check(self, instance: MatchingsInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless the tree proves the claim; its number of nodes."""
        regions = Regions(instance)
        orbits = orbits_of(regions, self.symmetries)
        if self.claim > 1:
            raise RefutedError(f"the claim is {float(self.claim):.12g}; a factor of 1 is always possible")
        images = _Images(regions, self.nodes)
        open_regions: list[tuple[Region, int]] = [(regions.root, -1)]
        for place, node in enumerate(self.nodes):
            if expired():
                return 0
            if not open_regions:
                raise RefutedError("the tree has nodes after its last leaf")
            region, above = open_regions.pop()
            images.met(region, above)
            if node[0] == "leaf":
                bound = leaf_bound(regions, regions.polytope(region), *node[1:])
                if bound is not None and bound < self.claim:
                    raise RefutedError(f"a leaf proves {float(bound):.12g}, not {float(self.claim):.12g}")
            elif node[0] == "image":
                images.check(place, region, *node[1:])
            else:
                children = children_of(regions, region, orbits, node)
                open_regions.extend((child, place) for child in reversed(children) if child is not None)
        if open_regions:
            raise RefutedError("the tree ends before its last leaf")
        return len(self.nodes)


class _Images:
    """The regions of earlier nodes to which later ones refer, and above which node each stands."""

    def __init__(self, regions: Regions, nodes: Sequence[Any]) -> None:
        self.regions = regions
        self._wanted = {node[1] for node in nodes if node[0] == "image"}
        self._above: list[int] = []
        self._kept: dict[int, Region] = {}

    def met(self, region: Region, above: int) -> None:
        """The next node, and its parent."""
        if len(self._above) in self._wanted:
            self._kept[len(self._above)] = region
        self._above.append(above)

    def check(self, place: int, region: Region, target: int, permutation: Sequence[int]) -> None:
        """Raise RefutedError unless the permutation takes the region of ``place`` into that of a proven node."""
        if not 0 <= target < place:
            raise RefutedError(f"node {place} is the image of node {target}, which is no earlier one")
        ancestor = place
        while ancestor > target:
            ancestor = self._above[ancestor]
        # Nodes before this one, in the order of the walk, are done with all that is below them or are above it.
        if ancestor == target:
            raise RefutedError(f"node {place} is the image of node {target}, of which it is a part")
        moved = edges_moved(self.regions, permutation)
        if not is_image(region, self._kept[target], moved):
            raise RefutedError(f"the permutation of node {place} does not take it into node {target}")


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < _LARGEST


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_whole, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_vector, value))


def _is_node(node: Any) -> bool:
    if not isinstance(node, list) or not node:
        return False
    if node[0] == "leaf":
        return len(node) in {4, 5} and _is_table(node[1]) and all(map(_is_vector, node[2:]))
    if node[0] == "image":
        return len(node) == 3 and _is_whole(node[1]) and _is_vector(node[2])
    return len(node) == {"split": 3, "edge": 2, "orbit": 2}.get(str(node[0])) and _is_vector(node[1:])


def orbits_of(regions: Regions, symmetries: Sequence[Sequence[int]]) -> tuple[frozenset[int], ...]:
    """(m,) where symmetries take each edge, one after the other.

    Raises
    ------
    RefutedError
        If one of them is no automorphism, or there is no use for any.
    """
    found = [frozenset((edge,)) for edge in range(len(regions.edges))]
    for image in symmetries:
        for edge, other in enumerate(edges_moved(regions, image)):
            if other not in found[edge]:
                both = found[edge] | found[other]
                for each in both:
                    found[each] = both
    return tuple(found)


def edges_moved(regions: Regions, image: Sequence[int]) -> list[int]:
    """(m,) where an automorphism, by the image of each node, takes each edge.

    Raises
    ------
    RefutedError
        If it is none, or there is no use for any.
    """
    if not regions.leveled:
        raise RefutedError("there are no levels for which symmetries would be of use")
    every = set(range(regions.instance.size))
    if len(image) != len(every) or set(image) != every:
        raise RefutedError("a symmetry is no permutation of the nodes")
    place, moved = {frozenset(ends): edge for edge, ends in enumerate(regions.edges)}, list[int]()
    for edge, (i, j) in enumerate(regions.edges):
        other = place.get(frozenset((image[i], image[j])))
        if other is None:
            raise RefutedError(f"a symmetry takes edge {edge} to what is no edge")
        moved.append(other)
    return moved


def is_image(region: Region, other: Region, moved: Sequence[int]) -> bool:
    """Whether all plans of a region with levels, their edges moved, are plans of another one."""
    for edge, there in enumerate(moved):
        level, least = region.level[edge], other.level[there]
        if level < least or (other.decided[there] and not (region.decided[edge] and level == least)):
            return False
    if len(region.low) < len(other.low):
        return False
    sides = zip(region.low, region.high, other.low, other.high, strict=False)
    return all(below <= low and high <= above for low, high, below, above in sides)


def children_of(
    regions: Regions, region: Region, orbits: Sequence[frozenset[int]], node: Sequence[Any]
) -> tuple[Region | None, ...]:
    """The parts of a region that a node names; None for one that is empty.

    Raises
    ------
    RefutedError
        If it cannot be divided so.
    """
    kind, place = node[0], node[1]
    if kind == "split":
        point = Fraction(node[2], 2**POINT_BITS)
        if not 0 <= place < len(region.low) or not region.low[place] < point < region.high[place]:
            raise RefutedError(f"a split of variable {place} at {float(point):g} divides nothing")
        return regions.split(region, place, point)
    if not regions.leveled or not 0 <= place < len(regions.edges) or region.decided[place]:
        raise RefutedError(f"there is no edge {place} that has no level yet")
    if kind == "edge":
        return regions.at_level(region, place), regions.later(region, (place,))
    orbit = orbits[place]
    first = {region.level[edge] for edge in orbit}
    if not region.symmetric or len(first) > 1 or any(region.decided[edge] for edge in orbit):
        raise RefutedError(f"the region is not the same for all edges that are like edge {place}")
    return regions.at_level(region, place), regions.later(region, orbit, symmetric=True)
