"""Numba kernels for trees of messages in a network: one job's tree at given prices.

A tree is a table of routes, one for each sender (a worker or a switch that aggregates): ``routes[o, :length[o]]`` are
the arcs of the o-th. Every node of a job other than its server sends once at most. Nothing here knows an instance.

Loops stand where array expressions would: each of those is a library that takes a second or two to compile.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NET = "record(Net, i8[::1], i8[::1], i8[::1], i8[::1], b1[::1], f8[::1], f8[::1], i8[::1])"
RULES = "record(Rules, i8, i8, b1)"
PRICES = "record(Prices, f8[::1], f8[::1], f8[::1])"
_TREE = "record(Tree, i8[:, ::1], i8[::1], i8[::1], b1[::1], i8[::1])"


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


class _Queue(NamedTuple):
    """A binary heap of numbers and nodes, the least first; ``size`` has one element."""

    far: Floats
    node: Ints
    size: Ints


@inner()
def _push(queue: _Queue, far: float, node: int) -> None:
    fars, nodes = queue.far, queue.node
    k = queue.size[0]
    queue.size[0] = k + 1
    while k > 0:
        above = (k - 1) >> 1
        if far > fars[above] or (far == fars[above] and node >= nodes[above]):
            break
        fars[k], nodes[k] = fars[above], nodes[above]
        k = above
    fars[k], nodes[k] = far, node


@inner()
def _pop(queue: _Queue) -> tuple[float, int]:
    """Take the first away, which is returned."""
    fars, nodes = queue.far, queue.node
    first, found = fars[0], nodes[0]
    size = queue.size[0] - 1
    queue.size[0] = size
    far, node = fars[size], nodes[size]
    k, below = 0, 1
    while below < size:
        other = below + 1
        if other < size and (fars[other] < fars[below] or (fars[other] == fars[below] and nodes[other] < nodes[below])):
            below = other
        if far < fars[below] or (far == fars[below] and node <= nodes[below]):
            break
        fars[k], nodes[k] = fars[below], nodes[below]
        k, below = below, 2 * below + 1
    fars[k], nodes[k] = far, node
    return first, found


@inner(inline="always")
def _ways_on(head: Ints, tree: Tree, arc_price: Floats, server: int, own: Floats, whole: Floats) -> None:
    """Prices of the route of each sender's message, and of its way as far as the server."""
    routes, length, number = tree.routes, tree.length, tree.number
    senders = tree.senders[0]
    for o in range(senders):
        own[o] = 0.0
        for i in range(length[o]):
            own[o] += arc_price[routes[o, i]]
    for o in range(senders):
        price = own[o]
        end = head[routes[o, length[o] - 1]]
        while end != server:
            price += own[number[end]]
            end = head[routes[number[end], length[number[end]] - 1]]
        whole[o] = price


@inner(inline="always")
def _joins(net: Net, tree: Tree, prices: Prices, rules: Rules, left: int, server: int, joins: _Joins) -> None:
    """Where the next message may end, into ``joins``; ``left`` nodes may begin to aggregate."""
    tail, arc_price, ending = net.tail, prices.arc, prices.ending
    routes, length, number = tree.routes, tree.length, tree.number
    price, ends_here, best, place = joins.price, joins.ends_here, joins.best, joins.place
    senders, n = tree.senders[0], len(price)
    own, whole = np.empty(senders), np.empty(senders)
    _ways_on(net.head, tree, arc_price, server, own, whole)
    met, total, kept, nearest = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    for v in range(n):
        price[v], ends_here[v], best[v], place[v] = np.inf, False, -1, 0
        met[v], total[v], kept[v], nearest[v] = 0, 0.0, 0.0, np.inf
    arrivals = 0
    for o in range(senders):
        end = net.head[routes[o, length[o] - 1]]
        beyond, here = 0.0, 0.0
        if end == server:
            arrivals += 1
        else:
            beyond, here = whole[number[end]], ending[end]
        for i in range(length[o] - 1, -1, -1):
            arc = routes[o, i]
            here += arc_price[arc]
            beyond += arc_price[arc]
            v = tail[arc]
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
            price[v] = ending[v]
        elif met[v] > 0:
            ends_here[v] = rules.merging
            if left > 0 and prices.opening[v] < np.inf:
                entering = met[v] + 1 - (number[v] >= 0)
                price[v] = prices.opening[v] + entering * ending[v] - (total[v] - kept[v])


@inner(inline="always")
def _route(net: Net, arc_price: Floats, joins: _Joins, worker: int, via: Ints, queue: _Queue) -> bool:
    """The cheapest way from ``worker`` to where a message may end: ``via`` is the arc out of a node, -1 at the end."""
    tail, first, entering = net.tail, net.first, net.entering
    n = len(via)
    dist, done = np.empty(n), np.empty(n, np.bool_)
    queue.size[0] = 0
    for v in range(n):
        via[v], done[v], dist[v] = -1, False, joins.price[v]
        if v == worker:
            dist[v] = np.inf
        if dist[v] < np.inf:
            _push(queue, dist[v], v)
    while queue.size[0] > 0:
        far, v = _pop(queue)
        if done[v] or far > dist[v]:
            continue
        if v == worker:
            return True
        done[v] = True
        for k in range(first[v], first[v + 1]):
            arc = entering[k]
            u = tail[arc]
            if done[u] or (u != worker and (joins.ends_here[u] or not net.forwards[u])):
                continue
            if far + arc_price[arc] < dist[u]:
                dist[u] = far + arc_price[arc]
                via[u] = arc
                _push(queue, dist[u], u)
    return False


@inner()
def _begin(tail: Ints, tree: Tree, joins: _Joins, v: int) -> None:
    """Have v aggregate what passes through it."""
    routes, length, number = tree.routes, tree.length, tree.number
    best, place = joins.best[v], joins.place[v]
    count = length[best] - place
    onwards = np.empty(count, np.int64)
    for i in range(count):
        onwards[i] = routes[best, place + i]
    for o in range(tree.senders[0]):
        for i in range(1, length[o]):
            if tail[routes[o, i]] == v:
                length[o] = i
                break
    if number[v] < 0:
        number[v] = tree.senders[0]
        tree.senders[0] += 1
    for i in range(count):
        routes[number[v], i] = onwards[i]
    length[number[v]] = count
    tree.aggregates[v] = True


@kernel(f"({NET}, i8[::1], i8, i8, {PRICES}, {RULES}, i8, {_TREE})")
def grow(net: Net, order: Ints, hubs: int, server: int, prices: Prices, rules: Rules, left: int, tree: Tree) -> bool:
    """The tree of a job, worker by worker, each by the cheapest way; False where one finds none.

    The first ``hubs`` of ``order`` are no workers, but nodes that aggregate from the beginning. ``left``: how many may
    aggregate.
    """
    number, n, arcs = tree.number, len(net.forwards), len(net.tail)
    tree.senders[0] = 0
    for v in range(n):
        number[v], tree.aggregates[v] = -1, False
    via = np.empty(n, np.int64)
    joins = _Joins(np.empty(n), np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64))
    queue = _Queue(np.empty(n + arcs), np.empty(n + arcs, np.int64), np.empty(1, np.int64))
    for turn in range(len(order)):
        worker = order[turn]
        if number[worker] >= 0:
            # It aggregates already; its own gradient is added there.
            continue
        _joins(net, tree, prices, rules, left, server, joins)
        if joins.best[worker] >= 0 and rules.merging:
            if joins.price[worker] == np.inf:
                return False
            _begin(net.tail, tree, joins, worker)
            left -= 1
            continue
        if (turn < hubs and left < 1) or not _route(net, prices.arc, joins, worker, via, queue):
            return False
        o, count, v = tree.senders[0], 0, worker
        while via[v] >= 0:
            tree.routes[o, count] = via[v]
            count += 1
            v = net.head[via[v]]
        tree.length[o] = count
        number[worker] = o
        tree.senders[0] += 1
        if v != server and not tree.aggregates[v]:
            _begin(net.tail, tree, joins, v)
            left -= 1
        if turn < hubs:
            tree.aggregates[worker] = True
            left -= 1
    _prune(net, order, hubs, server, tree)
    return True


@inner(inline="always")
def _prune(net: Net, order: Ints, hubs: int, server: int, tree: Tree) -> None:
    """Remove aggregators at which one message or none arrives."""
    tail, head, n = net.tail, net.head, len(net.forwards)
    routes, length, number, aggregates = tree.routes, tree.length, tree.number, tree.aggregates
    works = np.empty(n, np.bool_)
    arrived, last = np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        works[v] = False
    for turn in range(hubs, len(order)):
        works[order[turn]] = True
    changed = True
    while changed:
        changed = False
        for v in range(n):
            arrived[v], last[v] = 0, 0
        for o in range(tree.senders[0]):
            end = head[routes[o, length[o] - 1]]
            arrived[end] += 1
            last[end] = o
        for v in range(n):
            if not aggregates[v] or v == server:
                continue
            idle = arrived[v] == 0
            if not idle and (arrived[v] != 1 or works[v] or not net.forwards[v]):
                continue
            aggregates[v] = False
            changed = True
            if not idle:
                _continue(tail, head, routes, length, last[v], number[v])
            if not works[v]:
                _remove(tail, tree, v)
            break


@inner(inline="always")
def _continue(tail: Ints, head: Ints, routes: Ints, length: Ints, first: int, second: int) -> None:
    """Add the route of the second sender to that of the first; what would lead back to a node is left out."""
    for i in range(length[second]):
        arc = routes[second, i]
        k, count = 0, length[first]
        while k < count and tail[routes[first, k]] != head[arc]:
            k += 1
        if k == count:
            routes[first, k] = arc
            k += 1
        length[first] = k


@inner(inline="always")
def _remove(tail: Ints, tree: Tree, v: int) -> None:
    """Take the sender v away; the last one gets its number."""
    routes, length, number = tree.routes, tree.length, tree.number
    o, last = number[v], tree.senders[0] - 1
    if o != last:
        for i in range(length[last]):
            routes[o, i] = routes[last, i]
        length[o] = length[last]
        number[tail[routes[o, 0]]] = o
    number[v] = -1
    tree.senders[0] = last


@inner(inline="always")
def count(head: Ints, tree: Tree, server: int, messages: Ints, ended: Ints) -> None:
    """How many messages there are on each arc, (m,), and how many end at each node other than the server, (n,)."""
    routes, length = tree.routes, tree.length
    for arc in range(len(messages)):
        messages[arc] = 0
    for v in range(len(ended)):
        ended[v] = 0
    for o in range(tree.senders[0]):
        for i in range(length[o]):
            messages[routes[o, i]] += 1
        ended[head[routes[o, length[o] - 1]]] += 1
    ended[server] = 0
