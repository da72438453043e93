"""Links that a group of symmetries leaves as they are: few choices, and often fewer hops than any others found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from ddlopt.frontier.topology.lifts.lift_kernels import anneal_lift, close_columns
from ddlopt.frontier.topology.lifts.placing import line_heads, placed
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.solvers.topology.balance.path_kernels import Ints
from ddlopt.solvers.topology.link_exchange.link_exchange import is_dense
from ddlopt.solvers.topology.link_exchange.moves import follow
from ddlopt.solvers.topology.link_exchange.starts import COOL, LinkStart, cycles_of, spanning_groups


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    orbits: int = 8
    """Copies of a group at most: with more there are too many choices to be better than annealing all links."""
    servers: int = 512
    """A table of products of larger groups takes megabytes, and there is no time to anneal."""
    matrices: int = 64
    """Companion matrices that are tried for the automorphism of a module."""
    moves: int = 10_000
    """Of each lift: many tries find more than long ones."""
    tries: int = 160
    """Lifts of few servers that are annealed: 0.6 s at 16 servers with four ports."""
    large_tries: int = 64
    """The same of more servers: 4 s at 128."""
    again: float = 0.5
    """Part of the tries with the group of the best lift so far."""
    kept: int = 16
    """Lifts of few servers handed on: those with the fewest hops differ in how evenly these can be spread."""
    large_kept: int = 2
    """The same of more servers, whose balance takes long."""
    small: int = 64
    """Servers that are few: their lifts are balanced in milliseconds."""
    closing_moves: int = 20_000
    """Some hundred suffice for rings of 16 or of 128 servers."""


_EFFORT = Effort()


def are_worth_it(instance: TopologyInstance) -> bool:
    """Lifts are for dense traffic over one-way links."""
    return instance.optics != "duplex" and is_dense(instance)


@dataclass(frozen=True)
class Group:
    """A finite group: elements 0..m-1, the identity 0, and the (m, m) table of products."""

    name: str
    product: Ints


def groups(order: int) -> Iterator[Group]:
    r"""Semidirect products :math:`\mathbb{Z}_h^r \rtimes \mathbb{Z}_k` of a given order.

    (x, i)(y, j) = (x + A^i y, i + j), with A an invertible number modulo h, or for prime h the companion matrix of a
    polynomial of degree r, of which the k-th power is one. Cyclic groups, dihedral ones, the alternating one of degree
    four and wreath products of :math:`\mathbb{Z}_2` are among them.
    """
    for rank in range(1, order.bit_length()):
        for h in range(2, order + 1):
            if order % h**rank or (rank > 1 and any(h % factor == 0 for factor in range(2, h))):
                continue
            k = order // h**rank
            for matrix in _automorphisms(h, rank):
                if np.array_equal(_power(matrix, k, h), np.eye(rank, dtype=np.int64)):
                    yield Group(f"Z{h}^{rank}:{k} by {matrix[:, -1].tolist()}", _products(h, matrix, k))


def _automorphisms(h: int, rank: int) -> Iterator[Ints]:
    """Companion matrices modulo h that have an inverse; only the identity of two elements."""
    for number, last in enumerate(product(range(h), repeat=rank)):
        if number >= _EFFORT.matrices * (rank > 1) + h * (rank == 1):
            return
        if np.gcd(last[0], h) == 1:
            matrix = np.eye(rank, k=-1, dtype=np.int64)
            matrix[:, -1] = last
            yield matrix


def _power(matrix: Ints, exponent: int, h: int) -> Ints:
    result = np.eye(len(matrix), dtype=np.int64)
    for _ in range(exponent):
        result = result @ matrix % h
    return result


def _products(h: int, matrix: Ints, k: int) -> Ints:
    """(m, m) table of the products of (x, i) and (y, j), numbered with i fastest."""
    rank, size = len(matrix), h ** len(matrix)
    vectors = np.stack(np.unravel_index(np.arange(size), (h,) * rank), axis=1)
    weights = h ** np.arange(rank - 1, -1, -1)
    table = np.empty((size, k, size, k), dtype=np.int64)
    for i in range(k):
        moved = vectors @ _power(matrix, i, h).T
        sums = (vectors[:, None, :] + moved[None, :, :]) % h @ weights
        table[:, i] = sums[:, :, None] * k + (i + np.arange(k)) % k
    return table.reshape(size * k, size * k)


def lift_heads(target: Ints, shift: Ints, table: Ints) -> Ints:
    """(n, d) far ends of the links of a lift, see :mod:`~.lift_kernels`."""
    far = target[:, None, :] * len(table) + table[np.arange(len(table))[None, :, None], shift[:, None, :]]
    return np.ascontiguousarray(far.reshape(-1, target.shape[1]))


def lift_starts(
    instance: TopologyInstance, rng: np.random.Generator, effort: float, expired: Callable[[], bool]
) -> Iterator[LinkStart]:
    r"""One-way links with few hops of all pairs together, among those that a group of symmetries leaves as they are.

    *Voltage lifts*: the servers are k copies (orbits) of a group of order n / k, and a slot of an orbit leads from each
    element x to x g of another orbit. Hops need counting from k servers only, and there are so few choices that
    annealing finds links whose hops are near the Moore bound, or at it. *Line digraphs* of lifts with n / d servers
    have still fewer choices, and mostly fewer hops (:func:`~.placing.line_heads`): at 128 servers with four ports 400.4
    a server, of which 400 are unavoidable, where lifts have 404.5.

    Servers with different traffic are :func:`~.placing.placed` so that all forward equally. Links are put into columns
    of one cycle each where there is an all-reduce over all servers: rings that use each link once are as good as any.
    No more lifts are tried once ``expired`` says so.

    References
    ----------
    J. L. Gross, T. W. Tucker, "Generating all graph coverings by permutation voltage assignments", Discrete
    Mathematics 18(3), 1977. The search over groups and orbits is ours.
    """
    n, d = instance.servers, instance.degree
    if instance.optics == "duplex" or not instance.host_forwarding or n > _EFFORT.servers or d > n - 1:
        return
    least = sum(h * size for h, size in enumerate(level_sizes(n - 1, d, False), 1))
    kept, tries = (_EFFORT.kept, _EFFORT.tries) if n <= _EFFORT.small else (_EFFORT.large_kept, _EFFORT.large_tries)
    found: list[tuple[float, int, str, Ints]] = []
    for line in (True, False):
        base = n // d if line else n
        known = {m: list(groups(m)) for m in range(2, base + 1) if base % m == 0 and base // m <= _EFFORT.orbits}
        choices = [(group, base // m) for m, of_order in known.items() for group in of_order]
        if not choices or (line and (n % d or d > base - 1)):
            continue
        best, again = inf, choices[0]
        for _ in range(max(1, int(tries * effort))):
            if expired() or sum(hops <= least for hops, *_ in found) == kept:
                break
            drawn = choices[int(rng.integers(len(choices)))]
            group, orbits = again if best < inf and rng.random() < _EFFORT.again else drawn
            hops, heads = _annealed(group, orbits, d, least, line, rng)
            if instance.parallel_links or all(len(set(row)) == d for row in heads.tolist()):
                kind = "line digraph of a lift" if line else "lift"
                found.append((hops, len(found), f"{kind} of {orbits} by {group.name}", heads))
                best, again = (hops, (group, orbits)) if hops < best else (best, again)
    found.sort(key=lambda lift: lift[:2])
    for _, _, name, heads in found[:kept]:
        yield _with_rings(instance, name, placed(heads, instance.traffic_bytes, rng))


def _annealed(
    group: Group, orbits: int, d: int, least: int, line: bool, rng: np.random.Generator
) -> tuple[float, Ints]:
    """A lift with few hops, or one with few hops of its line digraph: mean hops from a server, and far ends."""
    target = rng.permutation(np.repeat(np.arange(orbits), d)).reshape(orbits, d)
    shift = rng.integers(1, len(group.product), size=(orbits, d))
    # In the line digraph a server of the lift counts d times, and so does its way to another.
    sources, hot, cold = (orbits * d, 2.0 * d, 0.125 * d) if line else (orbits, 3.0, 0.2)
    hops = anneal_lift(target, shift, group.product, line, _EFFORT.moves, least * sources, hot * orbits**0.5, cold)
    heads = lift_heads(target, shift, group.product)
    return hops / sources, line_heads(heads) if line else heads


def _with_rings(instance: TopologyInstance, name: str, heads: Ints) -> LinkStart:
    """Links in columns that are rings of all servers, where those are asked for and found."""
    if not spanning_groups(instance):
        return LinkStart(name, heads, hot=COOL)
    columns = permutations_of(heads)
    close_columns(columns, _EFFORT.closing_moves)
    # All of them cannot be closed where the parity of their cycles forbids it.
    ring = np.empty(len(columns), np.int64)
    is_ring = np.array([follow(columns, k, k, ring) for k in range(columns.shape[1])])
    columns = np.ascontiguousarray(columns[:, np.argsort(~is_ring, kind="stable")])
    return LinkStart(name, columns, cycles_of(instance, int(is_ring.sum())), hot=COOL)


def permutations_of(heads: Ints) -> Ints:
    """The same links with columns that are permutations, by one perfect matching after the other (König)."""
    n, d = heads.shape
    left = np.zeros((n, n), dtype=np.int64)
    np.add.at(left, (np.repeat(np.arange(n), d), heads.ravel()), 1)
    columns = np.empty_like(heads)
    for k in range(d):
        columns[:, k] = maximum_bipartite_matching(csr_array(left), perm_type="column")
        left[np.arange(n), columns[:, k]] -= 1
    return columns
