"""The best order of the wire for options and parts that are given: Carlier's branch and bound."""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.forward.schedule import Sent

_MOST_JOBS = 600
"""Parts beyond which a node takes longer than what it is worth."""


class Order(NamedTuple):
    """An order of the wire's parts, the gradient of each, its time, and a bound on that of every order."""

    time_s: float
    order: tuple[int, ...]
    bound_s: float


class _Served(NamedTuple):
    """Jobs in their order, and of each its end; ``fresh``: the wire was idle before it."""

    order: list[int]
    ends: list[float]
    fresh: list[bool]


def best_order(
    instance: ForwardInstance,
    sent: Sent,
    parts: Sequence[int],
    most: int,
    enough_s: float = 0.0,
    below_s: float = math.inf,
) -> Order | None:
    r"""The order of least time of parts that are sent whole; the wire may wait for one that is about to be ready.

    A part has a head r, when its gradient is encoded, a length p, and a tail q, the forward pass from its gradient on:
    the time is the largest :math:`C + q`, C its end. That is the one-machine problem with heads and tails. A node is
    served by the longest tail of what is there. Of the parts without idling before the one whose :math:`C + q` is the
    time, the last with a smaller tail is c, and those behind it are J: with none the order is the best of the node.
    Else c is either before all of J or after all of it (otherwise the time is no smaller), which makes its tail or its
    head longer. The bound of a node is the time of a wire that may be interrupted.

    Parameters
    ----------
    most : int
        Nodes that are looked at.
    enough_s : float
        A bound on the time: an order that has it ends the search.
    below_s : float
        Of orders no better nothing is wanted.

    Returns
    -------
    Order or None
        None if none is below ``below_s``, or there are too many parts.

    References
    ----------
    J. Carlier, "The one-machine sequencing problem", European Journal of Operational Research 1982.
    """
    gradients = [place for place, cut in enumerate(parts) for _ in range(cut)]
    if len(gradients) > _MOST_JOBS:
        return None
    lengths = [sent.launch_s[each] + sent.payload_s[each] / parts[each] for each in gradients]
    after = instance.tails_s.tolist()
    heads, tails = [sent.encoded_s[each] for each in gradients], [after[each] for each in gradients]
    best, found, count, number = below_s, None, 0, 0
    nodes = [(_interrupted(heads, lengths, tails), number, heads, tails)]
    while nodes and count < most and nodes[0][0] < best:
        bound, _, heads, tails = heapq.heappop(nodes)
        count += 1
        served = _by_tails(heads, lengths, tails)
        # Heads and tails of a node are no less than they were, and so is the time that they give.
        totals = [end + tails[job] for job, end in zip(served.order, served.ends, strict=True)]
        time = max(totals)
        if time < best:
            best, found = time, served.order
            if best <= enough_s:
                break
        last = max(place for place, total in enumerate(totals) if total == time)
        first = max(place for place in range(last + 1) if served.fresh[place])
        shortest = tails[served.order[last]]
        between = [place for place in range(first, last + 1) if tails[served.order[place]] < shortest]
        if not between:
            continue
        moved, behind = served.order[between[-1]], served.order[between[-1] + 1 : last + 1]
        head, sum_, tail = min(heads[each] for each in behind), sum(lengths[each] for each in behind), shortest
        later, longer = list(heads), list(tails)
        later[moved], longer[moved] = max(heads[moved], head + sum_), max(tails[moved], sum_ + tail)
        for child in ((heads, longer), (later, tails)):
            least = max(bound, _interrupted(child[0], lengths, child[1]))
            if least < best:
                number += 1
                heapq.heappush(nodes, (least, number, *child))
    if found is None:
        return None
    return Order(best, tuple(gradients[job] for job in found), min([best, *(node[0] for node in nodes[:1])]))


def _by_tails(heads: Sequence[float], lengths: Sequence[float], tails: Sequence[float]) -> _Served:
    """Whenever the wire is free it sends what is there and has the longest tail."""
    coming = sorted(range(len(heads)), key=heads.__getitem__)
    place, wire = 0, 0.0
    waiting: list[tuple[float, int]] = []
    found = _Served([], [], [])
    while waiting or place < len(coming):
        idle = not waiting and heads[coming[place]] > wire
        if idle:
            wire = heads[coming[place]]
        while place < len(coming) and heads[coming[place]] <= wire:
            heapq.heappush(waiting, (-tails[coming[place]], coming[place]))
            place += 1
        _, job = heapq.heappop(waiting)
        wire += lengths[job]
        found.order.append(job)
        found.ends.append(wire)
        found.fresh.append(idle or len(found.order) == 1)
    return found


def _interrupted(heads: Sequence[float], lengths: Sequence[float], tails: Sequence[float]) -> float:
    """The time if whatever is sent gives way to a longer tail."""
    coming = sorted(range(len(heads)), key=heads.__getitem__)
    left, waiting = list(lengths), list[tuple[float, int]]()
    place, wire, time = 0, 0.0, 0.0
    while waiting or place < len(coming):
        if not waiting:
            wire = max(wire, heads[coming[place]])
        while place < len(coming) and heads[coming[place]] <= wire:
            heapq.heappush(waiting, (-tails[coming[place]], coming[place]))
            place += 1
        _, job = waiting[0]
        until = heads[coming[place]] if place < len(coming) else math.inf
        if wire + left[job] <= until:
            wire += left[job]
            heapq.heappop(waiting)
            time = max(time, wire + tails[job])
        else:
            left[job] -= until - wire
            wire = until
    return time
