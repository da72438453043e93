"""Links made of closed rings, column by column, in proportion to what a job's groups reduce and send: no search."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.models.topology.permutations import ring, totients
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels
from ddlopt.solvers.topology.link_exchange.starts import LinkStart, random_start, spanning_groups


@dataclass(frozen=True)
class Effort:
    """Which links are made, and how exactly their load is estimated."""

    families: int = 3
    """Families of groups, the heaviest ones, that may have columns of their own."""
    many_columns: int = 5
    """Columns from which on there is one family less: compositions grow as families to the power of columns."""
    generated: int = 5
    """Servers of a group up to which its first rings are "+p": generators reach different servers there."""
    bisections: int = 30
    """Thirty halvings are a billionth of the range."""


_EFFORT = Effort()

_RANDOM_HOPS = 1.05
"""Mean distance in random links over the least possible one, about."""


@dataclass(frozen=True)
class Cycle:
    """A closed ring in one column of links; with duplex optics in two.

    Parameters
    ----------
    column : int
        The first of them.
    order : tuple of int
        Servers.
    stretches : tuple of (first place, number of places)
        Within which servers may exchange their places.
    groups : tuple of (all-reduce group, first place, number of places)
        Groups whose rings lie on it; of one that it only passes through, all hops but the last.
    """

    column: int
    order: tuple[int, ...]
    stretches: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class RingStart(LinkStart):
    """Links that are made of closed rings."""

    on_links: tuple[Cycle, ...] = field(default=())


def rings_on(cycles: Sequence[Cycle], duplex: bool) -> dict[int, list[tuple[int, ...]]]:
    """By all-reduce group: the rings that are closed on the links; both ways round with duplex optics."""
    rings: dict[int, list[tuple[int, ...]]] = {}
    for cycle in cycles:
        for group, first, places in cycle.groups:
            order = cycle.order[first : first + places]
            rings.setdefault(group, []).extend(order[::way] for way in ((1, -1) if duplex else (1,)))
    return rings


Kind = tuple[str, int]
"""``ring``: all servers in random order. ``closed``: a ring in every group of a family. ``through``: all servers, one
group of the family after the other. The number is that of the family."""


@dataclass(frozen=True)
class Family:
    """Disjoint groups of one size, so that rings of all of them fit into one column of links.

    Parameters
    ----------
    groups : tuple of tuple of int
        Servers.
    numbers : tuple of int
        The all-reduce groups that they are; empty if they only have traffic inside.
    ring_bytes, inner_bytes : float
        All-reduced, and sent between servers of a group, per server of the network.
    """

    groups: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    ring_bytes: float
    inner_bytes: float

    @property
    def size(self) -> int:
        """Servers in a group."""
        return len(self.groups[0])


def starts_for(instance: TopologyInstance, seed: int) -> Iterator[LinkStart]:
    """Links of different composition, the most promising first, with their rings."""
    seed_kernels(seed)
    return _Shape(instance).starts(np.random.default_rng(seed))


@dataclass(frozen=True)
class _Shape:
    """What a job looks like to somebody who lays rings."""

    instance: TopologyInstance
    _known_to_join: dict[frozenset[int], bool] = field(default_factory=dict)

    @property
    def duplex(self) -> bool:
        """Whether a ring takes two columns."""
        return self.instance.optics == "duplex"

    @property
    def rings(self) -> int:
        """How many rings a server has ports for."""
        return self.instance.degree // 2 if self.duplex else self.instance.degree

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Families of groups smaller than all servers, the heaviest first."""
        groups = self.instance.allreduce_groups
        n = self.instance.servers
        found: list[tuple[set[int], list[int]]] = []
        for number, group in enumerate(groups):
            if len(group.members) == n:
                continue
            for servers, numbers in found:
                if len(groups[numbers[0]].members) == len(group.members) and servers.isdisjoint(group.members):
                    servers.update(group.members)
                    numbers.append(number)
                    break
            else:
                found.append((set(group.members), [number]))
        families = [self._family([groups[i].members for i in numbers], numbers) for _, numbers in found]
        count, label = connected_components(self.instance.traffic_bytes > 0, directed=False)
        parts = [tuple(np.flatnonzero(label == part).tolist()) for part in range(count)]
        parts = [part for part in parts if len(part) > 1]
        equal = len(parts) > 1 and len({len(part) for part in parts}) == 1
        if equal and not any(set(parts) == set(family.groups) for family in families):
            families.append(self._family(parts, []))
        return tuple(sorted(families, key=lambda family: -family.ring_bytes - family.inner_bytes))

    def _family(self, groups: Sequence[tuple[int, ...]], numbers: Sequence[int]) -> Family:
        n = self.instance.servers
        reduced = sum(self.instance.allreduce_groups[i].hop_bytes * len(groups[0]) for i in numbers)
        inner = sum(float(self.instance.traffic_bytes[np.ix_(group, group)].sum()) for group in groups)
        return Family(tuple(groups), tuple(numbers), reduced / n, inner / n)

    def starts(self, rng: np.random.Generator) -> Iterator[LinkStart]:
        """Links of every composition, the most promising ones first."""
        for kinds in self.compositions:
            yield self._build(kinds, rng)
        for closed in (self.instance.degree, 0):
            start = random_start(self.instance, closed, rng)
            if start is not None:
                yield start

    @cached_property
    def compositions(self) -> list[tuple[Kind, ...]]:
        """Kinds of the rings at every server, by increasing estimate; none where links must not be parallel."""
        instance = self.instance
        if not instance.parallel_links or not instance.host_forwarding or (self.duplex and instance.servers % 2):
            return []
        most = _EFFORT.families if self.rings < _EFFORT.many_columns else _EFFORT.families - 1
        vocabulary: list[Kind] = [("ring", -1)]
        for number, family in enumerate(self.families[:most]):
            if not self.duplex or family.size % 2 == 0:
                vocabulary.append(("closed", number))
            if family.size > 2:
                vocabulary.append(("through", number))
        every = itertools.combinations_with_replacement(vocabulary, self.rings)
        return sorted(every, key=lambda kinds: (self._estimate(kinds), kinds))

    @cached_property
    def _far(self) -> float:
        """Mean distance in random links."""
        instance = self.instance
        return _RANDOM_HOPS * _mean_distance(instance.servers, instance.degree, self.duplex)

    @cached_property
    def _everybody_bytes(self) -> float:
        """All-reduced among all servers, per server."""
        return sum(self.instance.allreduce_groups[i].hop_bytes for i in spanning_groups(self.instance))

    def _estimate(self, kinds: tuple[Kind, ...]) -> float:
        """Bytes on each link, if bytes that have no ring of their own go wherever there is room, by way of others."""
        counts = Counter(kinds)
        ports = 2 if self.duplex else 1
        spanning = sum(count for (kind, _), count in counts.items() if kind != "closed")
        everywhere = float(self.instance.traffic_bytes.sum()) / self.instance.servers
        if spanning == 0 and not self._joined(frozenset(number for _, number in kinds)):
            return np.inf
        demands = [(self._everybody_bytes, float(ports * spanning), 1.0)]
        for number, family in enumerate(self.families):
            closed, through = counts[("closed", number)], counts[("through", number)]
            along = closed + through
            # A ring through the groups has no link from the last server of a group back to its first.
            detour = ((family.size - 1 + self._far) / family.size) if along else self._far
            hops = (closed + through * detour) / along if along else self._far
            demands.append((family.ring_bytes, float(ports * along), hops))
            everywhere -= family.inner_bytes
            near = _mean_distance(family.size, ports * along, self.duplex) if along else self._far
            demands.append((family.inner_bytes, 0.0, min(near * _RANDOM_HOPS, self._far)))
        demands.append((everywhere, 0.0, self._far))
        return self._filled(demands)

    def _joined(self, families: frozenset[int]) -> bool:
        """Whether rings in the groups of these families join all servers."""
        if families not in self._known_to_join:
            n = self.instance.servers
            groups = [group for number in families for group in self.families[number].groups]
            tails = [server for group in groups for server in group]
            heads = [group[0] for group in groups for _ in group]
            links = coo_array((np.ones(len(tails)), (tails, heads)), shape=(n, n))
            self._known_to_join[families] = connected_components(links, directed=False)[0] == 1
        return self._known_to_join[families]

    def _filled(self, demands: Sequence[tuple[float, float, float]]) -> float:
        """The least load at which links carry demands of (bytes, links of their own, hops), by bisection."""

        def needed(load: float) -> float:
            total = 0.0
            for amount, links, hops in demands:
                own = min(amount, links * load) if links else 0.0
                total += own * hops + (amount - own) * (self._far if links else hops)
            return total

        d = self.instance.degree
        low, high = 0.0, needed(0.0) / d
        for _ in range(_EFFORT.bisections):
            middle = (low + high) / 2
            low, high = (low, middle) if needed(middle) <= d * middle else (middle, high)
        return high

    def _build(self, kinds: tuple[Kind, ...], rng: np.random.Generator) -> RingStart:
        """The table of link ends with these rings, and the rings that are known to be good."""
        instance = self.instance
        n, d = instance.servers, instance.degree
        heads = np.full((n, d), -1, dtype=np.int64)
        used = Counter[int]()
        cycles: list[Cycle] = []
        for place, kind in enumerate(kinds):
            for cycle in self._cycles(kind, 2 * place if self.duplex else place, used, rng):
                cycles.append(cycle)
                order = np.array(cycle.order)
                if not self.duplex:
                    heads[order, place] = np.roll(order, -1)
                    continue
                for column, ahead in ((2 * place, order), (2 * place + 1, np.roll(order, -1))):
                    heads[ahead[::2], column], heads[ahead[1::2], column] = ahead[1::2], ahead[::2]
        if self.duplex and d % 2:
            order = rng.permutation(n)
            heads[order[::2], d - 1], heads[order[1::2], d - 1] = order[1::2], order[::2]
        name = " ".join(kind if number < 0 else f"{kind} {number}" for kind, number in kinds)
        return RingStart(name, heads, rings=rings_on(cycles, self.duplex), on_links=tuple(cycles))

    def _cycles(self, kind: Kind, column: int, used: Counter[int], rng: np.random.Generator) -> Iterator[Cycle]:
        """Closed rings of one column."""
        n = self.instance.servers
        what, number = kind
        orders: list[tuple[int, ...]] = []
        family = None
        if number >= 0:
            family = self.families[number]
            turn = used[number]
            used[number] += 1
            # In small groups generators reach different servers; in others random orders make distances shorter.
            generators = totients(family.size) if family.size <= _EFFORT.generated else []
            for group in family.groups:
                known = turn < len(generators)
                orders.append(ring(group, generators[turn]) if known else tuple(rng.permutation(group).tolist()))
        rest = rng.permutation(sorted(set(range(n)).difference(*orders))).tolist()
        if what == "closed" and family is not None:
            for place, order in enumerate(orders):
                own = tuple((each, 0, family.size) for each in family.numbers[place : place + 1])
                yield Cycle(column, order, ((0, len(order)),), own)
            if len(rest) > 1:
                yield Cycle(column, tuple(rest), ((0, len(rest)),), ())
            return
        turns = rng.permutation(len(orders)).tolist()
        whole = [server for place in turns for server in orders[place]] + rest
        passed = [(spanning, 0, n) for spanning in spanning_groups(self.instance)]
        stretches = []
        for at, place in enumerate(turns if family is not None else ()):
            assert family is not None
            stretches.append((at * family.size, family.size))
            passed += [(each, at * family.size, family.size) for each in family.numbers[place : place + 1]]
        if rest:
            stretches.append((n - len(rest), len(rest)))
        yield Cycle(column, tuple(whole), tuple(stretches), tuple(passed))


def _mean_distance(servers: int, degree: int, duplex: bool) -> float:
    """Least mean distance to the others, where all can be reached; otherwise that along a ring."""
    if servers < 2:
        return 0.0
    if degree < 2 or (duplex and degree == 2):
        return servers / (4 if duplex else 2)
    sizes = list(level_sizes(servers - 1, degree, duplex))
    return sum(hops * size for hops, size in enumerate(sizes, start=1)) / sum(sizes)
