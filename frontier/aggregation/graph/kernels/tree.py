"""Numba kernels for the cheapest aggregation tree of one job; nothing here knows an instance.

A *state* is how many messages of each group have been joined, as one number (mixed radix). A message of a state in a
node has a cost so far.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Tables(NamedTuple):
    """Costs and where they come from; rows are states, columns nodes.

    ``message``: of one message of the state, in the node; ``origin``: the node that it was sent from. ``split``: of a
    message that the node sends and that is made of several, the state of one of these. ``first``: of messages that end
    in the node and make up the state, the same.
    """

    message: Floats
    origin: Ints
    split: Ints
    first: Ints


@kernel("(i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[:, ::1], f8[::1], f8[::1])", nogil=True)
def tables(
    order: Ints,
    part_at: Ints,
    parts: Ints,
    start: Ints,
    own: Ints,
    distance: Floats,
    opening: Floats,
    ending: Floats,
) -> Tables:
    """All costs.

    Parameters
    ----------
    order : (states - 1,) array
        States, those with fewer messages first, without the empty one.
    part_at, parts : arrays
        Of state s, ``parts[part_at[s]:part_at[s + 1]]`` are states that may be one of its messages: those below it that
        have a message of its first group.
    start, own : (states,) arrays
        The node where a state of one message starts, -1 for the others; and the same where that node is the worker
        itself, which adds its own gradient without any message.
    distance : (nodes, nodes) array
    opening, ending : (nodes,) arrays
        Costs of a switch that aggregates (infinite where none can), and of a message that ends in it.
    """
    states, count = len(start), len(distance)
    message = np.full((states, count), np.inf)
    joined = np.full((states, count), np.inf)
    origin = np.full((states, count), -1, dtype=np.int64)
    first = np.full((states, count), -1, dtype=np.int64)
    split = np.full((states, count), -1, dtype=np.int64)
    sent = np.empty(count)
    joined[0] = 0.0
    for s in order:
        sent[:] = np.inf
        if start[s] >= 0:
            sent[start[s]] = 0.0
        for place in range(part_at[s], part_at[s + 1]):
            part = parts[place]
            if part == s:
                continue
            rest = s - part
            for v in range(count):
                cost = (0.0 if own[part] == v else message[part, v] + ending[v]) + joined[rest, v]
                if cost < joined[s, v]:
                    joined[s, v] = cost
                    first[s, v] = part
                if cost + opening[v] < sent[v]:
                    sent[v] = cost + opening[v]
                    split[s, v] = part
        spread(sent, distance, message[s], origin[s])
        for v in range(count):
            each = 0.0 if own[s] == v else message[s, v] + ending[v]
            if each < joined[s, v]:
                joined[s, v] = each
                first[s, v] = s
    return Tables(message, origin, split, first)


@inner()
def spread(sent: Floats, distance: Floats, message: Floats, origin: Ints) -> None:
    """Least costs in all nodes of a message that is sent at these costs, and from where."""
    for u in range(len(sent)):
        if sent[u] < np.inf:
            for v in range(len(sent)):
                cost = sent[u] + distance[u, v]
                if cost < message[v]:
                    message[v] = cost
                    origin[v] = u


@kernel("(i8[::1], i8[::1], i8[::1], f8[::1], i8)", nogil=True)
def delivered(order: Ints, part_at: Ints, parts: Ints, message: Floats, most: int) -> tuple[Floats, Ints]:
    """Least cost of bringing each state to the server in at most ``most`` messages, and the first of these.

    ``message`` are the costs of one message of each state, there; both answers have a row for each number of messages.
    """
    states = len(message)
    cost = np.full((most + 1, states), np.inf)
    first = np.full((most + 1, states), -1, dtype=np.int64)
    cost[:, 0] = 0.0
    for number in range(1, most + 1):
        for s in order:
            for place in range(part_at[s], part_at[s + 1]):
                part = parts[place]
                total = message[part] + cost[number - 1, s - part]
                if total < cost[number, s]:
                    cost[number, s] = total
                    first[number, s] = part
    return cost, first
