"""Numba kernels: the least times of parts of a graph with a few sets that run as one.

Nodes are numbers in a topological order, sets of nodes are bits. A *part* is what one ideal has and a smaller one has
not: every convex set of nodes is one.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


class Graph(NamedTuple):
    """Nodes in a topological order.

    Parameters
    ----------
    needs_at, needs : (nodes + 1,), (.,)
        Nodes that each needs.
    users_at, users : (nodes + 1,), (.,)
        Nodes that need each.
    needs_of, users_of : (nodes,)
        The same as bits.
    accelerator_s, processor_s, transfer_s : (nodes,)
        Infinite where it cannot run.
    """

    needs_at: Ints
    needs: Ints
    users_at: Ints
    users: Ints
    needs_of: Bits
    users_of: Bits
    accelerator_s: Floats
    processor_s: Floats
    transfer_s: Floats


class Ideals(NamedTuple):
    """Ideals, ascending as numbers, so that the first is empty and the last everything.

    Parameters
    ----------
    bits : (ideals,)
    meet, join : (ideals, ideals)
        Number of what both have, and of what one of them has.
    needed, others : (nodes,)
        Number of what each node needs, directly or not, and of all that does not need it, itself among them.
    """

    bits: Bits
    meet: Ints
    join: Ints
    needed: Ints
    others: Ints


class Sets(NamedTuple):
    """Convex sets that fit into an accelerator.

    Parameters
    ----------
    bits : (sets,)
    needed, through : (sets,)
        Number of the ideal of what a set needs, and of that with the set.
    others, beside : (sets,)
        Number of the ideal of all that does not need it, and of that without the set.
    work_s : (sets,)
        Without transfers.
    """

    bits: Bits
    needed: Ints
    through: Ints
    others: Ints
    beside: Ints
    work_s: Floats


_GRAPH = "record(Graph, i8[::1], i8[::1], i8[::1], i8[::1], u8[::1], u8[::1], f8[::1], f8[::1], f8[::1])"
_IDEALS = "record(Ideals, u8[::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1])"
_SETS = "record(Sets, u8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1])"
_NONE = np.uint64(0)


@helper
def has(bits: int, node: int) -> bool:
    """Whether a node is in a set."""
    return (bits >> np.uint64(node)) & np.uint64(1) != _NONE


@helper
def load_s(graph: Graph, inside: int, part: int, work_s: float) -> float:
    """What a set takes if there is nothing but a part of the graph."""
    total_s = work_s
    for node in range(len(graph.transfer_s)):
        if has(part, node):
            if has(inside, node):
                if graph.users_of[node] & part & ~inside != _NONE:
                    total_s += graph.transfer_s[node]
            elif graph.users_of[node] & inside != _NONE:
                total_s += graph.transfer_s[node]
    return total_s


@helper
def _path_s(graph: Graph, part: int, only_processors: bool, end_s: Floats) -> float:
    """The longest path in a part, with the least time of each node or that on a processor."""
    longest_s = 0.0
    for node in range(len(end_s)):
        if not has(part, node):
            continue
        start_s = 0.0
        for k in range(graph.needs_at[node], graph.needs_at[node + 1]):
            if has(part, graph.needs[k]):
                start_s = max(start_s, end_s[graph.needs[k]])
        own_s = graph.processor_s[node]
        if not only_processors:
            own_s = min(own_s, graph.accelerator_s[node])
        end_s[node] = start_s + own_s
        longest_s = max(longest_s, end_s[node])
    return longest_s


@helper
def _with_one_set_s(graph: Graph, part: int, inside: int, set_s: float, end_s: Floats) -> float:
    """Exactly what a part takes with one set on an accelerator and all else on processors."""
    start_s, longest_s, count = 0.0, 0.0, len(end_s)
    # First what does not need the set: an end below 0 marks what does.
    for after in range(2):
        for node in range(count):
            if not has(part, node) or has(inside, node) or (after and end_s[node] >= 0.0):
                continue
            own_start_s = 0.0
            for k in range(graph.needs_at[node], graph.needs_at[node + 1]):
                other = graph.needs[k]
                if not has(part, other):
                    continue
                other_s = end_s[other]
                if has(inside, other):
                    other_s = start_s + set_s if after else -1.0
                if other_s < 0.0:
                    own_start_s = -1.0
                    break
                own_start_s = max(own_start_s, other_s)
            end_s[node] = -1.0 if own_start_s < 0.0 else own_start_s + graph.processor_s[node]
            longest_s = max(longest_s, end_s[node])
            if not after and graph.users_of[node] & inside != _NONE:
                start_s = max(start_s, end_s[node])
    return max(longest_s, start_s + set_s)


@helper
def _both_s(least_s: npt.NDArray[np.float64], sets: int, low: int, before: int, after: int, high: int) -> float:
    """The least of what is before and what is after, with ``sets`` sets together."""
    found_s = np.inf
    for own in range(sets + 1):
        found_s = min(found_s, least_s[own, low, before] + least_s[sets - own, after, high])
    return found_s


@helper
def _part_s(
    graph: Graph, ideals: Ideals, sets: Sets, low: int, high: int, most: int, least_s: Floats, room: Floats
) -> float:
    """A bound on the time of a part with at most ``most`` sets, from those of smaller parts and of fewer sets."""
    part = ideals.bits[high] & ~ideals.bits[low]
    if part == _NONE:
        return 0.0
    count, end_s, best_s = room.shape[1], room[0], room[1]
    if most == 0:
        return _path_s(graph, part, True, end_s)
    path_s = _path_s(graph, part, False, end_s)
    limit_s = least_s[0, low, high]
    if most > 1:
        # Of each node: on a processor, or in some set.
        limit_s = 0.0
        for node in range(count):
            best_s[node] = -1.0
            if has(part, node):
                before = ideals.needed[node]
                after = ideals.meet[ideals.join[ideals.others[node], low], high]
                own_s = _both_s(least_s, most, ideals.meet[before, low], before, after, high)
                best_s[node] = own_s + graph.processor_s[node]
                limit_s = max(limit_s, best_s[node])
    for place in range(len(sets.bits)):
        inside = sets.bits[place]
        if inside & ~part != _NONE or sets.work_s[place] >= limit_s:
            continue
        if most == 1:
            before, after = sets.needed[place], ideals.meet[ideals.join[sets.others[place], low], high]
            around_s = least_s[0, ideals.meet[before, low], before] + least_s[0, after, high]
            if around_s + sets.work_s[place] < limit_s:
                own_s = load_s(graph, inside, part, sets.work_s[place])
                limit_s = min(limit_s, _with_one_set_s(graph, part, inside, own_s, end_s))
            continue
        most_s = 0.0
        for node in range(count):
            if has(inside, node):
                most_s = max(most_s, best_s[node])
        own_s = _with_set_s(graph, ideals, sets, place, low, high, most, least_s, most_s)
        if own_s < most_s:
            for node in range(count):
                if has(inside, node):
                    best_s[node] = min(best_s[node], own_s)
    if most == 1:
        return limit_s
    for node in range(count):
        path_s = max(path_s, best_s[node])
    return path_s


@helper
def _with_set_s(
    graph: Graph,
    ideals: Ideals,
    sets: Sets,
    place: int,
    low: int,
    high: int,
    most: int,
    least_s: Floats,
    enough_s: float,
) -> float:
    """A bound on the time of a part with a set and fewer than ``most`` others; or any figure from ``enough_s`` on."""
    before = sets.needed[place]
    after = ideals.meet[ideals.join[sets.others[place], low], high]
    both_s = _both_s(least_s, most - 1, ideals.meet[before, low], before, after, high)
    if not both_s + sets.work_s[place] < enough_s:
        return both_s + sets.work_s[place]
    part = ideals.bits[high] & ~ideals.bits[low]
    found_s = both_s + load_s(graph, sets.bits[place], part, sets.work_s[place])
    # What does not need the set, and what it does not need, has the other sets alone.
    beside = ideals.meet[sets.beside[place], high]
    found_s = max(found_s, least_s[most - 1, ideals.meet[low, beside], beside])
    through = ideals.join[sets.through[place], low]
    return max(found_s, least_s[most - 1, ideals.meet[through, high], high])


@kernel(f"({_GRAPH}, {_IDEALS}, {_SETS}, i8[::1], i8[::1], i8, f8[:, :, ::1])")
def fill(graph: Graph, ideals: Ideals, sets: Sets, low: Ints, high: Ints, most: int, least_s: Floats) -> None:
    """Fill ``least_s[sets, smaller, larger ideal]`` for the parts given, which are in ascending size."""
    room = np.zeros((2, len(graph.transfer_s)))
    for k in range(len(low)):
        least_s[most, low[k], high[k]] = _part_s(graph, ideals, sets, low[k], high[k], most, least_s, room)


@kernel(f"({_GRAPH}, {_IDEALS}, {_SETS}, i8, f8[:, :, ::1], f8[::1], f8[::1])")
def with_each(
    graph: Graph, ideals: Ideals, sets: Sets, most: int, least_s: Floats, found_s: Floats, loads_s: Floats
) -> None:
    """For each set a bound on the time of everything with it and fewer than ``most`` others, and what it takes."""
    last = len(ideals.bits) - 1
    for place in range(len(found_s)):
        loads_s[place] = load_s(graph, sets.bits[place], ideals.bits[last], sets.work_s[place])
        found_s[place] = _with_set_s(graph, ideals, sets, place, 0, last, most, least_s, np.inf)
