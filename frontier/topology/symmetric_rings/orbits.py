"""A job as seen from some servers, from which translations lead to all others."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from sympy import divisors

from ddlopt.frontier.topology.symmetric_rings.sight import Ints, Sight
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup


class Wanted(NamedTuple):
    """All-reduce groups that the translations take into each other.

    Parameters
    ----------
    members : (k,) array
        Of one of them.
    ring_bytes : float
        On each hop of one ring out of all translates that the group has.
    family : int
    """

    members: Ints
    ring_bytes: float
    family: int


@dataclass(frozen=True, eq=False)
class Orbits:
    """Cosets of a subgroup, whose translations leave links, rings and routes as they are.

    With all translations there is one orbit, and links are those of a Cayley graph.

    Parameters
    ----------
    sight : Sight
    moves : (k,) array
        The subgroup, increasing.
    """

    sight: Sight
    moves: Ints

    @property
    def group(self) -> AbelianGroup:
        """All translations that leave the job as it is."""
        return self.sight.group

    @cached_property
    def first(self) -> Ints:
        """(orbits,) least server of each."""
        return np.unique(self.group.translations[self.moves].min(axis=0))

    @cached_property
    def label(self) -> Ints:
        """(n,) orbit of each server."""
        return np.asarray(np.searchsorted(self.first, self.group.translations[self.moves].min(axis=0)))

    @cached_property
    def shift(self) -> Ints:
        """(n,) element of the subgroup that takes the first of its orbit to each server."""
        return self.group.add(np.arange(self.group.order), self.group.negate(self.first[self.label]))

    @cached_property
    def seen(self) -> Ints:
        """(n, n) array: where [u, v] finds v if u is taken to the first of its orbit."""
        return np.asarray(self.group.translations[self.group.negate(self.shift)])

    @cached_property
    def target(self) -> Ints:
        """(orbits, n) orbit to which an element takes each orbit."""
        return np.asarray(self.label[self.group.translations[:, self.first].T])

    @cached_property
    def pairs(self) -> Ints:
        """(p, 2) orbits and offsets of traffic."""
        offsets = np.flatnonzero(self.sight.offset_bytes > 0)
        return np.stack(np.meshgrid(np.arange(len(self.first)), offsets, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """Of every family one group for each coset of all that its subgroup and the translations make."""
        move, found = self.group.translations, []
        for number, family in enumerate(self.sight.families):
            alone = int(np.isin(family.subgroup, self.moves).sum())
            together = np.unique(move[np.ix_(family.subgroup, self.moves)])
            for server in np.unique(move[together].min(axis=0)):
                members = np.sort(move[family.subgroup, server])
                found.append(Wanted(members, family.hop_bytes / alone, number))
        return tuple(found)


def all_orbits(sight: Sight, most: int) -> Iterator[Orbits]:
    """Those of subgroups that are products of subgroups of the factors, ``most`` orbits at most; few orbits first."""
    group = sight.group
    steps = product(*(divisors(order) for order in group.invariants))
    for multiples in sorted((each for each in steps if prod(each) <= most), key=lambda each: (prod(each), each)):
        yield Orbits(sight, np.flatnonzero((group.elements % np.array(multiples) == 0).all(axis=1)))
