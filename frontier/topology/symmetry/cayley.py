"""Cayley graphs of finite abelian groups: circulants, tori, hypercubes.

Server x is the element x of a group G = Z_a1 x ... x Z_ar; a generator g links every x to x + g. The graph looks the
same from every server (translations are automorphisms), so one breadth-first search from the identity gives all
distances, and an automorphism of G maps a set of generators to one with the same graph up to renaming of servers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt

from ddlopt.models.gossip.circulant.symmetry import Indices

MOST_HOMOMORPHISMS = 200_000
"""How many candidate homomorphisms :attr:`AbelianGroup.automorphisms` is ready to try."""


@dataclass(frozen=True)
class AbelianGroup:
    """The direct product Z_a1 x ... x Z_ar; its elements are coded 0..n-1, last coordinate fastest, identity 0.

    Parameters
    ----------
    invariants : tuple of int
        The orders a_i >= 2 of the cyclic factors, e.g. ``(12,)`` for circulants, ``(3, 4)`` for a torus and
        ``(2, 2, 2)`` for a hypercube. They need not divide each other: (3, 4) is (12,) with other server numbers.

    Raises
    ------
    ValueError
        If a factor has fewer than two elements, or there is none.
    """

    invariants: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.invariants or min(self.invariants) < 2:
            raise ValueError(f"the cyclic factors of a group need orders >= 2, got {self.invariants}")

    def __str__(self) -> str:
        return "×".join(f"Z_{order}" for order in self.invariants)

    @cached_property
    def order(self) -> int:
        """Number of elements n."""
        return prod(self.invariants)

    @cached_property
    def elements(self) -> Indices:
        """(n, r) array: coordinates of each element."""
        return np.stack(np.unravel_index(np.arange(self.order), self.invariants), axis=1).astype(np.int64)

    def index(self, coordinates: npt.ArrayLike) -> Indices:
        """Codes of elements given by coordinates (..., r), which are reduced modulo the invariants."""
        reduced = np.mod(coordinates, self.invariants)
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(reduced, -1, 0)), self.invariants), dtype=np.int64)

    def add(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Indices:
        """Codes of x + y, element by element with broadcasting."""
        if len(self.invariants) == 1:
            return np.asarray(np.add(x, y) % self.order, dtype=np.int64)
        return self.index(self.elements[np.asarray(x)] + self.elements[np.asarray(y)])

    def negate(self, x: npt.ArrayLike) -> Indices:
        """Codes of -x."""
        return self.index(-self.elements[np.asarray(x)])

    @cached_property
    def translations(self) -> Indices:
        """(n, n) array: ``translations[g, x]`` is the code of x + g."""
        everything = np.arange(self.order)
        return self.add(everything[:, None], everything[None, :])

    @cached_property
    def element_orders(self) -> Indices:
        """(n,) array: order of each element, i.e. the length of the cycles that it makes as a generator."""
        factors = np.array(self.invariants)
        return np.asarray(np.lcm.reduce(factors // np.gcd(self.elements, factors), axis=1))

    def distances(self, generators: Iterable[int]) -> Indices:
        """(n,) array: hops from the identity to each element over links x -> x + g; -1 where there is no way.

        One breadth-first search, O(n d). The distance from s to t is that of t - s. For duplex links give g and -g.
        """
        chosen = np.array(sorted(set(generators)), dtype=np.int64)
        hops = np.full(self.order, -1, dtype=np.int64)
        hops[0], frontier, level = 0, np.zeros(1, dtype=np.int64), 0
        while frontier.size and chosen.size:
            level += 1
            reached = self.add(frontier[:, None], chosen[None, :]).ravel()
            frontier = np.unique(reached[hops[reached] < 0])
            hops[frontier] = level
        return hops

    @cached_property
    def scalings(self) -> Indices:
        """(u, n) array: the automorphisms x -> m x for the units m modulo the largest element order."""
        exponent = int(np.lcm.reduce(self.invariants))
        units = np.arange(1, max(exponent, 2))
        units = units[np.gcd(units, exponent) == 1]
        return self.index(units[:, None, None] * self.elements[None])

    @cached_property
    def automorphisms(self) -> Indices:
        """(a, n) array: ``automorphisms[k, x]`` is the image of x under the k-th automorphism.

        A homomorphism is given by the images of the standard generators, each of an order that divides the
        generator's; it is an automorphism if no two elements share an image, which requires equal orders. For Z_n these
        are the multiplications by units. Groups with too many candidates (the hypercubes from 32 servers on) get the
        subgroup of scalings and exchanges of equal factors instead (from 8 factors on, of scalings alone).
        """
        images = [np.flatnonzero(self.element_orders == factor) for factor in self.invariants]
        if len(self.invariants) == 1:
            return self.scalings
        if prod(len(choice) for choice in images) > MOST_HOMOMORPHISMS:
            return self._exchanges_and_scalings()
        maps = np.zeros((1, 1), dtype=np.int64)
        for factor, choice in zip(self.invariants, images, strict=True):
            multiples = self.index(np.arange(factor)[None, :, None] * self.elements[choice][:, None, :])
            extended = self.add(maps[:, None, :, None], multiples[None, :, None, :])
            extended = extended.reshape(len(maps) * len(choice), -1)
            distinct = np.sort(extended, axis=1)
            maps = extended[(np.diff(distinct, axis=1) > 0).all(axis=1)]
        return maps

    def _exchanges_and_scalings(self) -> Indices:
        factors = self.invariants
        orders = permutations(range(len(factors))) if len(factors) <= 7 else iter([tuple(range(len(factors)))])
        keep = [order for order in orders if tuple(factors[i] for i in order) == factors]
        exchanges = self.index(self.elements[:, np.array(keep)].swapaxes(0, 1))
        return np.unique(self.scalings[:, exchanges].reshape(-1, self.order), axis=0)


def abelian_level_sizes(order: int, degree: int, duplex: bool = False, exponent: int | None = None) -> list[int]:
    """Most elements at distance 1, 2, … from the identity in an abelian Cayley graph; their sum is at most order - 1.

    A shortest word uses a generator fewer times than its order, and the order of the summands does not matter. So the
    ball of radius D is at most the sum of the first coefficients of a product with one factor per generator: 1 + x +
    … + x^(e-1) for one direction, 1 + 2x + 2x² + … for a generator and its inverse, 1 + x for one of order two. e is
    the group's ``exponent``, the largest order. Duplex interfaces make the most of pairs; an odd one is of order two.
    """
    longest = (exponent or order) - 1
    single = np.ones(min(longest, order) + 1)
    if not duplex:
        factors = [single] * degree
    else:
        pair = np.array([1.0, *[2.0] * (longest // 2), *[1.0] * (longest % 2)])
        factors = [pair if longest > 1 else np.ones(2)] * (degree // 2 if longest > 1 else degree)
        factors += [np.ones(2)] * (degree % 2 if longest > 1 else 0)
    sizes, left = np.ones(1), order - 1
    for factor in factors:
        sizes = np.minimum(np.convolve(sizes, factor)[: order + 1], order)
    levels = []
    for size in sizes[1:].astype(int).tolist():
        if left:
            levels.append(min(size, left))
            left -= levels[-1]
    return levels
