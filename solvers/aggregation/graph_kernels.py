"""Numba kernels for trees of messages in a network: one job's tree at given prices.

A tree is a table of routes, one for each sender (a worker or a switch that aggregates): ``routes[o, :length[o]]`` are
the arcs of the o-th. Every node of a job other than its server sends once at most. Nothing here knows an instance.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__`` to have the
kernels of other files compiled anew.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Net(NamedTuple):
    """A network of n nodes and m arcs as the kernels take it.

    Parameters
    ----------
    tail, head : (m,) integers
        Ends of every arc.
    first : (n + 1,) integers
        Where the arcs into a node begin in ``entering``.
    entering : (m,) integers
    forwards : (n,) bool
    link_s, switch_s : (m,) and (n,) floats
        Seconds for a byte on an arc, and in the aggregators of a node.
    slots : (n,) integers
    """

    tail: Ints
    head: Ints
    first: Ints
    entering: Ints
    forwards: Flags
    link_s: Floats
    switch_s: Floats
    slots: Ints


class Rules(NamedTuple):
    """Most connections, most aggregators of all jobs together, and whether messages that meet must be merged."""

    connections: int
    aggregators: int
    merging: bool


class Prices(NamedTuple):
    """What one message of a job costs on each arc and in each aggregator, and what it costs to begin aggregating.

    An infinite price to begin: the node cannot. Those of arcs are positive.
    """

    arc: Floats
    ending: Floats
    opening: Floats


class Tree(NamedTuple):
    """The routes of one job: (o, n) arcs, (o,) numbers of arcs, (n,) sender's number or -1, (n,) whether it aggregates.

    ``senders`` has one element, the number of senders; tables are longer than that.
    """

    routes: Ints
    length: Ints
    number: Ints
    aggregates: Flags
    senders: Ints


class _Joins(NamedTuple):
    """Where a new message may end, and at what price; of the messages at a node, whose way on is taken, from where."""

    price: Floats
    ends_here: Flags
    best: Ints
    place: Ints


@njit(cache=True)
def clear(tree: Tree) -> None:
    """Forget all routes."""
    tree.senders[0] = 0
    tree.number[:] = -1
    tree.aggregates[:] = False


@njit(cache=True)
def _end(net: Net, tree: Tree, sender: int) -> int:
    return net.head[tree.routes[sender, tree.length[sender] - 1]]


@njit(cache=True)
def _ways_on(net: Net, tree: Tree, prices: Prices, server: int) -> Floats:
    """Price of the way of each sender's message, as far as the server."""
    own = np.zeros(tree.senders[0])
    for o in range(tree.senders[0]):
        for i in range(tree.length[o]):
            own[o] += prices.arc[tree.routes[o, i]]
    whole = own.copy()
    for o in range(tree.senders[0]):
        end = _end(net, tree, o)
        while end != server:
            whole[o] += own[tree.number[end]]
            end = _end(net, tree, tree.number[end])
    return whole


@njit(cache=True)
def _joins(net: Net, tree: Tree, prices: Prices, rules: Rules, left: int, server: int) -> _Joins:
    """Where the next message may end; ``left`` nodes may begin to aggregate."""
    n = len(net.forwards)
    price = np.full(n, np.inf)
    ends_here = np.zeros(n, np.bool_)
    met = np.zeros(n, np.int64)
    total, kept, nearest = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    best, place = np.full(n, -1), np.zeros(n, np.int64)
    whole = _ways_on(net, tree, prices, server)
    arrivals = 0
    for o in range(tree.senders[0]):
        end = _end(net, tree, o)
        arrivals += end == server
        beyond = 0.0 if end == server else whole[tree.number[end]]
        here = 0.0 if end == server else prices.ending[end]
        for i in range(tree.length[o] - 1, -1, -1):
            arc = tree.routes[o, i]
            here += prices.arc[arc]
            beyond += prices.arc[arc]
            v = net.tail[arc]
            met[v] += 1
            total[v] += here
            # The way on that is shortest to the server: no sender on it can send through v, so no circle arises.
            if beyond < nearest[v]:
                nearest[v], kept[v], best[v], place[v] = beyond, here, o, i
    for v in range(n):
        if v == server:
            ends_here[v] = True
            if arrivals < rules.connections:
                price[v] = 0.0
        elif tree.aggregates[v]:
            ends_here[v] = rules.merging
            price[v] = prices.ending[v]
        elif met[v] > 0:
            ends_here[v] = rules.merging
            if left > 0 and prices.opening[v] < np.inf:
                entering = met[v] + 1 - (tree.number[v] >= 0)
                price[v] = prices.opening[v] + entering * prices.ending[v] - (total[v] - kept[v])
    return _Joins(price, ends_here, best, place)


@njit(cache=True)
def _route(net: Net, prices: Prices, joins: _Joins, worker: int, via: Ints) -> bool:
    """The cheapest way from ``worker`` to where a message may end: ``via`` is the arc out of a node, -1 at the end."""
    dist = joins.price.copy()
    dist[worker] = np.inf
    done = np.zeros(len(dist), np.bool_)
    via[:] = -1
    heap = [(dist[0], 0)]
    heap.pop()
    for v in range(len(dist)):
        if dist[v] < np.inf:
            heap.append((dist[v], v))
    heapq.heapify(heap)
    while len(heap) > 0:
        far, v = heapq.heappop(heap)
        if done[v] or far > dist[v]:
            continue
        if v == worker:
            return True
        done[v] = True
        for k in range(net.first[v], net.first[v + 1]):
            arc = net.entering[k]
            u = net.tail[arc]
            if done[u] or (u != worker and (joins.ends_here[u] or not net.forwards[u])):
                continue
            if far + prices.arc[arc] < dist[u]:
                dist[u] = far + prices.arc[arc]
                via[u] = arc
                heapq.heappush(heap, (dist[u], u))
    return False


@njit(cache=True)
def _begin(net: Net, tree: Tree, joins: _Joins, v: int) -> None:
    """Have v aggregate what passes through it."""
    best, place = joins.best[v], joins.place[v]
    count = tree.length[best] - place
    onwards = tree.routes[best, place : place + count].copy()
    for o in range(tree.senders[0]):
        for i in range(1, tree.length[o]):
            if net.tail[tree.routes[o, i]] == v:
                tree.length[o] = i
                break
    if tree.number[v] < 0:
        tree.number[v] = tree.senders[0]
        tree.senders[0] += 1
    tree.routes[tree.number[v], :count] = onwards
    tree.length[tree.number[v]] = count
    tree.aggregates[v] = True


@njit(cache=True)
def grow(net: Net, order: Ints, hubs: int, server: int, prices: Prices, rules: Rules, left: int, tree: Tree) -> bool:
    """The tree of a job, worker by worker, each by the cheapest way; False where one finds none.

    The first ``hubs`` of ``order`` are no workers, but nodes that aggregate from the beginning. ``left``: how many may
    aggregate.
    """
    clear(tree)
    via = np.empty(len(net.forwards), np.int64)
    for number in range(len(order)):
        worker = order[number]
        if tree.number[worker] >= 0:
            # It aggregates already; its own gradient is added there.
            continue
        joins = _joins(net, tree, prices, rules, left, server)
        if joins.best[worker] >= 0 and rules.merging:
            if joins.price[worker] == np.inf:
                return False
            _begin(net, tree, joins, worker)
            left -= 1
            continue
        if (number < hubs and left < 1) or not _route(net, prices, joins, worker, via):
            return False
        o, count, v = tree.senders[0], 0, worker
        while via[v] >= 0:
            tree.routes[o, count] = via[v]
            count += 1
            v = net.head[via[v]]
        tree.length[o] = count
        tree.number[worker] = o
        tree.senders[0] += 1
        if v != server and not tree.aggregates[v]:
            _begin(net, tree, joins, v)
            left -= 1
        if number < hubs:
            tree.aggregates[worker] = True
            left -= 1
    _prune(net, order[hubs:], server, tree)
    return True


@njit(cache=True)
def _prune(net: Net, workers: Ints, server: int, tree: Tree) -> None:
    """Remove aggregators at which one message or none arrives."""
    works = np.zeros(len(net.forwards), np.bool_)
    works[workers] = True
    changed = True
    while changed:
        changed = False
        arrived = np.zeros(len(net.forwards), np.int64)
        last = np.zeros(len(net.forwards), np.int64)
        for o in range(tree.senders[0]):
            end = _end(net, tree, o)
            arrived[end] += 1
            last[end] = o
        for v in range(len(net.forwards)):
            if not tree.aggregates[v] or v == server:
                continue
            if arrived[v] == 0:
                tree.aggregates[v] = False
                if not works[v]:
                    _remove(net, tree, v)
                changed = True
            elif arrived[v] == 1 and not works[v] and net.forwards[v]:
                tree.aggregates[v] = False
                _continue(net, tree, last[v], tree.number[v])
                _remove(net, tree, v)
                changed = True
            if changed:
                break


@njit(cache=True)
def _continue(net: Net, tree: Tree, first: int, second: int) -> None:
    """Add the route of the second sender to that of the first; what would lead back to a node is left out."""
    for i in range(tree.length[second]):
        arc = tree.routes[second, i]
        for k in range(tree.length[first]):
            if net.tail[tree.routes[first, k]] == net.head[arc]:
                tree.length[first] = k
                break
        else:
            tree.routes[first, tree.length[first]] = arc
            tree.length[first] += 1


@njit(cache=True)
def _remove(net: Net, tree: Tree, v: int) -> None:
    """Take the sender v away; the last one gets its number."""
    o, last = tree.number[v], tree.senders[0] - 1
    if o != last:
        tree.routes[o] = tree.routes[last]
        tree.length[o] = tree.length[last]
        tree.number[net.tail[tree.routes[o, 0]]] = o
    tree.number[v] = -1
    tree.senders[0] = last


@njit(cache=True)
def count(net: Net, tree: Tree, server: int, messages: Ints, ended: Ints) -> None:
    """How many messages there are on each arc, (m,), and how many end at each node other than the server, (n,)."""
    messages[:] = 0
    ended[:] = 0
    for o in range(tree.senders[0]):
        for i in range(tree.length[o]):
            messages[tree.routes[o, i]] += 1
        ended[_end(net, tree, o)] += 1
    ended[server] = 0
