"""Numba kernels of the branch and bound over sets that run as one: a node is on a processor, or in some set."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.partition.latency_sets.kernels import _GRAPH, Bits, Floats, Graph, Ints, has
from ddlopt.models.kernels import helper, kernel

Small = npt.NDArray[np.int32]

DONE, BETTER, PAUSED = range(3)
"""Why the search returns: all is searched, it has a better partition, or it has looked at as many as it was to."""
_NONE = np.uint64(0)


class Offers(NamedTuple):
    """Sets that a partition may have, the most promising first.

    Parameters
    ----------
    bits, before : (sets,)
        Nodes of each, and all that these need.
    load_s, least_s : (sets,)
        What each takes, and a bound on the latency with it.
    """

    bits: Bits
    before: Bits
    load_s: Floats
    least_s: Floats


class Tree(NamedTuple):
    """Where the search is.

    Parameters
    ----------
    at : (1,)
        How many decisions are made.
    node : (depths,)
        The one that is decided at each depth; -1 before it is chosen.
    listed, next : (depths,)
        How many sets may be taken, and which comes next: after all of them the processor.
    offered : (depths, sets)
        Which they are.
    slot : (nodes,)
        The set that each node is in, by the order in which sets were taken; -1 for those that are free, -2 for a
        processor.
    taken : (accelerators,)
        Sets taken.
    used : (1,)
        How many these are.
    """

    at: Ints
    node: Ints
    listed: Ints
    next: Ints
    offered: Small
    slot: Ints
    taken: Ints
    used: Ints


class Room(NamedTuple):
    """What bounds are calculated in: by node the time from the start, and to the end; by set the same."""

    start_s: Floats
    rest_s: Floats
    set_start_s: Floats
    set_rest_s: Floats
    weight_s: Floats
    counted: Ints


_OFFERS = "record(Offers, u8[::1], u8[::1], f8[::1], f8[::1])"
_TREE = "record(Tree, i8[::1], i8[::1], i8[::1], i8[::1], i4[:, ::1], i8[::1], i8[::1], i8[::1])"
_ROOM = "record(Room, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1])"


@kernel(f"i8({_GRAPH}, {_OFFERS}, {_TREE}, {_ROOM}, f8, i8)")
def search(graph: Graph, offers: Offers, tree: Tree, room: Room, below_s: float, looks: int) -> int:
    """Go on in depth first order for about ``looks`` partial partitions, or to one that takes less than ``below_s``.

    One that is found is what ``tree.slot`` says, with free nodes on processors.
    """
    while True:
        depth = tree.at[0]
        if tree.node[depth] == -1:
            if looks <= 0:
                return PAUSED
            looks -= 1
            code = _branch(graph, offers, tree, room, depth, below_s)
            if code == BETTER:
                return BETTER
        if _move(offers, tree, depth, below_s):
            continue
        tree.node[depth] = -1
        if depth == 0:
            return DONE
        tree.at[0] = depth - 1
        _take_back(tree, depth - 1)


@helper
def _move(offers: Offers, tree: Tree, depth: int, below_s: float) -> bool:
    """The next choice of a depth; False if there is none."""
    node, place = tree.node[depth], tree.next[depth]
    if node < 0 or place > tree.listed[depth]:
        return False
    tree.next[depth] = place + 1
    if place < tree.listed[depth]:
        chosen = tree.offered[depth, place]
        if not offers.least_s[chosen] < below_s:
            # The others are not better; the processor is left.
            tree.next[depth] = tree.listed[depth]
            return _move_to_processor(tree, depth)
        for other in range(len(tree.slot)):
            if has(offers.bits[chosen], other):
                tree.slot[other] = tree.used[0]
        tree.taken[tree.used[0]] = chosen
        tree.used[0] += 1
        tree.at[0] = depth + 1
        return True
    tree.next[depth] = place
    return _move_to_processor(tree, depth)


@helper
def _move_to_processor(tree: Tree, depth: int) -> bool:
    tree.next[depth] = tree.listed[depth] + 1
    tree.slot[tree.node[depth]] = -2
    tree.at[0] = depth + 1
    return True


@helper
def _take_back(tree: Tree, depth: int) -> None:
    node = tree.node[depth]
    if tree.slot[node] == -2:
        tree.slot[node] = -1
        return
    tree.used[0] -= 1
    for other in range(len(tree.slot)):
        if tree.slot[other] == tree.used[0]:
            tree.slot[other] = -1


@helper
def _branch(graph: Graph, offers: Offers, tree: Tree, room: Room, depth: int, below_s: float) -> int:
    """Choose the node that is decided next, and list the sets for it.

    -2 for a node stands for a partial partition that leads to nothing better, or that is a whole one.
    """
    count, left = len(tree.slot), len(tree.taken) - tree.used[0]
    tree.node[depth], tree.next[depth], tree.listed[depth] = -2, 0, 0
    if _wait_for_themselves(offers, tree):
        return PAUSED
    free = _NONE
    for node in range(count):
        if tree.slot[node] == -1:
            free |= np.uint64(1) << np.uint64(node)
        room.weight_s[node] = graph.processor_s[node]
    # All that is free on processors: a partition.
    code = BETTER if _starts(graph, offers, tree, room) < below_s else PAUSED
    if left == 0 or free == _NONE:
        return code
    for node in range(count):
        if has(free, node):
            room.weight_s[node] = min(graph.accelerator_s[node], graph.processor_s[node])
    if not _starts(graph, offers, tree, room) < below_s:
        return code
    _rests(graph, offers, tree, room)
    forced = _NONE
    for node in range(count):
        if has(free, node):
            own_s = room.start_s[node] + graph.processor_s[node] + room.rest_s[node]
            if not own_s < below_s:
                forced |= np.uint64(1) << np.uint64(node)
    listed = _list(offers, tree, room, depth, free, forced if left == 1 else _NONE, below_s)
    chosen, fewest = -1, 0
    for node in range(count):
        if not has(free, node) or not graph.accelerator_s[node] < np.inf:
            if has(forced, node):
                return code
            continue
        own = room.counted[node] + (0 if has(forced, node) else count)
        if chosen < 0 or own < fewest:
            chosen, fewest = node, own
    if chosen < 0:
        return code
    kept = 0
    for k in range(listed):
        if has(offers.bits[tree.offered[depth, k]], chosen):
            tree.offered[depth, kept] = tree.offered[depth, k]
            kept += 1
    tree.node[depth], tree.listed[depth] = chosen, kept
    return code


@helper
def _list(offers: Offers, tree: Tree, room: Room, depth: int, free: int, wanted: int, below_s: float) -> int:
    """List the sets of free nodes that have what is wanted, and count for each node those with it."""
    room.counted[:] = 0
    found = 0
    for place in range(len(offers.bits)):
        if not offers.least_s[place] < below_s:
            break
        bits = offers.bits[place]
        if bits & ~free != _NONE or wanted & ~bits != _NONE:
            continue
        tree.offered[depth, found] = place
        found += 1
        for node in range(len(tree.slot)):
            room.counted[node] += has(bits, node)
    return found


@helper
def _wait_for_themselves(offers: Offers, tree: Tree) -> bool:
    """Whether sets need each other in a circle."""
    used = tree.used[0]
    for one in range(used):
        # What the set needs, with all that other sets among it need.
        needs, before = offers.before[tree.taken[one]], _NONE
        while needs != before:
            before = needs
            for other in range(used):
                if other != one and needs & offers.bits[tree.taken[other]] != _NONE:
                    needs |= offers.before[tree.taken[other]] | offers.bits[tree.taken[other]]
        if needs & offers.bits[tree.taken[one]] != _NONE:
            return True
    return False


@helper
def _starts(graph: Graph, offers: Offers, tree: Tree, room: Room) -> float:
    """When nodes and sets can start at least, and the end of the last of them."""
    room.set_start_s[:] = 0.0
    while True:
        changed, last_s = False, 0.0
        for node in range(len(tree.slot)):
            own, start_s = tree.slot[node], 0.0
            for k in range(graph.needs_at[node], graph.needs_at[node + 1]):
                other = graph.needs[k]
                slot = tree.slot[other]
                if slot < 0:
                    start_s = max(start_s, room.start_s[other] + room.weight_s[other])
                elif slot != own:
                    start_s = max(start_s, room.set_start_s[slot] + offers.load_s[tree.taken[slot]])
            if own >= 0:
                if start_s > room.set_start_s[own]:
                    room.set_start_s[own], changed = start_s, True
                last_s = max(last_s, room.set_start_s[own] + offers.load_s[tree.taken[own]])
            else:
                room.start_s[node] = start_s
                last_s = max(last_s, start_s + room.weight_s[node])
        if not changed:
            return last_s


@helper
def _rests(graph: Graph, offers: Offers, tree: Tree, room: Room) -> None:
    """What comes at least after nodes and sets."""
    room.set_rest_s[:] = 0.0
    changed = True
    while changed:
        changed = False
        for node in range(len(tree.slot) - 1, -1, -1):
            own, rest_s = tree.slot[node], 0.0
            for k in range(graph.users_at[node], graph.users_at[node + 1]):
                other = graph.users[k]
                slot = tree.slot[other]
                if slot < 0:
                    rest_s = max(rest_s, room.rest_s[other] + room.weight_s[other])
                elif slot != own:
                    rest_s = max(rest_s, room.set_rest_s[slot] + offers.load_s[tree.taken[slot]])
            if own < 0:
                room.rest_s[node] = rest_s
            elif rest_s > room.set_rest_s[own]:
                room.set_rest_s[own], changed = rest_s, True
