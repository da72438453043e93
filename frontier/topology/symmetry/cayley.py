"""Cayley graphs of finite abelian groups: circulants, tori, hypercubes.

Server x is the element x of a group G = Z_a1 x ... x Z_ar; a generator g links every x to x + g. The graph looks the
same from every server (translations are automorphisms), so one breadth-first search from the identity gives all
distances, and an automorphism of G maps a set of generators to one with the same graph up to renaming of servers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement, permutations, product
from math import comb, prod

import numpy as np
import numpy.typing as npt
from sympy import factorint
from sympy.combinatorics import Permutation, PermutationGroup
from sympy.combinatorics.named_groups import AbelianGroup as DirectProductOfCycles
from sympy.utilities.iterables import partitions

from ddlopt.models.gossip.circulant.symmetry import Indices, smallest_images

MOST_HOMOMORPHISMS = 200_000
"""How many candidate homomorphisms :attr:`AbelianGroup.automorphisms` is ready to try."""

# Entries of 8 bytes: a quarter of a megabyte, as a core's cache of second level has.
_CACHED = 2**15


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

    @cached_property
    def permutation_group(self) -> PermutationGroup:
        """The same group in SymPy: a direct product of cycles on a1 + ... + ar points."""
        return DirectProductOfCycles(*self.invariants)

    def permutation(self, x: int) -> Permutation:
        """The element x as a SymPy permutation in :attr:`permutation_group`."""
        group = self.permutation_group
        element = group.identity
        for generator, exponent in zip(group.generators, self.elements[x].tolist(), strict=True):
            element = element * generator**exponent
        return element

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

    def distances_of_many(self, sets: Indices) -> Indices:
        """(s, n) array: :meth:`distances` for each row of an (s, k) array of generators, -1 where there is no way."""
        hops = np.full((len(sets), self.order), -1, dtype=np.int64)
        hops[:, 0] = 0
        before = self.translations[self.negate(np.arange(self.order))]
        # As many searches advance together as stay in the cache.
        together = max(1, _CACHED // self.order)
        for begin in range(0, len(sets), together):
            part, found = sets[begin : begin + together], hops[begin : begin + together]
            rows = np.arange(len(part))[:, None] * self.order
            places = [rows + before[column] for column in part.T]
            reached = found == 0
            for level in range(1, self.order):
                further = reached.copy()
                for place in places:
                    further |= reached.take(place)
                new = further & ~reached
                if not new.any():
                    break
                found[new] = level
                reached = further
        return hops

    def diameter(self, generators: Iterable[int]) -> int | None:
        """Largest distance, or None if the graph is not connected."""
        hops = self.distances(generators)
        return None if (hops < 0).any() else int(hops.max())

    def mean_distance(self, generators: Iterable[int]) -> float | None:
        """Mean distance to the n - 1 others, or None if the graph is not connected."""
        hops = self.distances(generators)
        return None if (hops < 0).any() else float(hops.sum() / (self.order - 1))

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


def abelian_groups(order: int) -> Iterator[AbelianGroup]:
    """Every abelian group of that order, one of each isomorphism class, the cyclic one first.

    By the fundamental theorem they are the products of cyclic groups of prime-power order: one choice of a partition of
    the exponent of each prime of ``order``. They are given by invariant factors, e.g. (2, 4) and not (4, 2) for 8.
    """
    if order < 2:
        raise ValueError(f"a group of servers needs at least 2 elements, got {order}")
    options = []
    for prime, exponent in factorint(order).items():
        parts = [
            sorted((part for part, count in partition.items() for _ in range(count)), reverse=True)
            for partition in map(dict, partitions(exponent))
        ]
        options.append([[int(prime) ** part for part in choice] for choice in sorted(parts, key=len)])
    for choice in product(*options):
        rank = max(map(len, choice))
        factors = [prod(powers[i] for powers in choice if i < len(powers)) for i in range(rank)]
        yield AbelianGroup(tuple(reversed(factors)))


def generator_orbits(candidates: Sequence[int], size: int, automorphisms: Indices, repetition: bool = False) -> Indices:
    """One set of generators from each orbit under the automorphisms, in lexicographic order.

    Parameters
    ----------
    candidates : sequence of int
        Elements to choose from; the automorphisms must map them to each other.
    size : int
        Generators in a set.
    automorphisms : (a, n) int array
        A group of permutations of the elements.
    repetition : bool
        Whether a generator may occur more than once (parallel links).

    Returns
    -------
    (s, size) int array
        The smallest set of each orbit.
    """
    choose = combinations_with_replacement if repetition else combinations
    blocks = [np.zeros((0, size), dtype=np.int64)]
    for leader, rest in _leaders_and_rests(candidates, automorphisms, repetition):
        flat = chain.from_iterable((leader, *others) for others in choose(rest, size - 1))
        sets = np.fromiter(flat, dtype=np.int64).reshape(-1, size)
        blocks.append(sets[(smallest_images(sets, automorphisms) == sets).all(axis=1)])
    return np.concatenate(blocks)


def orbit_candidates(candidates: Sequence[int], size: int, automorphisms: Indices, repetition: bool = False) -> int:
    """How many sets :func:`generator_orbits` has to look at."""
    leaders = _leaders_and_rests(candidates, automorphisms, repetition)
    return sum(comb(len(rest) + (size - 2 if repetition and size > 1 else 0), size - 1) for _, rest in leaders)


def _leaders_and_rests(
    candidates: Sequence[int], automorphisms: Indices, repetition: bool
) -> Iterator[tuple[int, list[int]]]:
    """First elements of the smallest sets of orbits, and what may follow: nothing that has a smaller image."""
    pool = sorted(set(candidates))
    smallest = automorphisms.min(axis=0)
    for leader in pool:
        if smallest[leader] == leader:
            follow = leader if repetition else leader + 1
            yield leader, [g for g in pool if g >= follow and smallest[g] >= leader]
