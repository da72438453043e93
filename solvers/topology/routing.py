"""Paths on fixed links: distances, shortest and k shortest paths, balanced single-path routing.

Shared by every heuristic that routes pairs over explicit paths. The inner loops are compiled with Numba.
"""

# mypy: disable-error-code="untyped-decorator"

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ddlopt.models.kernels import kernel, leaf
from ddlopt.models.topology.solution import Path

Pair = tuple[int, int]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

UNREACHABLE = np.iinfo(np.int32).max // 2
"""Distance of a server that no path reaches; larger than any number of hops, and two of them still add up."""

SEARCH_STEPS = 20_000
"""Beginnings of paths held for one pair; further ones are forgotten."""


@dataclass(frozen=True, eq=False)
class Network:
    """Directed arcs with the number of parallel links behind each, in compressed rows.

    Parameters
    ----------
    servers : int
    tails, heads : (m,) arrays
        Ends of the arcs, sorted by tail, then head.
    counts : (m,) array
        Links behind each arc, at least 1.
    """

    servers: int
    tails: Integers
    heads: Integers
    counts: Floats

    @classmethod
    def of(cls, servers: int, counts: Mapping[Pair, int]) -> "Network":
        """From the number of links by *ordered* pair, as ``TopologyDesign.link_counts`` gives it."""
        arcs = sorted(arc for arc, count in counts.items() if count > 0)
        ends = np.array(arcs, dtype=np.int32).reshape(-1, 2)
        return cls(servers, ends[:, 0].copy(), ends[:, 1].copy(), np.array([counts[arc] for arc in arcs], dtype=float))

    @cached_property
    def first(self) -> Integers:
        """(n + 1,) array: the arcs of server v are ``first[v] .. first[v + 1] - 1``."""
        return np.searchsorted(self.tails, np.arange(self.servers + 1)).astype(np.int32)

    @cached_property
    def arc(self) -> Integers:
        """(n, n) array: index of the arc of each ordered pair, -1 where there is none."""
        index = np.full((self.servers, self.servers), -1, dtype=np.int32)
        index[self.tails, self.heads] = np.arange(len(self.tails), dtype=np.int32)
        return index

    @cached_property
    def distances(self) -> Integers:
        """(n, n) array: hops from row to column, ``UNREACHABLE`` where no path leads."""
        arcs = csr_array((np.ones(len(self.tails)), (self.tails, self.heads)), shape=(self.servers, self.servers))
        hops = shortest_path(arcs, unweighted=True)
        return np.where(np.isfinite(hops), hops, UNREACHABLE).astype(np.int32)

    def unreachable(self, pairs: Integers) -> Pair | None:
        """The first of the (m, 2) ordered pairs that no path joins; None if all are joined."""
        lost = np.flatnonzero(self.distances[pairs[:, 0], pairs[:, 1]] == UNREACHABLE)
        return (int(pairs[lost[0], 0]), int(pairs[lost[0], 1])) if len(lost) else None

    def carry(self, loads: Floats, path: Sequence[int], amount_bytes: float) -> None:
        """Add bytes to the (m,) ``loads`` of the arcs along ``path``."""
        for i, j in itertools.pairwise(path):
            loads[self.arc[i, j]] += amount_bytes


@dataclass(frozen=True, eq=False)
class PathSets:
    """Several paths for each of m pairs, packed into flat arrays.

    The paths of pair q are ``owned[q] .. owned[q + 1] - 1``, shortest first; path p visits
    ``nodes[starts[p] : starts[p + 1]]``.
    """

    owned: Integers
    starts: npt.NDArray[np.int64]
    nodes: Integers

    def path(self, index: int) -> Path:
        """The servers that a path visits."""
        return tuple(self.nodes[self.starts[index] : self.starts[index + 1]].tolist())

    def of_pair(self, pair: int) -> list[Path]:
        """All paths of a pair, shortest first."""
        return [self.path(index) for index in range(self.owned[pair], self.owned[pair + 1])]


def k_shortest_paths(network: Network, pairs: Integers, k: int, seed: int = 0) -> PathSets:
    """The k loopless paths with fewest hops of each pair; all of them where there are fewer.

    Among equally short paths the k are drawn uniformly at their shortest length, and in a random order of the search
    beyond it. The search goes from beginnings of paths to longer ones in order of the fewest hops that they can take
    to the target. Where a pair has very many beginnings that lead nowhere, more than ``SEARCH_STEPS``, it may get fewer
    than k paths, but never none.

    Parameters
    ----------
    pairs : (m, 2) array
        Source and target, different and joined by some path.
    seed : int
        Of the choice among equally short paths.
    """
    if network.unreachable(pairs) is not None:
        raise ValueError(f"no path joins the pair {network.unreachable(pairs)}; route only pairs that are joined")
    # Path counts are found once a target, so pairs are visited target by target.
    order = np.argsort(pairs[:, 1], kind="stable")
    sorted_pairs = np.ascontiguousarray(pairs[order], dtype=np.int32)
    n, m = network.servers, len(pairs)
    owned, starts = np.empty(m + 1, dtype=np.int32), np.empty(m * k + 1, dtype=np.int64)
    found, lengths = np.empty((k, n + 1), dtype=np.int32), np.empty(k, dtype=np.int32)
    path, scratch, ways = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32), np.empty(n)
    tree, links = np.empty((SEARCH_STEPS, 4), dtype=np.int32), (network.first, network.heads, network.distances)
    nodes = _k_shortest(*links, sorted_pairs, tree, seed % 2**32, found, lengths, path, scratch, ways, owned, starts)
    starts = starts[: owned[m] + 1]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _reordered(owned, starts, nodes[: starts[-1]], rank)


def shortest_paths(network: Network, pairs: Integers, seed: int = 0) -> list[Path]:
    """One shortest path of each (m, 2) pair, drawn uniformly among all of its shortest paths."""
    sets = k_shortest_paths(network, pairs, 1, seed)
    return [sets.path(index) for index in range(len(pairs))]


def balanced_paths(network: Network, sets: PathSets, amounts_bytes: Floats, loads: Floats) -> list[Path]:
    """One path for each pair: pairs by descending bytes, each to the path whose busiest link ends up least busy.

    "Busy" is bytes per link, the pair's own included; ties go to the shorter path. The (arcs,) ``loads`` are increased.
    """
    order = np.argsort(-amounts_bytes, kind="stable")
    chosen = np.empty(len(order), dtype=np.int64)
    packed = sets.owned, sets.starts, sets.nodes
    _balance(*packed, order, amounts_bytes, network.arc, network.counts, loads, chosen)
    return [sets.path(int(index)) for index in chosen]


def _reordered(owned: Any, starts: Any, nodes: Any, rank: Any) -> PathSets:
    """Pack the paths anew so that pair q is the one that was found as number ``rank[q]``."""
    numbers = np.diff(owned)[rank]
    new_owned = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int32)
    paths = np.repeat(owned[rank] - new_owned[:-1], numbers) + np.arange(new_owned[-1])
    lengths = np.diff(starts)[paths]
    new_starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    taken = np.repeat(starts[paths] - new_starts[:-1], lengths) + np.arange(new_starts[-1])
    return PathSets(new_owned, new_starts, nodes[taken])


@leaf
def _count_shortest(
    first: Any, heads: Any, distances: Any, target: int, ways: Any, at_distance: Any, following: Any
) -> None:
    """ways[v] = number of shortest paths from v to ``target`` (as floats: there may be very many).

    ``at_distance`` and ``following`` (n + 1,) are scratch: a list of servers for each distance.
    """
    n = len(first) - 1
    for v in range(n):
        ways[v] = 0.0
        at_distance[v] = -1
    for v in range(n):
        hops = distances[v, target]
        if hops != UNREACHABLE:
            following[v] = at_distance[hops]
            at_distance[hops] = v
    ways[target] = 1.0
    for hops in range(1, n):
        v = at_distance[hops]
        while v >= 0:
            for a in range(first[v], first[v + 1]):
                if distances[heads[a], target] == hops - 1:
                    ways[v] += ways[heads[a]]
            v = following[v]


@leaf
def _draw_shortest(first: Any, heads: Any, distances: Any, source: int, target: int, ways: Any, path: Any) -> None:
    """Write a uniformly random shortest path into ``path``."""
    v = source
    path[0] = v
    for hop in range(distances[source, target]):
        left = np.random.random() * ways[v]  # noqa: NPY002 (Numba compiles the legacy generator)
        following = -1
        for a in range(first[v], first[v + 1]):
            w = heads[a]
            if distances[w, target] == distances[v, target] - 1:
                following = w
                left -= ways[w]
                if left < 0:
                    break
        v = following
        path[hop + 1] = v


@leaf
def _is_new(path: Any, found: Any, number: int, hops: int) -> bool:
    for other in range(number):
        same = True
        for position in range(hops + 1):
            if found[other, position] != path[position]:
                same = False
                break
        if same:
            return False
    return True


@leaf
def _search(
    first: Any, heads: Any, distances: Any, source: int, target: int, tree: Any, found: Any, lengths: Any, buckets: Any
) -> int:
    """Find loopless paths in order of length; gives their number, at most len(found).

    Best-first search over beginnings of paths: ``tree`` holds for each its last server, its parent, its hops and the
    next beginning of the same bucket. A bucket is the fewest hops of a path so begun, if loops were allowed; the first
    of each is kept in ``buckets`` (n + 1,).
    """
    n = len(first) - 1
    for hops in range(n):
        buckets[hops] = -1
    tree[0, 0], tree[0, 1], tree[0, 2], tree[0, 3] = source, -1, 0, -1
    buckets[distances[source, target]] = 0
    grown, number = 1, 0
    for hops in range(n):
        while buckets[hops] >= 0 and number < len(found):
            here = buckets[hops]
            buckets[hops] = tree[here, 3]
            v, depth = tree[here, 0], tree[here, 2]
            if v == target:
                lengths[number] = depth
                for position in range(depth, -1, -1):
                    found[number, position] = tree[here, 0]
                    here = tree[here, 1]
                number += 1
                continue
            degree = first[v + 1] - first[v]
            turn = np.random.randint(0, 1 << 30)  # noqa: NPY002
            for step in range(degree):
                w = heads[first[v] + (turn + step) % degree]
                least = depth + 1 + distances[w, target]
                ancestor = here
                while ancestor >= 0 and tree[ancestor, 0] != w:
                    ancestor = tree[ancestor, 1]
                if least >= n or ancestor >= 0 or grown == len(tree):
                    continue
                tree[grown, 0], tree[grown, 1], tree[grown, 2], tree[grown, 3] = w, here, depth + 1, buckets[least]
                buckets[least] = grown
                grown += 1
    return number


@kernel(
    "(i4[::1], i4[::1], i4[:, ::1], i4[:, ::1], i4[:, ::1], i8, i4[:, ::1], i4[::1], i4[::1], i4[::1], f8[::1],"
    " i4[::1], i8[::1])"
)
def _k_shortest(
    first: Any,
    heads: Any,
    distances: Any,
    pairs: Any,
    tree: Any,
    seed: int,
    found: Any,
    lengths: Any,
    path: Any,
    scratch: Any,
    ways: Any,
    owned: Any,
    starts: Any,
) -> Any:
    """Fill ``owned`` (pairs + 1,) and ``starts`` (pairs * k + 1,) of :class:`PathSets`; returns its ``nodes``.

    ``found`` (k, n + 1), ``lengths`` (k,), ``path`` and ``scratch`` (n + 1,), ``ways`` (n,) and ``tree`` (steps, 4) are
    scratch.
    """
    n, k = len(first) - 1, len(found)
    np.random.seed(seed)  # noqa: NPY002
    nodes = np.empty(1024 if len(pairs) < 256 else len(pairs) * 4, np.int32)
    paths, counted = 0, -1
    owned[0] = 0
    starts[0] = 0
    for q in range(len(pairs)):
        source, target = pairs[q, 0], pairs[q, 1]
        if target != counted:
            _count_shortest(first, heads, distances, target, ways, scratch, path)
            counted = target
        hops = distances[source, target]
        number = 0
        if ways[source] <= k:
            number = _search(first, heads, distances, source, target, tree, found, lengths, scratch)
        # More shortest paths than wanted, or a search that ended before the first: draw.
        while number < k and (ways[source] > k or number == 0):
            _draw_shortest(first, heads, distances, source, target, ways, path)
            if _is_new(path, found, number, hops):
                for position in range(hops + 1):
                    found[number, position] = path[position]
                lengths[number] = hops
                number += 1
        for index in range(number):
            begin, end = starts[paths], starts[paths] + lengths[index] + 1
            if end > len(nodes):
                larger = np.empty(2 * len(nodes) + n, np.int32)
                for position in range(begin):
                    larger[position] = nodes[position]
                nodes = larger
            for position in range(begin, end):
                nodes[position] = found[index, position - begin]
            paths += 1
            starts[paths] = end
        owned[q + 1] = paths
    return nodes


@kernel("(i4[::1], i8[::1], i4[::1], i8[::1], f8[::1], i4[:, ::1], f8[::1], f8[::1], i8[::1])")
def _balance(
    owned: Any, starts: Any, nodes: Any, order: Any, amounts: Any, arc: Any, counts: Any, loads: Any, chosen: Any
) -> None:
    """Fill ``chosen`` (pairs,) with the path of each pair; adds to ``loads``."""
    for turn in range(len(order)):
        q = order[turn]
        best, best_worst, best_hops = -1, np.inf, 0
        for p in range(owned[q], owned[q + 1]):
            worst, hops = 0.0, starts[p + 1] - starts[p] - 1
            for position in range(starts[p], starts[p + 1] - 1):
                a = arc[nodes[position], nodes[position + 1]]
                busy = (loads[a] + amounts[q]) / counts[a]
                if busy > worst:
                    worst = busy
            if worst < best_worst or (worst == best_worst and hops < best_hops):
                best, best_worst, best_hops = p, worst, hops
        for position in range(starts[best], starts[best + 1] - 1):
            loads[arc[nodes[position], nodes[position + 1]]] += amounts[q]
        chosen[q] = best
