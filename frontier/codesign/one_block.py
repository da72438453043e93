"""Servers in blocks that look alike: what one block has among itself and with the rest, whatever the strategies are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from ddlopt.models.codesign.demand import demand_of, ring_factor
from ddlopt.models.codesign.tables import Floats, Tables
from ddlopt.models.topology.bounds import hop_bytes_out

_DIGITS = 12
"""Parts of a pattern are one if they agree in so many, as in sums in another order."""


@dataclass(frozen=True, eq=False)
class OneBlock:
    """One block of servers, its servers numbered from 0, and all others as one server k.

    Parameters
    ----------
    servers : tuple of int
        Of the block.
    rings : dict of (tuple of int, int) to dict of int to float
        Members inside, and the number of those outside: hop bytes of such a group for each byte reduced, by set.
    traffic : dict of int to (k + 1, k + 1) array
        Bytes for each byte of a pattern, between servers of the block and others.
    hop_bytes : dict of int to float
        What servers of the block send of a byte of these patterns, times the hops that it needs at least.
    beside : (sets + patterns,) array
        Hop bytes for each byte of all others, that blocks do not see alike; per block.
    """

    servers: tuple[int, ...]
    rings: dict[tuple[tuple[int, ...], int], dict[int, float]]
    traffic: dict[int, Floats]
    hop_bytes: dict[int, float]
    beside: Floats

    def cuts(self, members: tuple[int, ...], outside: int) -> Iterator[tuple[int, ...]]:
        """Sets of servers that a ring of these members must leave, each server alone aside."""
        most = len(members) + (outside > 0)
        for size in range(2, most):
            yield from combinations(members, size)


def one_block(tables: Tables, servers: tuple[int, ...], image: tuple[int, ...]) -> OneBlock:
    """What the block of these servers has.

    Parameters
    ----------
    tables : Tables
    servers : tuple of int
        The block; its images under the permutation and its powers are all blocks.
    image : tuple of int
        Where the permutation takes each server. Sets and patterns that it leaves as they are count in detail.
    """
    instance, demand = tables.instance, demand_of(tables)
    n, k, sets = instance.servers, len(servers), len(tables.groups_of)
    place = {server: i for i, server in enumerate(servers)}
    beside = demand.hop_bytes.copy()
    rings: dict[tuple[tuple[int, ...], int], dict[int, float]] = {}
    for q, groups in enumerate(tables.groups_of):
        named = {frozenset(tables.groups[group]) for group in groups}
        if named != {frozenset(image[s] for s in members) for members in named}:
            continue
        beside[q] = 0.0
        for members in named:
            inside = tuple(sorted(place[s] for s in members if s in place))
            if inside:
                of_kind = rings.setdefault((inside, len(members) - len(inside)), {})
                of_kind[q] = of_kind.get(q, 0.0) + ring_factor(len(members))
    traffic, hops = {}, {}
    away = np.setdiff1d(np.arange(n), servers)
    for p, pattern in enumerate(tables.patterns):
        unit = pattern.unit
        if not _same(unit, image):
            continue
        beside[sets + p] = 0.0
        rows, columns = unit[list(servers)].toarray(), unit[:, list(servers)].toarray()
        seen = np.zeros((k + 1, k + 1))
        seen[:k, :k] = rows[:, list(servers)]
        seen[:k, k], seen[k, :k] = rows[:, away].sum(axis=1), columns[away].sum(axis=0)
        traffic[p], hops[p] = seen, hop_bytes_out(rows, instance.degree, instance.optics == "duplex")
    return OneBlock(servers, rings, traffic, hops, beside * k / n)


def blocks_of(tables: Tables, most_servers: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Groups of consecutive servers or of every g-th one, with a permutation that goes round all such blocks.

    They have 2 to ``most_servers`` servers; large ones first.
    """
    n, groups = tables.instance.servers, set(tables.groups)
    for size in range(min(most_servers, n // 2), 1, -1):
        stride = n // size
        if n % size == 0 and tuple(range(size)) in groups:
            yield tuple(range(size)), tuple((s + size) % n for s in range(n))
        if n % size == 0 and tuple(range(0, n, stride)) in groups:
            yield tuple(range(0, n, stride)), tuple(s - s % stride + (s + 1) % stride for s in range(n))


def _same(unit: csr_array, image: tuple[int, ...]) -> bool:
    """Whether a permutation of the servers leaves a pattern as it is."""
    entries = unit.tocoo()
    to = np.asarray(image)
    rows, columns = to[entries.row], to[entries.col]
    n = len(image)
    before, after = entries.row * n + entries.col, rows * n + columns
    here, there = np.argsort(before), np.argsort(after)
    parts = np.round(entries.data, _DIGITS)
    return bool(np.array_equal(before[here], after[there]) and np.array_equal(parts[here], parts[there]))
