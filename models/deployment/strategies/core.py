"""What is left to decide of a strategy instance: graph, tables and rows of memory, as arrays and as small as can be.

Aliased nodes are one node, parallel edges one edge. Strategies that are pinned away, forbidden, without an allowed
partner at a neighbour, or larger than what memory leaves are gone. Memory is a row for each time whose set of live
nodes is in no other's, if the largest usages there exceed what the smallest leave of the limit.
"""

import heapq
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.strategies.instance import StrategyInstance
from ddlopt.models.deployment.strategies.kernels.tables import (
    add_tables,
    keep_consistent,
    least_over_ranges,
    smaller_tables,
)
from ddlopt.models.deployment.strategies.ragged import Floats, Ints, offsets
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import let_pass

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Memory:
    """Rows of memory: what is kept during a range of rows, for each strategy of its node, and what the rows allow.

    Parameters
    ----------
    node, low, high : (q,) arrays
        Of each item its node and its rows ``low:high``.
    start : (q + 1,) array
    use : array
        Usage of item k by strategy: ``use[start[k]:start[k + 1]]``; the least is 0.
    limit : (r,) array
        Of what the items use beyond their least, with what the check lets pass of the whole.
    times : (r,) array
        A time for each row.
    """

    node: Ints
    low: Ints
    high: Ints
    start: Ints
    use: Floats
    limit: Floats
    times: Ints

    def load(self, used: Floats) -> Floats:
        """(r,) what (q,) usages add up to in each row."""
        change = np.zeros(len(self.limit) + 1)
        np.add.at(change, self.low, used)
        np.add.at(change, self.high, -used)
        found: Floats = np.cumsum(change)[:-1]
        return found

    @cached_property
    def largest(self) -> Floats:
        """(q,) largest usage of each item."""
        return np.maximum.reduceat(self.use, self.start[:-1]) if len(self.node) else np.zeros(0)


@dataclass(frozen=True)
class Core:
    """Nodes that have a choice, or had one.

    Parameters
    ----------
    name : str
        Of the instance.
    whole : bool
        Whether all costs are whole numbers.
    start : (n + 1,) array
        Strategies of node i are ``start[i]:start[i + 1]``.
    cost : (k,) array
    original : (k,) array
        Number of each strategy in the instance.
    class_of : (N,) array
        Node here of each node of the instance.
    edges : (m, 2) array
        Smaller node first, each pair once.
    table_start : (m + 1,) array
    table : array
        Costs of pairs, row by row; infinite where forbidden.
    memory : Memory
    """

    name: str
    whole: bool
    start: Ints
    cost: Floats
    original: Ints
    class_of: Ints
    edges: Ints
    table_start: Ints
    table: Floats
    memory: Memory

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.start) - 1

    @cached_property
    def counts(self) -> Ints:
        """(n,) numbers of strategies."""
        return np.diff(self.start)

    @cached_property
    def degree(self) -> Ints:
        """(n,) numbers of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.size)

    def strategies(self, chosen: Ints) -> tuple[int, ...]:
        """Strategies of the instance's nodes for (n,) places among those of the nodes here."""
        found: list[int] = self.original[self.start[:-1] + chosen][self.class_of].tolist()
        return tuple(found)

    def places(self, strategies: tuple[int, ...]) -> Ints | None:
        """The inverse of :meth:`strategies`; None where one is no longer there."""
        wanted = np.zeros(self.size, dtype=np.int64)
        wanted[self.class_of] = strategies
        owner = np.repeat(np.arange(self.size), self.counts)
        hits = np.flatnonzero(self.original == wanted[owner])
        if len(hits) != self.size:
            return None
        places: Ints = hits - self.start[:-1]
        return places

    def cost_of(self, chosen: Ints) -> float:
        """Cost of (n,) places; infinite where forbidden."""
        total = self.cost[self.start[:-1] + chosen].sum()
        u, v = self.edges[:, 0], self.edges[:, 1]
        return float(total + self.table[self.table_start[:-1] + chosen[u] * self.counts[v] + chosen[v]].sum())

    def excess_of(self, chosen: Ints) -> Floats:
        """(r,) usage of (n,) places above the limit of each row."""
        memory = self.memory
        excess: Floats = memory.load(memory.use[memory.start[:-1] + chosen[memory.node]]) - memory.limit
        return excess


def core_of(instance: StrategyInstance) -> Core:
    """The core of an instance.

    Raises
    ------
    InfeasibleError
        If forbidden pairs, pins, or the least usages at some time, leave nothing.
    """
    class_of = _classes(instance)
    size = int(class_of.max()) + 1
    counts = np.zeros(size, dtype=np.int64)
    counts[class_of] = instance.costs.sizes
    start = offsets(counts)
    owner = np.repeat(np.arange(instance.size), instance.costs.sizes)
    within = np.arange(len(owner)) - instance.costs.starts[owner]
    cost = np.zeros(start[-1])
    np.add.at(cost, start[class_of[owner]] + within, instance.costs.values)
    edges, table_start, table = _merged(instance, class_of, counts, start, cost)
    core = Core(
        instance.name,
        instance.whole,
        start,
        cost,
        np.arange(start[-1]) - np.repeat(start[:-1], counts),
        class_of,
        edges,
        table_start,
        table,
        _all_rows(instance, class_of),
    )
    alive = np.isfinite(cost)
    for node, strategy in instance.pins:
        first, last = start[class_of[node]], start[class_of[node] + 1]
        others = np.arange(first, last) != first + strategy
        alive[first:last][others] = False
    return restricted(core, alive)


def restricted(core: Core, alive: Flags) -> Core:
    """The core with only those strategies, and what follows from that.

    Parameters
    ----------
    alive : (k,) array

    Raises
    ------
    InfeasibleError
        If nothing is left.
    """
    alive = alive.copy()
    while True:
        keep_consistent(core.start, core.edges, core.table_start, core.table, alive)
        left = np.add.reduceat(alive.astype(np.int64), core.start[:-1])
        if not left.all():
            node = int(np.flatnonzero(core.class_of == np.argmin(left))[0])
            raise InfeasibleError(f"'{core.name}': no strategy of node {node} is allowed together with its neighbours'")
        core = _compressed(core, alive)
        fits = _fits(core)
        if fits.all():
            return core
        alive = fits


def _classes(instance: StrategyInstance) -> Ints:
    """(N,) node here of each node; those that are joined with many others come first.

    Nodes are taken away one by one, always one with fewest neighbours left, and numbered from the last: leaves come
    after what they hang on. Messages that follow the order are then exact on trees after one pass, and quick elsewhere.
    """
    leader = np.arange(instance.size)
    for nodes in instance.aliases:
        if nodes:
            leader[list(nodes)] = min(nodes)
    _, class_of = np.unique(leader, return_inverse=True)
    size = int(class_of.max()) + 1
    around: list[set[int]] = [set() for _ in range(size)]
    for i, j in class_of[instance.edges].tolist():
        if i != j:
            around[i].add(j)
            around[j].add(i)
    rank = np.full(size, -1)
    waiting = [(len(others), -i) for i, others in enumerate(around)]
    heapq.heapify(waiting)
    left = size
    while waiting:
        degree, negative = heapq.heappop(waiting)
        node = -negative
        if rank[node] >= 0 or degree != len(around[node]):
            continue
        left -= 1
        rank[node] = left
        for j in around[node]:
            around[j].discard(node)
            heapq.heappush(waiting, (len(around[j]), -j))
    found: Ints = rank[class_of]
    return found


def _merged(
    instance: StrategyInstance, class_of: Ints, counts: Ints, start: Ints, cost: Floats
) -> tuple[Ints, Ints, Floats]:
    ends = class_of[instance.edges]
    size = len(counts)
    keys = ends.min(axis=1) * size + ends.max(axis=1)
    inner = ends[:, 0] == ends[:, 1]
    pairs, place = np.unique(keys[~inner], return_inverse=True)
    edges = np.column_stack((pairs // size, pairs % size)).astype(np.int64)
    table_start = offsets(counts[edges[:, 0]] * counts[edges[:, 1]])
    into = np.zeros(len(ends), dtype=np.int64)
    into[~inner] = table_start[place]
    sums = np.zeros(table_start[-1])
    starts = instance.tables.starts[instance.table_of]
    add_tables(counts, ends, starts, instance.tables.values, into, start, cost, sums)
    return edges, table_start, sums


def _all_rows(instance: StrategyInstance, class_of: Ints) -> Memory:
    begin, end = instance.intervals[:, 0], instance.intervals[:, 1]
    node = np.flatnonzero(begin < end)
    if instance.usage_limit is None:
        node = node[:0]
    times = np.unique(np.concatenate((begin[node], end[node])))
    sizes = instance.usages.sizes
    owner = np.repeat(np.arange(instance.size), sizes)
    listed = np.zeros(instance.size, dtype=np.bool_)
    listed[node] = True
    limit = instance.usage_limit or 0.0
    # Before anything is taken off: of what is left, the check lets pass more than a part of that.
    most = limit if instance.usages_are_whole else let_pass(limit)
    return Memory(
        class_of[node],
        np.searchsorted(times, begin[node]),
        np.searchsorted(times, end[node]),
        offsets(sizes[node]),
        instance.usages.values[listed[owner]],
        np.full(len(times), most),
        times,
    )


def _compressed(core: Core, alive: Flags) -> Core:
    """Without the strategies that are not alive, and with the rows of memory that can bind."""
    counts = np.add.reduceat(alive.astype(np.int64), core.start[:-1])
    memory = core.memory
    table_start, table = core.table_start, core.table
    if not alive.all():
        table_start = offsets(counts[core.edges[:, 0]] * counts[core.edges[:, 1]])
        table = np.empty(table_start[-1])
        smaller_tables(core.start, core.edges, core.table_start, core.table, alive, table_start, table)
        item = np.repeat(np.arange(len(memory.node)), np.diff(memory.start))
        within = np.arange(len(memory.use)) - memory.start[item]
        kept = alive[core.start[memory.node[item]] + within]
        memory = replace(memory, start=offsets(counts[memory.node]), use=memory.use[kept])
    return replace(
        core,
        start=offsets(counts),
        cost=core.cost[alive],
        original=core.original[alive],
        table_start=table_start,
        table=table,
        memory=_binding(core.name, memory),
    )


def _binding(name: str, memory: Memory) -> Memory:
    """The rows that can bind, none of whose live sets is within another's, and the items that count in them."""
    if not len(memory.node):
        return replace(memory, limit=memory.limit[:0], times=memory.times[:0])
    least = np.minimum.reduceat(memory.use, memory.start[:-1])
    certain = memory.load(least)
    worst = int(np.argmax(certain - memory.limit))
    if certain[worst] > memory.limit[worst]:
        raise InfeasibleError(
            f"'{name}': at time {memory.times[worst]} any strategies use at least "
            f"{certain[worst] - memory.limit[worst]:.12g} more memory than the limit"
        )
    memory = replace(
        memory,
        use=memory.use - np.repeat(least, np.diff(memory.start)),
        limit=memory.limit - certain,
    )
    memory = _with_rows(memory, memory.load(memory.largest) > memory.limit)
    while True:
        kept = _maximal(memory)
        if kept.all():
            return memory
        memory = _with_rows(memory, kept)


def _maximal(memory: Memory) -> Flags:
    """Rows that are implied by no neighbouring row."""
    rows = len(memory.limit)
    kept = np.ones(rows, dtype=np.bool_)
    if rows < 2:
        return kept
    begun = np.bincount(memory.low, minlength=rows + 1)[1:rows] > 0
    ended = np.bincount(memory.high, minlength=rows + 1)[1:rows] > 0
    limit = memory.limit
    earlier = ~ended & (limit[:-1] >= limit[1:])
    later = ~begun & (limit[1:] >= limit[:-1]) & ~earlier
    kept[:-1] &= ~earlier
    kept[1:] &= ~later
    return kept


def _with_rows(memory: Memory, rows: Flags) -> Memory:
    """Only those rows, and the items that are used in one and use something."""
    before = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(rows, out=before[1:])
    low, high = before[memory.low], before[memory.high]
    items = (low < high) & (memory.largest > 0)
    sizes = np.diff(memory.start)
    return Memory(
        memory.node[items],
        low[items],
        high[items],
        offsets(sizes[items]),
        memory.use[np.repeat(items, sizes)],
        memory.limit[rows],
        memory.times[rows],
    )


def _fits(core: Core) -> Flags:
    """(k,) whether memory leaves room for each strategy."""
    memory = core.memory
    fits = np.ones(len(core.cost), dtype=np.bool_)
    if len(memory.node):
        room = least_over_ranges(memory.limit, memory.low, memory.high)
        sizes = np.diff(memory.start)
        item = np.repeat(np.arange(len(sizes)), sizes)
        places = core.start[memory.node[item]] + np.arange(len(item)) - memory.start[item]
        fits[places[memory.use > room[item]]] = False
    return fits
