"""Servers that a co-design instance does not tell apart: its automorphisms, found from candidates and verified."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from sympy import divisors
from sympy.combinatorics import Permutation, PermutationGroup

from ddlopt.models.codesign.tables import Floats, Ints, Tables
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.symmetry.cayley import AbelianGroup, abelian_groups
from ddlopt.models.topology.symmetry.collapse import Collapse, collapse

# The search is exponential in the worst case; larger instances have the symmetry of their groups alone.
SEARCHED_SERVERS = 32
# A symmetry that is not found makes a model larger, never wrong.
_MOST_STEPS = 20_000
# Figures that differ in less came from sums in another order (``ROUNDING``).
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class ServerSymmetry:
    """Automorphisms of an instance, as a group that acts on its servers.

    Parameters
    ----------
    servers : int
    generators : tuple of tuple of int
        Each server's image; all of them verified. The group that they generate need not have all automorphisms.
    """

    servers: int
    generators: tuple[tuple[int, ...], ...]

    @cached_property
    def group(self) -> PermutationGroup:
        """The group in SymPy."""
        listed = [Permutation(list(each)) for each in self.generators]
        return PermutationGroup(listed or [Permutation(list(range(self.servers)))])

    @cached_property
    def orbits(self) -> tuple[tuple[int, ...], ...]:
        """Servers by what they can be exchanged with, each increasing, by their first servers."""
        moved = [sorted(orbit) for orbit in self.group.orbits()]
        alone = set(range(self.servers)).difference(*moved)
        return tuple(sorted([*map(tuple, moved), *((server,) for server in alone)]))

    @property
    def representatives(self) -> tuple[int, ...]:
        """The first server of each orbit: a bound on what one server sends needs to be stated for these only."""
        return tuple(orbit[0] for orbit in self.orbits)


def server_symmetry(tables: Tables) -> ServerSymmetry:
    r"""The automorphisms that the usual candidates generate.

    A permutation π of the servers is an *automorphism* if layers and their strategies can be renamed such that

    * every group set becomes a group set, every pattern a pattern: :math:`U_{p'} = P U_p P^\top`;
    * the strategy that a strategy becomes has the same times and memory on the images of its servers, and the same
      bytes of the sets and patterns that its own become; and so have the pairs along the edges.

    Which sample a server holds does not matter; samples are renamed along with servers. Every plan then has an image
    that takes the same time, so that bounds, congestion and compute time are functions on orbits. A layer may become
    another one: if the tables of a recommendation model are dealt to the servers in turn, a shift of the servers is an
    automorphism together with a shift of the tables.

    Candidates are the reversal x -> n - 1 - x; shifts x -> x + m for divisors m of n; and, with x = (i, j) the place j
    in block i of g servers, for divisors g of n, shifts, reversals and exchanges of i for all j or of j for all i.
    Layouts and groups of parallel training are made of blocks and cosets, whose symmetries these are. Beside them, up
    to :data:`SEARCHED_SERVERS`, a search assigns images server by server and finds whether one server can become
    another with all strategies as they are. Only what joins orbits is tried.

    An instance often has little symmetry though each of its jobs has much: consecutive parts of the channels in blocks
    of several sizes leave the reversal alone, and layouts on a part of the servers break even that.
    """
    n, checker = tables.instance.servers, _Checker(tables)
    found: list[Ints] = []
    joined = _Partition(n)
    for candidate in _candidates(n):
        if joined.would_join(candidate) and checker.is_automorphism(candidate):
            found.append(candidate)
            joined.join(candidate)
    if n <= SEARCHED_SERVERS:
        kinds = _kinds_of_pairs(tables)
        for x, y in combinations(range(n), 2):
            images = None if joined.label[x] == joined.label[y] else _search(kinds, x, y)
            if images is not None and checker.is_automorphism(images):
                found.append(images)
                joined.join(images)
    return ServerSymmetry(n, tuple(tuple(images.tolist()) for images in found))


def is_automorphism(tables: Tables, images: Sequence[int]) -> bool:
    """Whether a permutation of the servers, with layers and strategies renamed to match, changes nothing.

    Renamings are looked for one strategy at a time, in order, so that an automorphism may go unnoticed where several
    strategies are the same but for their neighbours; what is accepted is one.
    """
    return _Checker(tables).is_automorphism(np.asarray(images))


def translation_groups(job: TopologyInstance) -> tuple[Collapse, ...]:
    """Every abelian group whose translations leave the job as it is, with what one server sees of the job.

    Server x is the element x of the group; products of cyclic groups in any order of their factors count, as that is
    another numbering. Cayley graphs of these groups are the designs that look the same from every server: circulants,
    tori, hypercubes (:class:`~ddlopt.frontier.topology.formulations.circulant.CirculantDesign`).
    """
    orders = dict.fromkeys(
        factors
        for group in abelian_groups(job.servers)
        for split in (group.invariants, *_splits(group.invariants))
        for factors in (split, split[::-1])
    )
    seen = (collapse(job, AbelianGroup(factors)) for factors in orders)
    return tuple(each for each in seen if isinstance(each, Collapse))


def _splits(factors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Two factors in place of one, where that is the same group or another with the same order of elements."""
    for place, order in enumerate(factors):
        for part in divisors(order)[1:-1]:
            yield (*factors[:place], part, order // part, *factors[place + 1 :])


def _candidates(n: int) -> Iterator[Ints]:
    servers = np.arange(n)
    yield servers[::-1].copy()
    for step in divisors(n)[:-1]:
        yield (servers + step) % n
    for g in divisors(n)[1:-1]:
        block, place = servers // g, servers % g
        for inner in (np.roll(np.arange(g), 1), np.arange(g)[::-1], _exchange(g)):
            yield block * g + inner[place]
        for outer in (np.arange(n // g)[::-1], _exchange(n // g)):
            yield outer[block] * g + place


def _exchange(size: int) -> Ints:
    """The exchange of the first two."""
    return np.array([1, 0, *range(2, size)])


def _kinds_of_pairs(tables: Tables) -> Ints:
    """(n, n) numbers, equal for pairs that have the same part of all patterns, sets and strategies."""
    n = tables.instance.servers
    looks: list[Floats] = [pattern.unit.toarray() for pattern in tables.patterns]
    for groups in tables.groups_of:
        together = np.zeros((n, n))
        for members in (tables.groups[group] for group in groups):
            together[np.ix_(members, members)] = len(members)
        looks.append(together)
    looks += [np.diag(np.isin(np.arange(n), servers).astype(float)) for each in tables.runs_on for servers in each]
    kinds = np.eye(n, dtype=np.int64)
    for look in looks:
        _, number = np.unique(np.round(look, _DIGITS), return_inverse=True)
        _, kinds = np.unique(kinds * n * n + number.reshape(n, n), return_inverse=True)
        kinds = kinds.reshape(n, n)
    return kinds


def _search(kinds: Ints, x: int, y: int) -> Ints | None:
    """A permutation that maps x to y and every pair to one of its kind; None if there is none, or it takes too long."""
    n = len(kinds)
    order = [x, *(server for server in range(n) if server != x)]
    images = np.full(n, -1)
    steps = 0

    def fits(server: int, image: int, depth: int) -> bool:
        before = order[:depth]
        return bool(
            kinds[server, server] == kinds[image, image]
            and (kinds[server, before] == kinds[image, images[before]]).all()
            and (kinds[before, server] == kinds[images[before], image]).all()
        )

    stack = [iter((y,))]
    used: set[int] = set()
    while stack:
        depth = len(stack) - 1
        server = order[depth]
        if images[server] >= 0:
            used.discard(int(images[server]))
            images[server] = -1
        image = next((each for each in stack[-1] if each not in used and fits(server, each, depth)), None)
        steps += 1
        if steps > _MOST_STEPS:
            return None
        if image is None:
            stack.pop()
            continue
        images[server] = image
        used.add(image)
        if len(stack) == n:
            return images
        stack.append(iter(range(n)))
    return None


class _Partition:
    """Servers known to be in one orbit."""

    def __init__(self, n: int) -> None:
        self.label = np.arange(n)

    def would_join(self, images: Ints) -> bool:
        return bool((self.label[images] != self.label).any())

    def join(self, images: Ints) -> None:
        for x, y in enumerate(images.tolist()):
            self.label[self.label == self.label[y]] = self.label[x]


class _Checker:
    """What an instance looks like before and after a permutation of its servers."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.identity = np.arange(tables.instance.servers)
        self.patterns: dict[Hashable, int] = {}
        self.sets: dict[Hashable, int] = {}
        # Patterns and sets that are the same count as the first of them.
        self.same_patterns = [
            self.patterns.setdefault(_entries(pattern.unit, self.identity), p)
            for p, pattern in enumerate(tables.patterns)
        ]
        self.same_sets = [self.sets.setdefault(self._groups(q, self.identity), q) for q in range(len(tables.groups_of))]

    def is_automorphism(self, images: Ints) -> bool:
        sets = [self.sets.get(self._groups(q, images), -1) for q in range(len(self.same_sets))]
        if -1 in sets:
            return False
        patterns = []
        for pattern in self.tables.patterns:
            patterns.append(self.patterns.get(_entries(pattern.unit, images), -1))
            if patterns[-1] < 0:
                return False
        renamed = self._renamed(images, sets, patterns)
        return renamed is not None and self._edges_agree(*renamed, patterns)

    def _groups(self, q: int, images: Ints) -> Hashable:
        groups = (self.tables.groups[group] for group in self.tables.groups_of[q])
        return frozenset(tuple(sorted(images[list(members)].tolist())) for members in groups)

    def _renamed(self, images: Ints, sets: list[int], patterns: list[int]) -> tuple[list[int], list[Ints]] | None:
        """The layer that each layer becomes, itself if it can be, and the strategy that each of its becomes."""
        tables = self.tables
        layers = range(len(tables.sizes))
        own = [self._strategies(layer, self.identity, self.same_sets, self.same_patterns) for layer in layers]
        after = [self._strategies(layer, images, sets, patterns) for layer in layers]
        free: dict[Hashable, list[int]] = {}
        for layer in layers:
            free.setdefault(tuple(sorted(own[layer])), []).append(layer)
        became: list[int] = []
        strategies: list[Ints] = []
        for layer in layers:
            candidates = free.get(tuple(sorted(after[layer])))
            if not candidates:
                return None
            became.append(layer if layer in candidates else candidates[0])
            candidates.remove(became[-1])
            places: dict[Hashable, list[int]] = {}
            for a, looks in enumerate(own[became[-1]]):
                places.setdefault(looks, []).append(a)
            strategies.append(np.array([places[looks].pop(0) for looks in after[layer]]))
        return became, strategies

    def _strategies(self, layer: int, images: Ints, sets: list[int], patterns: list[int]) -> list[tuple[object, ...]]:
        """What each strategy of a layer looks like after servers, sets and patterns have been renamed."""
        tables = self.tables
        joined = [
            (edge, end, moves if end == 0 else moves.T)
            for edge, moves in enumerate(tables.moves)
            for end in (0, 1)
            if tables.instance.edges[edge][end] == layer
        ]
        name = np.array([*patterns, -1])
        return [
            (
                float(tables.compute_s[layer][a]),
                float(tables.memory_bytes[layer][a]),
                tuple(sorted(images[tables.runs_on[layer][a]].tolist())),
                tuple(sorted((sets[q], amount) for q, amount in tables.reductions[layer][a].items())),
                tuple(sorted((patterns[p], amount) for p, amount in tables.sent[layer][a].items())),
                tuple(
                    sorted(
                        (end, float(tables.edge_bytes[e]), *np.sort(name[rows[a]]).tolist()) for e, end, rows in joined
                    )
                ),
            )
            for a in range(tables.sizes[layer])
        ]

    def _edges_agree(self, became: list[int], strategies: list[Ints], patterns: list[int]) -> bool:
        tables = self.tables
        place = {ends: edge for edge, ends in enumerate(tables.instance.edges)}
        before, name = np.array([*self.same_patterns, -1]), np.array([*patterns, -1])
        for edge, (source, target) in enumerate(tables.instance.edges):
            image = place.get((became[source], became[target]))
            if image is None or tables.edge_bytes[image] != tables.edge_bytes[edge]:
                return False
            after = before[tables.moves[image][np.ix_(strategies[source], strategies[target])]]
            if not np.array_equal(after, name[tables.moves[edge]]):
                return False
        return True


def _entries(unit: csr_array, images: Ints) -> tuple[bytes, bytes]:
    """A pattern with its servers renamed, as something to compare."""
    entries = unit.tocoo()
    place = images[entries.row] * len(images) + images[entries.col]
    order = np.argsort(place)
    return place[order].astype(np.int64).tobytes(), np.round(entries.data[order], _DIGITS).tobytes()
