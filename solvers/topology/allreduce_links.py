"""Rings for all-reduce groups: links of their own by generators, and routes over others' links for the rest."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import WHOLE_TOL
from ddlopt.models.topology import Path, TopologyInstance
from ddlopt.models.topology.permutations import coset, hops_of, is_coset, ring, totient_perms, totients
from ddlopt.solvers.topology.draft import Draft, RingOrder
from ddlopt.solvers.topology.routing import Network, Pair, shortest_paths
from ddlopt.solvers.topology.topoopt.coin_change import CoinTable, coin_change_mod
from ddlopt.solvers.topology.topoopt.select_permutations import choose_geometric, select_permutations


@dataclass
class Rings:
    """Rings chosen so far; ``generators`` of each group that has rings, by its index."""

    orders: list[RingOrder] = field(default_factory=list)
    generators: dict[int, list[int]] = field(default_factory=dict)

    def give(self, group: int, members: Sequence[int], generators: Sequence[int], both_ways: bool) -> None:
        """Let the group use the rings of these generators, and their reverses if ``both_ways``, with equal shares."""
        k = len(members)
        self.generators[group] = list(generators)
        for p in generators:
            for q in (p, k - p) if both_ways and k > 2 else (p,):
                self.orders.append((group, ring(members, q), 1.0))

    def direct_bytes(self, instance: TopologyInstance) -> npt.NDArray[np.float64]:
        """(n, n) array: model-parallel traffic plus what the rings send over each hop."""
        total = instance.traffic_bytes.copy()
        rings_of = np.bincount([group for group, _, _ in self.orders], minlength=len(instance.allreduce_groups))
        for group, order, _ in self.orders:
            for hop in hops_of(order):
                total[hop] += instance.allreduce_groups[group].hop_bytes / rings_of[group]
        return total


def lay_backbone(draft: Draft, both_ways: bool = False) -> bool:
    """Lay the +1 ring over all servers, so that everybody is joined; False if there is no room for it."""
    links = draft.ring_links(range(draft.instance.servers), both_ways)
    room = draft.fits(links)
    if room:
        draft.add(links)
    return room


def paper_rings(draft: Draft, budget: int, primes_only: bool = False, generators: Sequence[int] | None = None) -> Rings:
    """Give ring links to groups by descending bytes, as the paper's TopologyFinder does.

    A group's part of the budget is ceil(budget * its bytes / all all-reduce bytes). The paper counts one budget for the
    whole network; here every server counts its own, which is the same where all groups have the same servers and keeps
    disjoint groups from starving each other. A duplex ring serves both of its directions and takes two ports. Where a
    group is due more rings than it has generators, generators are used again.

    Parameters
    ----------
    draft : Draft
        Gets the links.
    budget : int
        Ports of each server for rings.
    primes_only : bool
        Generators 1 and primes only.
    generators : sequence of int, optional
        Of the group with the most bytes, in place of those that :func:`.select_permutations` picks; as many of them as
        it is due, and only those that are generators of it.
    """
    groups = draft.instance.allreduce_groups
    rings = Rings()
    left = np.full(draft.instance.servers, budget)
    reduced = np.zeros(draft.instance.servers)
    for group in groups:
        reduced[list(group.members)] += group.hop_bytes
    for place, index in enumerate(sorted(range(len(groups)), key=lambda g: (-groups[g].hop_bytes, g))):
        members, k = groups[index].members, len(groups[index].members)
        ports = 2 if draft.duplex and k > 2 else 1
        due = math.ceil(budget * groups[index].hop_bytes / reduced[list(members)].max() - WHOLE_TOL)
        count = min(math.ceil(due / ports), int(left[list(members)].min()) // ports)
        # A duplex ring and its reverse are the same links.
        pool = [p for p in totient_perms(k, primes_only) if not draft.duplex or 2 * p <= k]
        picked: Sequence[int] = select_permutations(pool, k, count)
        if generators is not None and place == 0:
            picked = [p for p in generators if p in pool][:count]
        chosen = _lay(draft, [members], picked, pool, count, both_ways=False)
        left[list(members)] -= len(chosen) * ports
        if chosen:
            rings.give(index, members, chosen, draft.duplex)
    return rings


def released_rings(draft: Draft, budget: int) -> Rings:
    """Give every ring port to the groups of one size, as the released code does.

    The size whose groups reduce the most bytes, weighted (2k-1)/k, takes the whole budget, in all cosets of that size;
    unless it is n, one ring over all servers is put in first. Every ring is laid together with its reverse, except that
    one-way optics of degree 1 leave room for one direction only. The released code knows equally spaced groups (cosets)
    only: here any other group competes by itself and is laid on the positions of its members. Without any group, all
    servers count as one.

    Parameters
    ----------
    draft : Draft
        Gets the links.
    budget : int
        Ports of each server for rings.
    """
    instance, n = draft.instance, draft.instance.servers
    both_ways = draft.duplex or budget > 1
    rings = Rings()

    def ports(size: int) -> int:
        return 2 if both_ways and size > 2 else 1

    classes = _classes(instance)
    indices, size, lists = classes[0] if classes else ([], n, [tuple(range(n))])
    if size < n and budget >= ports(n) and lay_backbone(draft, both_ways):
        budget -= ports(n)
        for index, group in enumerate(instance.allreduce_groups):
            if len(group.members) == n:
                rings.give(index, group.members, [1], both_ways)
    count = budget // ports(size)
    pool = totients(size)
    chosen = _lay(draft, lists, choose_geometric(pool, count), pool, count, both_ways)
    for index in indices if chosen else ():
        rings.give(index, instance.allreduce_groups[index].members, chosen, both_ways)
    return rings


def _classes(instance: TopologyInstance) -> list[tuple[list[int], int, list[tuple[int, ...]]]]:
    """Groups that get links together: their indices, size, and all member lists laid; the most bytes first."""
    n = instance.servers
    bundles: dict[tuple[int, int], list[int]] = {}
    for index, group in enumerate(instance.allreduce_groups):
        key = (len(group.members), -1 if is_coset(group.members, n) else index)
        bundles.setdefault(key, []).append(index)
    weighted = []
    for (size, single), indices in bundles.items():
        weight = sum(instance.allreduce_groups[g].gradient_bytes * (2 * size - 1) / size for g in indices)
        if single < 0:
            lists = [coset(n, size, start) for start in range(n // size)]
        else:
            lists = [instance.allreduce_groups[single].members]
        weighted.append((weight, size, indices, lists))
    weighted.sort(key=lambda item: (-item[0], -item[1], item[2]))
    return [(indices, size, lists) for _, size, indices, lists in weighted]


def _lay(
    draft: Draft,
    lists: Sequence[Sequence[int]],
    picked: Sequence[int],
    pool: Sequence[int],
    count: int,
    both_ways: bool,
) -> list[int]:
    """Lay the rings of the picked generators on every list of members; gives the generators laid.

    One for which there is no room gives way to the next larger unused one of the pool (then the next from the start).
    If fewer than ``count`` were picked, those laid are laid again while there is room.
    """

    def links(p: int) -> list[Pair]:
        return [link for members in lists for link in draft.ring_links(ring(members, p), both_ways)]

    laid: list[int] = []
    unused = [p for p in pool if p not in set(picked)]
    for p in picked:
        for q in (p, *[q for q in unused if q > p], *[q for q in unused if q < p]):
            if draft.fits(links(q)):
                draft.add(links(q))
                laid.append(q)
                unused = [other for other in unused if other != q]
                break
    for p in itertools.cycle(tuple(laid)):
        if len(laid) >= count or not draft.fits(links(p)):
            break
        draft.add(links(p))
        laid.append(p)
    return laid


@dataclass(frozen=True)
class HopRouter:
    """Paths of ring hops: a direct link, else CoinChangeMod on the rings over all servers, else a shortest path.

    Parameters
    ----------
    network : Network
    coins : CoinTable or None
        Of the offsets that are links at *every* server; None where these do not lead everywhere.
    seed : int
        Of the choice among shortest paths.
    """

    network: Network
    coins: CoinTable | None
    seed: int

    @classmethod
    def of(cls, network: Network, seed: int, random_ties: bool = False) -> "HopRouter":
        """Find the coins of a network; ``random_ties`` as in the released code."""
        n = network.servers
        everywhere = np.flatnonzero(np.bincount((network.heads - network.tails) % n, minlength=n) == n)
        table = coin_change_mod(n, everywhere.tolist(), seed if random_ties else None)
        return cls(network, table if table.complete else None, seed)

    def hops(self, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Length of the path of each pair."""
        if self.coins is None:
            return self.network.distances[sources, targets].astype(np.int64)
        lengths = self.coins.hops[(targets - sources) % self.network.servers]
        return np.where(self.network.arc[sources, targets] >= 0, 1, lengths)

    def paths(self, pairs: Sequence[Pair]) -> dict[Pair, Path]:
        """The path of each pair."""
        found: dict[Pair, Path] = {}
        lost = []
        for i, j in dict.fromkeys(pairs):
            if self.network.arc[i, j] >= 0:
                found[i, j] = (i, j)
            elif self.coins is not None:
                found[i, j] = self.coins.path(i, j)
            else:
                lost.append((i, j))
        if lost:
            ends = np.array(lost, dtype=np.int32)
            found.update(zip(lost, shortest_paths(self.network, ends, self.seed), strict=True))
        return found

    def shortest_generators(self, members: Sequence[int], most: int) -> list[int]:
        """The ring generators of a group whose hops take the fewest links in all, ``most`` of them at most."""
        places = np.array(members)
        candidates = totients(len(members))
        totals = [int(self.hops(places, np.roll(places, -p)).sum()) for p in candidates]
        return [p for p, total in zip(candidates, totals, strict=True) if total == min(totals)][:most]
