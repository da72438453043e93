"""A way for every byte that any strategies may send over given links, and what it then puts on each of them."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.topology import Path, Ring, Route, TopologyDesign
from ddlopt.models.topology.permutations import hops_of, ring
from ddlopt.solvers.topology.allreduce_links import HopRouter
from ddlopt.solvers.topology.routing import UNREACHABLE, Network, Pair, PathSets, k_shortest_paths

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class PatternEntries(NamedTuple):
    """Non-zero entries of all patterns: source, target, bytes per byte, number of the pattern."""

    source: Ints
    target: Ints
    part: Floats
    pattern: Ints


class RingPaths(NamedTuple):
    """One ring of a group: members in ring order, its part of the gradient, one path per hop."""

    members: tuple[int, ...]
    share: float
    paths: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class PairPaths:
    """Paths of m ordered pairs and how each pair's bytes are split over them.

    Parameters
    ----------
    pairs : (m, 2) array
    paths : PathSets
    fractions : (paths,) array
        Of the pair's bytes.
    """

    pairs: npt.NDArray[np.int32]
    paths: PathSets
    fractions: Floats

    def unit_loads(self, network: Network) -> csr_array:
        """(arcs, m) bytes on each arc for every byte of each pair."""
        starts, nodes = self.paths.starts, self.paths.nodes
        if len(nodes) < 2:
            return csr_array((len(network.tails), len(self.pairs)))
        path_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        inner = path_of[:-1] == path_of[1:]
        arcs = network.arc[nodes[:-1], nodes[1:]][inner]
        path_of = path_of[:-1][inner]
        pair_of = np.repeat(np.arange(len(self.pairs)), np.diff(self.paths.owned))
        shape = len(network.tails), len(self.pairs)
        return csr_array(coo_array((self.fractions[path_of], (arcs, pair_of[path_of])), shape=shape))

    def routes(self, wanted: npt.NDArray[np.bool_]) -> tuple[Route, ...]:
        """Routes of the pairs that the (n, n) mask wants."""
        owned = self.paths.owned
        return tuple(
            Route(
                source=source,
                target=target,
                paths=tuple(self.paths.of_pair(place)),
                fractions=tuple(self.fractions[owned[place] : owned[place + 1]].tolist()),
            )
            for place, (source, target) in enumerate(self.pairs.tolist())
            if wanted[source, target]
        )


@dataclass(frozen=True, eq=False)
class FixedRoutes:
    r"""Links with rings for every group, and paths for every pair that some strategies reduce in or move between.

    Rings and routes that the design has are kept. A group without rings gets those of the generators whose hops take
    the fewest links in all, at most d of them, with equal shares, as in TopologyFinder (:class:`.HopRouter`); a pair
    without a route gets a random shortest path, or equal parts on several. So the busiest link's load is

    .. math:: z = \max_a \Bigl(\sum_q R_{aq} r_q + \sum_p M_{ap} m_p\Bigr)

    with gradient bytes r and bytes of patterns m of any strategies, and for those that the design was made for it is
    the design's own.

    Parameters
    ----------
    instance : CodesignInstance
    design : TopologyDesign
        Its links and planes are used.
    network : Network
    group_loads : (arcs, groups) sparse array
        Bytes per link for every byte reduced in the group, by :attr:`.Tables.groups`.
    rings : tuple of tuple of RingPaths
        By group; empty where the links offer none.
    ways : PairPaths
        Pairs that no path joins are missing.
    """

    instance: CodesignInstance
    design: TopologyDesign
    network: Network
    group_loads: csr_array
    rings: tuple[tuple[RingPaths, ...], ...]
    ways: PairPaths

    @classmethod
    def of(
        cls,
        instance: CodesignInstance,
        design: TopologyDesign | None,
        choices: Sequence[int] | None = None,
        paths_per_pair: int = 1,
        seed: int = 0,
    ) -> "FixedRoutes":
        """Routes over the links of a design.

        Parameters
        ----------
        instance : CodesignInstance
        design : TopologyDesign or None
            None for no links at all.
        choices : sequence of int, optional
            Strategies that the design was made for; without them only its links are used.
        paths_per_pair : int
            Shortest paths over which a pair without a route is split, at most.
        seed : int
            Of the choice among shortest paths.
        """
        design = design or TopologyDesign(instance=instance.name, links=())
        network = Network.of(instance.servers, design.link_counts(instance))
        known_rings: dict[int, list[RingPaths]] = {}
        routes: Mapping[Pair, Route] = {}
        if choices is not None:
            reduced = tables_of(instance).group_bytes(tables_of(instance).bytes_of(choices)[0])
            active = np.flatnonzero(reduced).tolist()
            for each in design.rings:
                kept = RingPaths(each.members, each.share, each.paths)
                known_rings.setdefault(active[each.group], []).append(kept)
            routes = {(route.source, route.target): route for route in design.routes}
        rings = _rings(instance, network, known_rings, seed)
        ways = _ways(instance, network, routes, paths_per_pair, seed)
        return cls(instance, design, network, _group_loads(network, rings), rings, ways)

    @cached_property
    def without_way(self) -> npt.NDArray[np.bool_]:
        """(sets + patterns,): what the links offer no way for."""
        n, tables = self.instance.servers, tables_of(self.instance)
        joined = np.zeros((n, n), dtype=bool)
        joined[self.ways.pairs[:, 0], self.ways.pairs[:, 1]] = True
        sets = [any(not self.rings[group] for group in groups) for groups in tables.groups_of]
        entries = entries_of(tables)
        patterns = np.zeros(len(tables.patterns), dtype=bool)
        patterns[entries.pattern[~joined[entries.source, entries.target]]] = True
        return np.array([*sets, *patterns], dtype=bool)

    @cached_property
    def loads(self) -> Floats:
        """(sets + patterns, arcs) bytes per link for every byte; 0 where it has no way."""
        tables, n = tables_of(self.instance), self.instance.servers
        rows = list(itertools.chain.from_iterable(tables.groups_of))
        columns = [q for q, groups in enumerate(tables.groups_of) for _ in groups]
        membership = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(tables.groups), len(tables.groups_of)))
        reduced = (self.group_loads @ membership).toarray()
        entries, m = entries_of(tables), len(self.ways.pairs)
        place = np.full((n, n), m, dtype=np.int64)
        place[self.ways.pairs[:, 0], self.ways.pairs[:, 1]] = np.arange(m)
        row = place[entries.source, entries.target]
        joined = row < m
        units = coo_array(
            (entries.part[joined], (row[joined], entries.pattern[joined])), shape=(m, len(tables.patterns))
        )
        moved = (self.ways.unit_loads(self.network) @ csr_array(units)).toarray() / self.network.counts[:, None]
        loads = np.concatenate([reduced.T, moved.T])
        loads[self.without_way] = 0.0
        return loads

    @property
    def arc_loads(self) -> tuple[Floats, Floats]:
        """(arcs, sets) and (arcs, patterns) bytes per link and byte; infinite where it cannot be sent."""
        loads = np.where(self.without_way[:, None], np.inf, self.loads).T
        reduced, moved = np.split(loads, [len(tables_of(self.instance).groups_of)], axis=1)
        return reduced, moved

    def congestion_bytes(self, choices: Sequence[int]) -> float:
        """Load of the busiest link; infinite if something has no way."""
        amounts = np.concatenate(tables_of(self.instance).bytes_of(choices))
        if (amounts[self.without_way] > 0).any():
            return np.inf
        return float((amounts @ self.loads).max(initial=0.0))

    def time_s(self, choices: Sequence[int]) -> float:
        """Iteration time of these strategies; infinite if they do not fit into memory, or something has no way."""
        tables = tables_of(self.instance)
        if not tables.fits(choices):
            return np.inf
        return self.instance.iteration_time_s(tables.compute_of(choices), self.congestion_bytes(choices))

    def design_for(self, choices: Sequence[int]) -> TopologyDesign | None:
        """The same links with the rings and routes that these strategies need; None if they send nothing."""
        tables = tables_of(self.instance)
        reduced, moved = tables.bytes_of(choices)
        active = np.flatnonzero(tables.group_bytes(reduced)).tolist()
        wanted = np.zeros((self.instance.servers, self.instance.servers), dtype=bool)
        for pattern in np.flatnonzero(moved):
            wanted[tables.patterns[pattern].unit.nonzero()] = True
        if not active and not wanted.any():
            return None
        return TopologyDesign(
            instance=self.instance.name,
            links=self.design.links,
            planes=self.design.planes,
            rings=tuple(
                Ring(group=number, members=each.members, share=each.share, paths=each.paths)
                for number, group in enumerate(active)
                for each in self.rings[group]
            ),
            routes=self.ways.routes(wanted),
        )


_ENTRIES: WeakKeyDictionary[Tables, PatternEntries] = WeakKeyDictionary()


def entries_of(tables: Tables) -> PatternEntries:
    """The entries of all patterns, collected once for an instance."""
    if tables not in _ENTRIES:
        units = [pattern.unit.tocoo() for pattern in tables.patterns]
        nothing = np.zeros(0, dtype=np.int64)
        _ENTRIES[tables] = PatternEntries(
            np.concatenate([nothing, *(unit.row for unit in units)]),
            np.concatenate([nothing, *(unit.col for unit in units)]),
            np.concatenate([np.zeros(0), *(unit.data for unit in units)]),
            np.repeat(np.arange(len(units)), [unit.nnz for unit in units]),
        )
    return _ENTRIES[tables]


def _rings(
    instance: CodesignInstance, network: Network, known: Mapping[int, list[RingPaths]], seed: int
) -> tuple[tuple[RingPaths, ...], ...]:
    """Rings of every group: those known, else of the generators with the shortest hops."""
    farthest = UNREACHABLE - 1 if instance.host_forwarding else 1
    router = HopRouter.of(network, seed)
    chosen: list[list[tuple[int, ...]]] = []
    for place, group in enumerate(tables_of(instance).groups):
        orders: list[tuple[int, ...]] = []
        if place not in known:
            for p in router.shortest_generators(group, instance.degree):
                order = ring(group, p)
                if network.distances[order, np.roll(order, -1)].max() <= farthest:
                    orders.append(order)
        chosen.append(orders)
    paths = router.paths([hop for orders in chosen for order in orders for hop in hops_of(order)])
    return tuple(
        tuple(known[place])
        if place in known
        else tuple(RingPaths(order, 1 / len(orders), tuple(paths[hop] for hop in hops_of(order))) for order in orders)
        for place, orders in enumerate(chosen)
    )


def _group_loads(network: Network, rings: Iterable[Sequence[RingPaths]]) -> csr_array:
    """(arcs, groups) bytes per link for every byte that the group reduces."""
    rows: list[int] = []
    columns: list[int] = []
    amounts: list[float] = []
    count = 0
    for count, of_group in enumerate(rings, 1):
        total = sum(each.share for each in of_group)
        for each in of_group:
            k = len(each.members)
            hops = [arc for path in each.paths for arc in itertools.pairwise(path)]
            rows += network.arc[tuple(zip(*hops, strict=True))].tolist()
            columns += [count - 1] * len(hops)
            amounts += [2 * (k - 1) / k * each.share / total] * len(hops)
    loads = coo_array((amounts, (rows, columns)), shape=(len(network.tails), count), dtype=np.float64).tocsr()
    return csr_array(loads.multiply(1 / network.counts[:, None])) if len(network.tails) else csr_array(loads)


def _ways(
    instance: CodesignInstance, network: Network, routes: Mapping[Pair, Route], paths_per_pair: int, seed: int
) -> PairPaths:
    """Paths of all pairs that some pattern joins: those of the routes, else shortest ones."""
    n = instance.servers
    wanted = np.zeros((n, n), dtype=bool)
    entries = entries_of(tables_of(instance))
    wanted[entries.source, entries.target] = True
    farthest = UNREACHABLE - 1 if instance.host_forwarding else 1
    wanted &= network.distances <= farthest
    routed = [pair for pair in routes if wanted[pair]]
    for pair in routed:
        wanted[pair] = False
    others = np.argwhere(wanted).astype(np.int32)
    found = _as_short(k_shortest_paths(network, others, paths_per_pair, seed)) if len(others) else _packed([])
    kept = _packed([routes[pair].paths for pair in routed])
    paths = PathSets(
        np.concatenate([kept.owned, kept.owned[-1] + found.owned[1:]]),
        np.concatenate([kept.starts, kept.starts[-1] + found.starts[1:]]),
        np.concatenate([kept.nodes, found.nodes]),
    )
    given = [np.array(routes[pair].fractions) / sum(routes[pair].fractions) for pair in routed]
    number = np.diff(found.owned)
    pairs = np.concatenate([np.array(routed, dtype=np.int32).reshape(-1, 2), others])
    return PairPaths(pairs, paths, np.concatenate([*given, np.repeat(1 / np.maximum(number, 1), number)]))


def _packed(paths: Sequence[Sequence[Path]]) -> PathSets:
    owned = np.cumsum([0, *(len(each) for each in paths)])
    starts = np.cumsum([0, *(len(path) for each in paths for path in each)])
    nodes = [server for each in paths for path in each for server in path]
    return PathSets(owned.astype(np.int32), starts.astype(np.int64), np.array(nodes, dtype=np.int32))


def _as_short(sets: PathSets) -> PathSets:
    """Only those paths of each pair that are as short as its first."""
    lengths = np.diff(sets.starts)
    pair_of = np.repeat(np.arange(len(sets.owned) - 1), np.diff(sets.owned))
    kept = lengths == lengths[sets.owned[:-1]][pair_of]
    owned = np.concatenate([[0], np.cumsum(np.bincount(pair_of[kept], minlength=len(sets.owned) - 1))])
    starts = np.concatenate([[0], np.cumsum(lengths[kept])])
    return PathSets(owned.astype(np.int32), starts.astype(np.int64), sets.nodes[np.repeat(kept, lengths)])
