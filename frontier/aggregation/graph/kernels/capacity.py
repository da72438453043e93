"""The cheapest aggregation tree of one job where each arc has room for a number of messages that end behind it.

As in ``kernels/tree.py``, but what ends in a node is put together arc by arc, so that a tree with two messages on an
arc that has room for one is none.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.aggregation.graph.kernels.tree import spread
from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Places(NamedTuple):
    """Where messages may end: an arc with room for c messages is c places.

    Parameters
    ----------
    at : (nodes + 1,) array
        The places of node v are ``at[v]`` to ``at[v + 1] - 1``; those of an arc follow each other.
    tail : (places,) array
        Node where the arc begins.
    cost : (places,) array
        Of a message on the arc.
    """

    at: Ints
    tail: Ints
    cost: Floats


class RoomTables(NamedTuple):
    """Costs and where they come from; rows of the first three are states, of the last two places.

    ``message`` and ``origin`` as in :class:`~ddlopt.frontier.aggregation.graph.kernels.tree.Tables`; ``joins``: whether
    a node puts the state together from several messages. ``picked``: the part of the state that takes the place, 0 for
    none; ``whole``: the same if the state is not divided, too.
    """

    message: Floats
    origin: Ints
    joins: npt.NDArray[np.bool_]
    picked: Ints
    whole: Ints


@kernel(
    "(i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[:, ::1], f8[::1], f8[::1], "
    "record(Places, i8[::1], i8[::1], f8[::1]))",
    nogil=True,
)
def room_tables(
    order: Ints,
    part_at: Ints,
    parts: Ints,
    start: Ints,
    home: Ints,
    local: Floats,
    distance: Floats,
    opening: Floats,
    ending: Floats,
    places: Places,
) -> RoomTables:
    """All costs.

    Parameters
    ----------
    order : (states - 1,) array
        States, those with fewer messages first, without the empty one.
    part_at, parts : arrays
        Of state s, ``parts[part_at[s]:part_at[s + 1]]`` are all states below it but the empty one, itself included.
    start : (states,) array
        The node where a state of one message starts, -1 for the others.
    home : (states,) array
        The node where all messages of a state start, -1 if there are several.
    local : (states,) array
        Cost of ending them there.
    distance : (nodes, nodes) array
    opening, ending : (nodes,) arrays
        Costs of a switch that aggregates (infinite where none can), and of a message that ends in it.
    places : Places
    """
    states, count = len(start), len(distance)
    message = np.full((states, count), np.inf)
    origin = np.full((states, count), -1, dtype=np.int64)
    joins = np.zeros((states, count), dtype=np.bool_)
    shape = (len(places.tail), states)
    arriving, joined = np.full(shape, np.inf), np.full(shape, np.inf)
    picked, whole = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    sent, base = np.empty(count), np.empty(states)
    for s in order:
        sent[:] = np.inf
        if start[s] >= 0:
            sent[start[s]] = 0.0
        for v in range(count):
            if opening[v] == np.inf:
                continue
            least = local[s] if home[s] == v else np.inf
            for k in range(places.at[v], places.at[v + 1]):
                if k == places.at[v]:
                    _local(home, local, v, base)
                before = base if k == places.at[v] else joined[k - 1]
                for place in range(part_at[s], part_at[s + 1]):
                    part = parts[place]
                    if part != s and arriving[k, part] + before[s - part] < least:
                        least = arriving[k, part] + before[s - part]
                        picked[k, s] = part
                joined[k, s] = least
            if least + opening[v] < sent[v]:
                sent[v] = least + opening[v]
                joins[s, v] = True
        spread(sent, distance, message[s], origin[s])
        for v in range(count):
            alone = np.inf
            for k in range(places.at[v], places.at[v + 1]):
                arriving[k, s] = message[s, places.tail[k]] + places.cost[k] + ending[v]
                whole[k, s] = picked[k, s]
                if min(alone, arriving[k, s]) < joined[k, s]:
                    whole[k, s] = s if arriving[k, s] < alone else 0
                    alone = min(alone, arriving[k, s])
                    joined[k, s] = alone
    return RoomTables(message, origin, joins, picked, whole)


@inner()
def _local(home: Ints, local: Floats, v: int, base: Floats) -> None:
    """Costs of states without any message from elsewhere."""
    for s in range(len(base)):
        base[s] = local[s] if home[s] == v else np.inf
    base[0] = 0.0
