"""Numba kernels of the branch and bound for latency: partial partitions, and the least time that each can lead to.

A *unit* is a set of nodes that runs as one, named by its first node: on an accelerator, or a single node on a
processor. Nodes are placed one after the other in a topological order, so that those placed hold all that they need.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DONE, BETTER, PAUSED = range(3)
"""Why the search returns: all is searched, it has a better partition, or it has looked at as many as it was to."""
_SLACK = 1 + 1e-12
"""Of sums of bytes; what is found is checked without it."""


class Graph(NamedTuple):
    """An instance as arrays.

    Parameters
    ----------
    order : (n,)
        Nodes, each after those that it needs.
    needs_at, needs : (n + 1,), (.,)
        Nodes that each needs.
    pins_at, pins : (n + 1,), (.,)
        Each node and those that need it.
    accelerator_s, processor_s : (n,)
        Infinite where it cannot run.
    transfer_s, memory_bytes : (n,)
    colour : (n,)
        Numbers of colours.
    after_s : (n,)
        Least time from the end of a node to the end of all that need it, directly or not.
    accelerators, subgraphs : int
    capacity_bytes : float
    """

    order: Ints
    needs_at: Ints
    needs: Ints
    pins_at: Ints
    pins: Ints
    accelerator_s: Floats
    processor_s: Floats
    transfer_s: Floats
    memory_bytes: Floats
    colour: Ints
    after_s: Floats
    accelerators: int
    subgraphs: int
    capacity_bytes: float


class Tree(NamedTuple):
    """Where the search is.

    Parameters
    ----------
    at : (1,)
        How many nodes are placed.
    unit : (n,)
        Of each node, -1 if it is not placed.
    device : (n,)
        Of the unit that each node has the name of; -1 for processors.
    row, length : (accelerators, n), (accelerators,)
        Units of each accelerator in the order in which they run.
    code, bound_s : (n, choices)
        What may be done with the node of each depth, the most promising first: n for a processor, less for the unit
        that it joins, more for a place in a row.
    listed, next : (n,)
        How many choices there are, and which comes next.
    """

    at: Ints
    unit: Ints
    device: Ints
    row: Ints
    length: Ints
    code: Ints
    bound_s: Floats
    listed: Ints
    next: Ints


class Room(NamedTuple):
    """What bounds are calculated in: by unit the load, the end and a mark; by node the end; bytes by accelerator."""

    load_s: Floats
    end_s: Floats
    ended: Ints
    node_s: Floats
    used_bytes: Floats


_GRAPH = (
    "record(Graph, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1],"
    " i8, i8, f8)"
)
_TREE = "record(Tree, i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1], i8[:, ::1], f8[:, ::1], i8[::1], i8[::1])"
_ROOM = "record(Room, f8[::1], f8[::1], i8[::1], f8[::1], f8[::1])"


@kernel(f"i8({_GRAPH}, {_TREE}, {_ROOM}, f8, i8)")
def search(graph: Graph, tree: Tree, room: Room, below_s: float, looks: int) -> int:
    """Go on in depth first order for at most about ``looks`` partial partitions, or to one that takes less.

    Of a partition found ``tree.unit``, ``device`` and ``row`` are read before the search goes on.
    """
    count = len(graph.order)
    while True:
        depth = tree.at[0]
        if depth == count or (tree.next[depth] >= 0 and tree.next[depth] == tree.listed[depth]):
            # A partition that was told, or nothing left to try: back to the node before.
            if depth < count:
                tree.next[depth] = -1
            if depth == 0:
                return DONE
            tree.at[0] = depth - 1
            _take_back(graph.order[depth - 1], tree.code[depth - 1, tree.next[depth - 1] - 1], tree, count)
            continue
        if looks <= 0:
            return PAUSED
        if tree.next[depth] < 0:
            looks -= _branch(graph, tree, room, depth, below_s)
            tree.next[depth] = 0
        choice = tree.next[depth]
        if choice == tree.listed[depth]:
            continue
        if not tree.bound_s[depth, choice] < below_s:
            tree.next[depth] = tree.listed[depth]
            continue
        tree.next[depth] = choice + 1
        _place(graph.order[depth], tree.code[depth, choice], tree, count)
        tree.at[0] = depth + 1
        if depth + 1 == count:
            return BETTER


@helper
def _branch(graph: Graph, tree: Tree, room: Room, depth: int, below_s: float) -> int:
    """List the choices for a node whose bound is below the limit; returns how many there were."""
    node, count = graph.order[depth], len(graph.order)
    found, tried, wanted = 0, 0, -2
    for other in range(count):
        if tree.unit[other] >= 0 and graph.colour[other] == graph.colour[node]:
            wanted = tree.device[tree.unit[other]]
    if wanted < 0 and graph.processor_s[node] < np.inf:
        tried += 1
        found = _try(graph, tree, room, depth, count, found, below_s)
    if wanted == -1 or not graph.accelerator_s[node] < np.inf:
        tree.listed[depth] = found
        return tried
    for d in range(graph.accelerators):
        if wanted < 0 or wanted == d:
            for place in range(tree.length[d]):
                tried += 1
                found = _try(graph, tree, room, depth, tree.row[d, place], found, below_s)
            if tree.length[d] < graph.subgraphs:
                for place in range(tree.length[d] + 1):
                    tried += 1
                    found = _try(graph, tree, room, depth, count + 1 + d * (count + 1) + place, found, below_s)
        # Accelerators are interchangeable: only the first of those without work is taken.
        if tree.length[d] == 0:
            break
    tree.listed[depth] = found
    return tried


@helper
def _try(graph: Graph, tree: Tree, room: Room, depth: int, code: int, found: int, below_s: float) -> int:
    """Put a choice among those found, by its bound, if that is below the limit."""
    node, count = graph.order[depth], len(graph.order)
    _place(node, code, tree, count)
    bound_s = _least(graph, tree, room, depth + 1, below_s)
    _take_back(node, code, tree, count)
    if not bound_s < below_s:
        return found
    k = found
    while k > 0 and tree.bound_s[depth, k - 1] > bound_s:
        tree.bound_s[depth, k], tree.code[depth, k] = tree.bound_s[depth, k - 1], tree.code[depth, k - 1]
        k -= 1
    tree.bound_s[depth, k], tree.code[depth, k] = bound_s, code
    return found + 1


@helper
def _place(node: int, code: int, tree: Tree, count: int) -> None:
    if code < count:
        tree.unit[node] = code
        return
    tree.unit[node] = node
    tree.device[node] = -1
    if code > count:
        d, place = (code - count - 1) // (count + 1), (code - count - 1) % (count + 1)
        tree.device[node] = d
        for k in range(tree.length[d], place, -1):
            tree.row[d, k] = tree.row[d, k - 1]
        tree.row[d, place] = node
        tree.length[d] += 1


@helper
def _take_back(node: int, code: int, tree: Tree, count: int) -> None:
    tree.unit[node] = -1
    if code > count:
        d, place = (code - count - 1) // (count + 1), (code - count - 1) % (count + 1)
        tree.length[d] -= 1
        for k in range(place, tree.length[d]):
            tree.row[d, k] = tree.row[d, k + 1]


@helper
def _least(graph: Graph, tree: Tree, room: Room, placed: int, below_s: float) -> float:
    """The least time of all partitions that have these nodes where they are; infinite where there is none below."""
    if not _loads(graph, tree, room, placed):
        return np.inf
    work_s = 0.0
    for k in range(placed):
        unit = graph.order[k]
        if tree.unit[unit] == unit and tree.device[unit] >= 0:
            work_s += room.load_s[unit]
    least_s = _ends(graph, tree, room, placed)
    # Accelerators do one unit at a time, and some of what is left must be there to be done in time.
    for k in range(placed, len(graph.order)):
        node, start_s = graph.order[k], 0.0
        for i in range(graph.needs_at[node], graph.needs_at[node + 1]):
            start_s = max(start_s, room.node_s[graph.needs[i]])
        end_s = start_s + min(graph.accelerator_s[node], graph.processor_s[node])
        if not start_s + graph.processor_s[node] + graph.after_s[node] < below_s:
            end_s = start_s + graph.accelerator_s[node]
            work_s += graph.accelerator_s[node]
        room.node_s[node] = end_s
        least_s = max(least_s, end_s + graph.after_s[node])
    if not work_s < below_s * graph.accelerators and work_s > 0.0:
        return np.inf
    return least_s


@helper
def _loads(graph: Graph, tree: Tree, room: Room, placed: int) -> bool:
    """Loads of units, with the transfers that are sure; False where an accelerator lacks memory."""
    for d in range(graph.accelerators):
        room.used_bytes[d] = 0.0
    for k in range(placed):
        room.load_s[graph.order[k]] = 0.0
    for k in range(placed):
        node = graph.order[k]
        unit = tree.unit[node]
        d = tree.device[unit]
        if d < 0:
            room.load_s[unit] = graph.processor_s[node]
        else:
            room.load_s[unit] += graph.accelerator_s[node]
            room.used_bytes[d] += graph.memory_bytes[node]
            if room.used_bytes[d] > graph.capacity_bytes * _SLACK:
                return False
        if graph.transfer_s[node] == 0.0:
            continue
        first, last = graph.pins_at[node], graph.pins_at[node + 1]
        for i in range(first, last):
            one = tree.unit[graph.pins[i]]
            if one < 0 or tree.device[one] < 0:
                continue
            known, moves = False, False
            for j in range(first, last):
                other = tree.unit[graph.pins[j]]
                known = known or (j < i and other == one)
                moves = moves or (other >= 0 and other != one)
            if moves and not known:
                room.load_s[one] += graph.transfer_s[node]
    return True


@helper
def _ends(graph: Graph, tree: Tree, room: Room, placed: int) -> float:
    """When units end, and the last of them; infinite where they wait for each other."""
    latest_s, left = 0.0, 0
    for k in range(placed):
        unit = graph.order[k]
        room.ended[unit] = 0
        left += tree.unit[unit] == unit
    while left > 0:
        before = left
        for k in range(placed):
            unit = graph.order[k]
            if tree.unit[unit] != unit or room.ended[unit]:
                continue
            start_s = _start(graph, tree, room, k, placed)
            if start_s < 0.0:
                continue
            room.ended[unit] = 1
            room.end_s[unit] = start_s + room.load_s[unit]
            left -= 1
        if left == before:
            return np.inf
    for k in range(placed):
        node = graph.order[k]
        room.node_s[node] = room.end_s[tree.unit[node]]
        latest_s = max(latest_s, room.node_s[node])
    return latest_s


@helper
def _start(graph: Graph, tree: Tree, room: Room, first: int, placed: int) -> float:
    """When the unit of a place in the order can start; -1 where something that it waits for has not ended."""
    unit, start_s = graph.order[first], 0.0
    d = tree.device[unit]
    if d >= 0:
        for place in range(tree.length[d]):
            earlier = tree.row[d, place]
            if earlier == unit:
                break
            if not room.ended[earlier]:
                return -1.0
            start_s = max(start_s, room.end_s[earlier])
    for k in range(first, placed):
        node = graph.order[k]
        if tree.unit[node] != unit:
            continue
        for i in range(graph.needs_at[node], graph.needs_at[node + 1]):
            other = tree.unit[graph.needs[i]]
            if other != unit:
                if not room.ended[other]:
                    return -1.0
                start_s = max(start_s, room.end_s[other])
    return start_s
