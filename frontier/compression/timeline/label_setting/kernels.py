"""Numba kernels of label setting: prices along messages, extension of labels, and what dominates what.

Nodes 0 .. n count the gradients that are sent; a message is an arc from the gradients before it to those after it. A
*bound* in prices stands, at every node, for what an end reached from a label is at least:
``late * F + early * D + price * X + rest``.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.compression.timeline.label_setting.quick_order import quick_order
from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import stable_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Marks = npt.NDArray[np.bool_]

_ARCS = "record(Arcs, i8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])"
_BOUNDS = "record(Bounds, f8[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1])"
_LABELS = "record(Labels, f8[::1], f8[::1], f8[::1], f8[::1], i4[::1], i4[::1])"


class Arcs(NamedTuple):
    """Messages, by tail: ``tail``, ``head`` (k,) nodes; ``ready``, ``encode``, ``busy``, ``excess`` (k,) figures."""

    tail: Ints
    head: Ints
    ready: Floats
    encode: Floats
    busy: Floats
    excess: Floats


class Bounds(NamedTuple):
    """Bounds in prices: ``late``, ``early``, ``rest`` (b, n + 1), ``price`` (b,), and their ``limit`` (b,).

    A label of which one bound exceeds its limit cannot end well.
    """

    late: Floats
    early: Floats
    price: Floats
    rest: Floats
    limit: Floats


class Labels(NamedTuple):
    """Labels of all nodes, one node after the other.

    ``encode`` (D), ``finish`` (F), ``excess`` (X), ``bound``: (k,) figures; ``parent``, ``arc``: (k,) where they come
    from.
    """

    encode: Floats
    finish: Floats
    excess: Floats
    bound: Floats
    parent: Places
    arc: Places


@kernel(f"({_ARCS}, f8[::1], f8[::1], f8)")
def arc_prices(arcs: Arcs, late: Floats, early: Floats, price: float) -> Floats:
    """(k,) what each message costs at the prices of one bound."""
    costs = np.empty(len(arcs.tail))
    for arc in range(len(costs)):
        tail, head = arcs.tail[arc], arcs.head[arc]
        costs[arc] = (
            (late[head] - late[tail]) * arcs.ready[arc]
            + early[tail] * arcs.encode[arc]
            + late[head] * arcs.busy[arc]
            + price * arcs.excess[arc]
        )
    return costs


@kernel(f"({_ARCS}, f8[::1], i8)")
def cheapest_ways(arcs: Arcs, costs: Floats, nodes: int) -> tuple[Floats, Floats]:
    """(nodes,) cost of the cheapest way from the first node to each, and from each to the last."""
    there, on = np.full(nodes, np.inf), np.full(nodes, np.inf)
    there[0], on[nodes - 1] = 0.0, 0.0
    for arc in range(len(costs)):
        there[arcs.head[arc]] = min(there[arcs.head[arc]], there[arcs.tail[arc]] + costs[arc])
    for arc in range(len(costs) - 1, -1, -1):
        on[arcs.tail[arc]] = min(on[arcs.tail[arc]], costs[arc] + on[arcs.head[arc]])
    return there, on


@kernel(f"({_LABELS}, i8[::1], {_ARCS}, i8[::1], i8, f8, {_BOUNDS}, i8, f8)")
def extend(
    labels: Labels,
    firsts: Ints,
    arcs: Arcs,
    into: Ints,
    node: int,
    idle: float,
    bounds: Bounds,
    tested: int,
    room: float,
) -> Labels:
    """The labels of the tails of a node's arcs ``into``, extended, less those that the first bounds show to end badly.

    Parameters
    ----------
    firsts : (n + 2,) array
        Of each node's labels.
    idle : float
        The next message is ready no earlier than this and the encoding; so the wire may as well be free only then.
    tested : int
        How many of the bounds are looked at; the label's is the first.
    room : float
        The most excess.
    """
    most = 0
    for arc in into:
        most += firsts[arcs.tail[arc] + 1] - firsts[arcs.tail[arc]]
    encodes, finishes, excesses, ends = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    parents, origins = np.empty(most, np.int32), np.empty(most, np.int32)
    late, early, rest = bounds.late, bounds.early, bounds.rest
    count = 0
    for arc in into:
        tail = arcs.tail[arc]
        for label in range(firsts[tail], firsts[tail + 1]):
            excess = labels.excess[label] + arcs.excess[arc]
            if excess > room:
                continue
            encode = labels.encode[label] + arcs.encode[arc]
            finish = max(max(labels.finish[label], arcs.ready[arc] + encode) + arcs.busy[arc], idle + encode)
            good = True
            for which in range(tested):
                end = late[which, node] * finish + early[which, node] * encode + bounds.price[which] * excess
                end += rest[which, node]
                if end > bounds.limit[which]:
                    good = False
                    break
                if which == 0:
                    ends[count] = end
            if good:
                encodes[count], finishes[count], excesses[count] = encode, finish, excess
                parents[count], origins[count] = label, arc
                count += 1
    return Labels(encodes[:count], finishes[:count], excesses[:count], ends[:count], parents[:count], origins[:count])


@kernel(f"({_LABELS}, i8[::1], i8, {_BOUNDS}, i8, i8[::1])")
def price(fresh: Labels, front: Ints, node: int, bounds: Bounds, goals: int, active: Ints) -> Ints:
    """Those of a front that no bound shows to end badly; their ``bound`` becomes the largest of the first ``goals``.

    ``active`` counts for each bound how often it was the largest or excluded a label.
    """
    late, early, rest = bounds.late, bounds.early, bounds.rest
    kept = np.empty(len(front), np.int64)
    count = 0
    for label in front:
        encode, finish, excess = fresh.encode[label], fresh.finish[label], fresh.excess[label]
        least, largest = -np.inf, -1
        good = True
        for which in range(len(bounds.limit)):
            end = late[which, node] * finish + early[which, node] * encode + bounds.price[which] * excess
            end += rest[which, node]
            if end > bounds.limit[which]:
                good, largest = False, which
                break
            if which < goals and end > least:
                least, largest = end, which
        active[largest] += 1
        if good:
            fresh.bound[label] = least
            kept[count] = label
            count += 1
    return kept[:count].copy()


@kernel("(f8[::1], f8[::1])")
def front_of_two(encode: Floats, finish: Floats) -> Ints:
    """Places of labels that no other dominates in encoding and finish, of equals one, by encoding."""
    order = quick_order(encode)
    kept = np.empty(len(order), np.int64)
    count = 0
    for place in order:
        if count == 0 or finish[place] < finish[kept[count - 1]]:
            if count > 0 and encode[place] == encode[kept[count - 1]]:
                count -= 1
            kept[count] = place
            count += 1
    return kept[:count].copy()


@inner()
def _sorted_by(values: Floats, order: Ints) -> Ints:
    """Places of values, the least first, those of equal ones as they stand in ``order``."""
    keys, places = np.empty(len(order)), np.empty(len(order), np.int64)
    for k in range(len(order)):
        keys[k] = values[order[k]]
    ranks = stable_order(keys)
    for k in range(len(order)):
        places[k] = order[ranks[k]]
    return places


@kernel("(f8[::1], f8[::1], f8[::1])")
def front_of_three(encode: Floats, finish: Floats, excess: Floats) -> Ints:
    """The same with the excess: a sweep by encoding, with the least excess up to each finish in an indexed tree."""
    size = len(encode)
    order = _sorted_by(finish, quick_order(excess))
    rank = np.empty(size, np.int64)
    level = 0
    for place in range(size):
        if place == 0 or finish[order[place]] > finish[order[place - 1]]:
            level += 1
        rank[order[place]] = level
    order = _sorted_by(encode, order)
    least = np.full(level + 1, np.inf)
    kept = np.empty(size, np.int64)
    count = 0
    for place in order:
        below, at = np.inf, rank[place]
        while at > 0:
            below = min(below, least[at])
            at -= at & -at
        if below <= excess[place]:
            continue
        kept[count] = place
        count += 1
        at = rank[place]
        while at <= level:
            least[at] = min(least[at], excess[place])
            at += at & -at
    return kept[:count].copy()
