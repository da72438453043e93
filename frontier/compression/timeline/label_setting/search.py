"""Label setting along a timeline: its messages as arcs, bounds in prices along them, and one pass over its nodes."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.compression.timeline.label_setting.kernels import (
    Arcs,
    Bounds,
    Floats,
    Ints,
    Labels,
    Marks,
    arc_prices,
    cheapest_ways,
    extend,
    front_of_three,
    front_of_two,
    price,
)
from ddlopt.models.compression.timeline.candidate_messages import Messages
from ddlopt.solvers.heuristic import Clock

MOST = 2**23
"""Labels that a pass may keep in all."""
_LEAST_WIDTH = 100
"""Labels of a node that are always kept, also when the time is up."""
# Sums up to eight times the scale fit into the 53 bits of a double: they are exact, in whatever order.
_GRID_BITS = 50
_TESTED = 4
"""Bounds that are looked at before labels are compared."""


class Prices(NamedTuple):
    """A bound in prices: ``lambdas`` (n,) of the times, ``mu`` of the excess, ``credit`` for what is allowed of it.

    It bounds the objective if it is for the ``goal``, and else the time that has a budget.
    """

    lambdas: Floats
    mu: float
    credit: float = 0.0
    goal: bool = True


class Ways(NamedTuple):
    """A timeline as arcs.

    Parameters
    ----------
    arcs : Arcs
    message : (k,) array of int
        Which message each is.
    by_head : (k,) array of int
        The arcs in the order of their heads.
    heads : (n + 2,) array of int
        First of each node's in that order.
    idle : (n + 1,) array
        Earliest start of the next message, less the encoding before it.
    """

    arcs: Arcs
    message: Ints
    by_head: Ints
    heads: Ints
    idle: Floats


class Pass(NamedTuple):
    """What a pass finds.

    Parameters
    ----------
    value : float
        Of the best way, infinite if none is found.
    messages : list of int
        Along it.
    dropped : float
        Least bound of what was dropped for lack of room.
    largest, total : int
        Labels of a node at most, and of all.
    labels, firsts
        The labels, and the first of each node's.
    active : (b,) array of int
        How often each bound mattered.
    """

    value: float
    messages: list[int]
    dropped: float
    largest: int
    total: int
    labels: Labels
    firsts: Ints
    active: Ints


def ways_of(
    ready_s: Floats, messages: Messages, kept: Marks, time_scale: float | None, excess_scale: float | None
) -> Ways:
    """The timeline with the messages ``kept`` (k,).

    With scales (an incumbent's figures, or budgets) on a grid so fine that no sum can tell, on which sums up to a few
    times the scales are exact, and those that are equal compare as equal.
    """
    first, last = messages.first[kept], messages.last[kept]
    arcs = Arcs(
        first,
        last + 1,
        ready=_rounded(ready_s[last], time_scale),
        encode=_rounded(messages.encode_s[kept], time_scale),
        busy=_rounded(messages.occupation_s[kept], time_scale),
        excess=_rounded(messages.excess[kept], excess_scale),
    )
    return _sorted(arcs, np.flatnonzero(kept), len(ready_s) + 1)


def _rounded(figures: Floats, scale: float | None) -> Floats:
    if not scale:
        return figures
    step = 2.0 ** (np.ceil(np.log2(scale)) - _GRID_BITS)
    result: Floats = np.round(figures / step) * step
    return result


def _sorted(arcs: Arcs, message: Ints, nodes: int) -> Ways:
    by_head = np.argsort(arcs.head, kind="stable")
    heads = np.searchsorted(arcs.head[by_head], np.arange(nodes + 1))
    idle = np.full(nodes, np.inf)
    np.minimum.at(idle, arcs.tail, arcs.ready + arcs.encode)
    idle[-1] = -np.inf
    return Ways(arcs, message, by_head, heads, idle)


def bounded(ways: Ways, prices: list[Prices], limit: float, time_limit: float) -> tuple[Ways, Bounds]:
    """The arcs that may lie on a way within the limits, and the bounds along them.

    ``prices``: those of the goal first. ``limit``: of the objective; ``time_limit``: of the time that has a budget.
    """
    nodes = len(ways.idle)
    late = np.array([np.concatenate(([0.0], np.cumsum(each.lambdas))) for each in prices])
    early = late[:, -1:] - late
    limits = np.array([limit if each.goal else time_limit for each in prices])
    rest = np.empty(late.shape)
    for _ in range(2):  # again with what the first time leaves
        arcs = ways.arcs
        kept = np.ones(len(arcs.tail), dtype=np.bool_)
        for place, each in enumerate(prices):
            costs = arc_prices(arcs, late[place], early[place], each.mu)
            there, on = cheapest_ways(arcs, costs, nodes)
            rest[place] = on - each.credit
            kept &= there[arcs.tail] + costs + rest[place, arcs.head] <= limits[place]
        ways = _sorted(Arcs._make(each[kept] for each in arcs), ways.message[kept], nodes)
    return ways, Bounds(late, early, np.array([each.mu for each in prices]), rest, limits)


def run(ways: Ways, bounds: Bounds, goals: int, room: float | None, timed: bool, widest: int, clock: Clock) -> Pass:
    """One pass over the nodes, which keeps the labels of least bounds where there are more than ``widest``.

    Parameters
    ----------
    goals : int
        How many of the bounds, the first, are of the objective.
    room : float or None
        The most excess; None: it does not matter.
    timed : bool
        Whether the time is the objective, and not the excess.
    """
    nodes = len(ways.idle)
    labels, firsts = _start(), np.zeros(nodes + 1, np.int64)
    firsts[1], largest, dropped = 1, 1, np.inf
    active = np.zeros(len(bounds.limit), np.int64)
    most = np.inf if room is None else room
    tested = min(_TESTED, len(active))
    for node in range(1, nodes):
        into = ways.by_head[ways.heads[node] : ways.heads[node + 1]]
        fresh = extend(labels, firsts, ways.arcs, into, node, ways.idle[node], bounds, tested, most)
        if room is None:
            front = front_of_two(fresh.encode, fresh.finish)
        else:
            front = front_of_three(fresh.encode, fresh.finish, fresh.excess)
        front = price(fresh, front, node, bounds, goals, active)
        left = min(widest, max(_LEAST_WIDTH, (MOST - int(firsts[node])) // (nodes - node)))
        left = _LEAST_WIDTH if clock.expired else left
        if len(front) > left:
            order = np.argpartition(fresh.bound[front], left)
            dropped = min(dropped, float(fresh.bound[front[order[left]]]))
            front = front[np.sort(order[:left])]
        firsts[node + 1] = firsts[node] + len(front)
        labels = _with(labels, int(firsts[node]), fresh, front)
        largest = max(largest, len(front))
    last = np.arange(firsts[nodes - 1], firsts[nodes])
    values = (labels.finish if timed else labels.excess)[last]
    if len(last) == 0:
        return Pass(np.inf, [], dropped, largest, int(firsts[nodes]), labels, firsts, active)
    messages = _back(labels, int(last[np.argmin(values)]), ways)
    return Pass(float(values.min()), messages, dropped, largest, int(firsts[nodes]), labels, firsts, active)


def _start() -> Labels:
    """The label of the first node, and room for more."""
    return Labels(*np.zeros((4, 1024)), *np.full((2, 1024), -1, np.int32))


def _with(labels: Labels, end: int, fresh: Labels, front: Ints) -> Labels:
    """``labels`` up to ``end``, and behind them those of the ``front``."""
    wanted = end + len(front)
    if wanted > len(labels.encode):
        size = max(wanted, 2 * len(labels.encode))
        labels = Labels._make(np.concatenate((each[:end], np.empty(size - end, each.dtype))) for each in labels)
    columns: list[npt.NDArray[Any]] = list(labels)
    for place, column in enumerate(columns):
        column[end:wanted] = fresh[place][front]
    return labels


def _back(labels: Labels, label: int, ways: Ways) -> list[int]:
    messages = []
    while label > 0:
        messages.append(int(ways.message[labels.arc[label]]))
        label = int(labels.parent[label])
    return messages[::-1]
