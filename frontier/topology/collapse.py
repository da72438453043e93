"""The symmetric collapse: what is left of topology design if servers are the elements of an abelian group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup, abelian_level_sizes
from ddlopt.models.gossip.circulant.symmetry import Indices
from ddlopt.models.topology.assembly import assemble, decompose
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

Array = npt.NDArray[np.float64]

_SAME = 1e-9
"""Relative difference up to which two byte counts are one; far below what a check of an objective notices."""


@dataclass(frozen=True)
class Reduction:
    """All-reduces over every coset of one cyclic subgroup, with the same bytes in each.

    Parameters
    ----------
    subgroup : tuple of int
        Its elements, increasing.
    hop_bytes : float
        Bytes that one ring with the whole gradient sends over each of its hops, over all groups on the same coset.
    generators : tuple of int
        Elements g that generate the subgroup: x -> x + g is a ring in every coset.
    groups : tuple of int
        Indices of the all-reduce groups concerned.
    """

    subgroup: tuple[int, ...]
    hop_bytes: float
    generators: tuple[int, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class GeneratorClass:
    """Links that come together: x -> x + g for every server x, and for duplex optics also x -> x - g.

    ``interfaces`` is what one link of the class takes of each server's degree.
    """

    generator: int
    inverse: int
    interfaces: int

    @property
    def directions(self) -> tuple[int, ...]:
        """The one or two offsets that its links lead to."""
        return (self.generator,) if self.interfaces == 1 else (self.generator, self.inverse)


@dataclass(frozen=True)
class Collapse:
    """An instance whose traffic looks the same from every server, as seen from server 0.

    Parameters
    ----------
    instance : TopologyInstance
    group : AbelianGroup
        Of order n; server x is its element x.
    offset_bytes : (n,) array
        Model-parallel bytes from x to x + v.
    reductions : tuple of Reduction
    ring_capable : bool
        Whether only generators of a ring through all servers may be links.
    """

    instance: TopologyInstance
    group: AbelianGroup
    offset_bytes: Array
    reductions: tuple[Reduction, ...]
    ring_capable: bool = False

    @cached_property
    def classes(self) -> tuple[GeneratorClass, ...]:
        """What may be linked, by increasing generator."""
        group, duplex = self.group, self.instance.optics == "duplex"
        classes = []
        for g, inverse in zip(range(1, group.order), group.negate(np.arange(1, group.order)).tolist(), strict=True):
            if self.ring_capable and group.element_orders[g] != group.order:
                continue
            if not duplex or g <= inverse:
                classes.append(GeneratorClass(g, inverse, 2 if duplex and g != inverse else 1))
        return tuple(classes)

    @property
    def interfaces(self) -> int:
        """Interfaces of a server that links can use: with duplex optics and n odd some plane always leaves it out."""
        instance = self.instance
        odd = instance.optics == "duplex" and instance.servers % 2 == 1
        return 2 * ((instance.degree - 1) // 2) if odd else instance.degree

    @cached_property
    def odd_subgroups(self) -> dict[tuple[int, ...], int]:
        """Duplex only: subgroups H of odd order with the most interfaces that links inside H can use.

        A matching joins at most ``|H| - 1`` elements of a coset of H, so d of them give each element
        ``d (|H| - 1) / |H|`` partners at most, on average. Links come in inverse pairs there, which makes the
        number even.
        """
        if self.instance.optics != "duplex":
            return {}
        orders, known = self.group.element_orders, {frozenset([0])}
        for g in np.flatnonzero((orders % 2 == 1) & (orders > 1)).tolist():
            for subgroup in list(known):
                known.add(frozenset(self._generated([*subgroup, g])))
        d = self.instance.degree
        return {
            tuple(sorted(h)): 2 * (d * (len(h) - 1) // (2 * len(h))) for h in sorted(known, key=sorted) if len(h) > 1
        }

    def _generated(self, generators: list[int]) -> list[int]:
        return np.flatnonzero(self.group.distances([g for g in generators if g]) >= 0).tolist()

    @cached_property
    def symmetries(self) -> Indices:
        """(a, n) array: the automorphisms under which the traffic and the reductions do not change."""
        maps = self.group.automorphisms
        maps = maps[np.isclose(self.offset_bytes[maps], self.offset_bytes, rtol=_SAME, atol=0).all(axis=1)]
        for reduction in self.reductions:
            subgroup = np.array(reduction.subgroup)
            maps = maps[(np.sort(maps[:, subgroup], axis=1) == subgroup).all(axis=1)]
        return maps

    @cached_property
    def class_symmetries(self) -> Indices:
        """The same as maps of generators to the classes of their images."""
        maps = self.symmetries
        return np.minimum(maps, self.group.negate(maps)) if self.instance.optics == "duplex" else maps

    @cached_property
    def least_load_bytes(self) -> float:
        """Lower bound on the busiest link over all designs of this class: bytes times hops in abelian balls.

        The natural unit of loads: models in it are well scaled.
        """
        exponent = int(self.group.element_orders.max())
        duplex = self.instance.optics == "duplex"
        levels = abelian_level_sizes(self.group.order, self.interfaces, duplex, exponent)
        hops = np.repeat(np.arange(1, len(levels) + 1), levels)
        largest_first = -np.sort(-self.offset_bytes[1:])
        far = float(largest_first[len(hops) :].sum())
        if far > 0 or self.interfaces == 0:
            return float("inf")
        direct = sum(reduction.hop_bytes for reduction in self.reductions)
        return (direct + float(largest_first[: len(hops)] @ hops)) / self.interfaces

    def design(
        self, links: Mapping[int, int], flow: Mapping[tuple[int, int], float], shares: Sequence[Mapping[int, float]]
    ) -> TopologyDesign:
        """The design that translations make of what server 0 does.

        Parameters
        ----------
        links : mapping generator -> count
            By :class:`GeneratorClass`.
        flow : mapping (u, g) -> float
            What is sent by server 0 and passes from u to u + g, in units of its demand.
        shares : list of mapping generator -> float
            Of each reduction: parts of the gradient by ring generator.
        """
        group, n = self.group, self.group.order
        classes = {c.generator: c for c in self.classes}
        laid = {g for generator, count in links.items() if count for g in classes[generator].directions}
        arcs = [(u, int(group.add(u, g)), g) for u in range(n) for g in sorted(laid)]
        carried, demand = np.zeros((n, len(arcs))), np.zeros((n, n))
        carried[0] = [flow.get((u, g), 0.0) for u, _, g in arcs]
        demand[0] = self.offset_bytes
        for reduction, of_rings in zip(self.reductions, shares, strict=True):
            for g, share in of_rings.items():
                demand[0, g] += reduction.hop_bytes * share
        paths = {}
        for (_, v), found in decompose([(u, w) for u, w, _ in arcs], carried, demand).items():
            for x in range(n):
                moved = [(tuple(group.add(x, list(path)).tolist()), amount) for path, amount in found]
                paths[x, int(group.add(x, v))] = moved
        return assemble(self.instance, self._pairs(links, classes), self._rings(shares), paths)

    def _pairs(self, links: Mapping[int, int], classes: Mapping[int, GeneratorClass]) -> dict[tuple[int, int], int]:
        pairs: dict[tuple[int, int], int] = {}
        for (generator, count), x in product(links.items(), range(self.group.order)):
            y = int(self.group.add(x, generator))
            if self.instance.optics == "one_way":
                pairs[x, y] = count
            elif classes[generator].interfaces == 2 or x < y:
                pairs[min(x, y), max(x, y)] = count
        return pairs

    def _rings(self, shares: Sequence[Mapping[int, float]]) -> list[tuple[int, tuple[int, ...], float]]:
        rings = []
        for reduction, of_rings in zip(self.reductions, shares, strict=True):
            for number, (g, share) in product(reduction.groups, of_rings.items()):
                members = [self.instance.allreduce_groups[number].members[0]]
                while len(members) < len(reduction.subgroup):
                    members.append(int(self.group.add(members[-1], g)))
                rings.append((number, tuple(members), share))
        return rings


def collapse(instance: TopologyInstance, group: AbelianGroup, ring_capable: bool = False) -> Collapse | str:
    """The instance as seen from server 0, or the reason why it does not look the same from every server."""
    n = instance.servers
    if group.order != n:
        return f"{group} has {group.order} elements, but there are {n} servers"
    # aligned[x, v]: bytes from x to x + v.
    aligned = instance.traffic_bytes[np.arange(n)[:, None], group.translations.T]
    offset_bytes = aligned.mean(axis=0)
    different = np.abs(aligned - aligned[0]) > _SAME * np.abs(aligned[0])
    if different.any():
        x, v = (int(i) for i in np.argwhere(different)[0])
        y = int(group.add(x, v))
        return (
            f"traffic_bytes[{x}][{y}] = {aligned[x, v]:g} differs from traffic_bytes[0][{v}] = {aligned[0, v]:g}, "
            f"though {x} -> {y} is a translation of 0 -> {v} in {group}; all servers must see the same traffic"
        )
    reductions = _reductions(instance, group)
    if isinstance(reductions, str):
        return reductions
    found = Collapse(instance, group, offset_bytes, reductions, ring_capable)
    if not found.classes:
        return f"{group} has no generator of a ring through all {n} servers"
    if found.least_load_bytes == float("inf"):
        return (
            f"no Cayley graph of {group} with {found.interfaces} usable interfaces joins all servers that communicate"
        )
    return found


def _reductions(instance: TopologyInstance, group: AbelianGroup) -> tuple[Reduction, ...] | str:
    """The all-reduce groups sorted by the subgroup whose cosets they are, or what is wrong with them."""
    bytes_of: dict[tuple[int, ...], float] = {}
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number, members in enumerate(g.members for g in instance.allreduce_groups):
        bytes_of[members] = bytes_of.get(members, 0.0) + instance.allreduce_groups[number].hop_bytes
        numbers.setdefault(members, []).append(number)
    reductions = []
    kinds = {_subgroup(group, members): of_members[0] for members, of_members in reversed(numbers.items())}
    for subgroup, number in sorted(kinds.items()):
        k = len(subgroup)
        if not np.isin(group.translations[np.ix_(subgroup, subgroup)], subgroup).all():
            return f"allreduce_groups[{number}] is not a coset of a subgroup of {group}"
        generators = tuple(g for g in subgroup if group.element_orders[g] == k)
        if not generators:
            return f"allreduce_groups[{number}]: no element of {group} generates a ring through its {k} members"
        cosets = {_moved(group, subgroup, x) for x in range(group.order)}
        missing = sorted(cosets - bytes_of.keys())
        if missing:
            return f"allreduce_groups[{number}] is a coset of {group}, but there is no group on {list(missing[0])}"
        figures = [bytes_of[coset] for coset in sorted(cosets)]
        if max(figures) > min(figures) * (1 + _SAME):
            return f"allreduce_groups[{number}] and the groups on its other cosets do not reduce the same bytes"
        concerned = tuple(sorted(i for coset in cosets for i in numbers[coset]))
        reductions.append(Reduction(subgroup, float(np.mean(figures)), generators, concerned))
    return tuple(reductions)


def _subgroup(group: AbelianGroup, members: tuple[int, ...]) -> tuple[int, ...]:
    """The members as seen from the first of them: a subgroup, if they are a coset."""
    return _moved(group, members, int(group.negate(members[0])))


def _moved(group: AbelianGroup, members: tuple[int, ...], by: int) -> tuple[int, ...]:
    return tuple(sorted(group.add(np.array(members), by).tolist()))
