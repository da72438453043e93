"""Numba kernels of the checker: when replicas end at least, with some groups decided, first come, first served.

Resources take tasks in the order in which they become ready, which the simulator's rules fix, and part of that order
is known whatever the groups are that are not decided:

* *Links between device groups.* Transfers of an output wait for the replica that makes it and nothing else, so that the
  link takes them all when it ends, in the order of their readers. A replica that waits for it, directly or through
  others, ends later, and what it sends over the same link comes after all of that.
* *Arrivals.* What comes to one replica over one link comes one after the other.

Transfers of a tensor between the same devices, of the same part in size, count once: they may be the same.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.certificates.deployment.plan.tables import Ints, Tables
from ddlopt.models.kernels import leaf

NEVER = np.iinfo(np.int64).max


class Flow(NamedTuple):
    """Where these kernels calculate.

    Parameters
    ----------
    end, first : (operators, devices), (operators,)
        Of replicas of decided operators: when they end at least; when the first replica of any operator ends at least.
    start : (devices,)
    known, until, free : (operators, devices, links)
        When a link has done at least what it took before a replica ends, with what the replica sends, and what is
        before that which it sends to readers.
    always : (operators, links)
        The least ``until`` of all replicas, decided or not.
    transfers, transfer : (tensors,), (tensors, transfers, 3)
        Of each the holder, the device that it goes to, and the way.
    taken : (tensors, transfers)
        When the link comes to it; -1 before that is known.
    queue, done : (arrivals, 4), (devices, resources)
        Arrivals at a replica by when they can start: replica, link, start and length; when the link is done, 0 between
        calls.
    """

    end: Ints
    first: Ints
    start: Ints
    known: Ints
    until: Ints
    free: Ints
    always: Ints
    transfers: Ints
    transfer: Ints
    taken: Ints
    queue: Ints
    done: Ints


FLOW = (
    "record(Flow, i8[:, ::1], i8[::1], i8[::1], i8[:, :, ::1], i8[:, :, ::1], i8[:, :, ::1], i8[:, ::1], i8[::1],"
    " i8[:, :, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1])"
)


def flow_for(tables: Tables, resources: int) -> Flow:
    """Empty."""
    operators, devices, tensors = len(tables.order), len(tables.memory), len(tables.producer)
    entries = int(np.diff(tables.pair_at).max())
    transfers = entries * int(np.diff(tables.readers_at).max(initial=1))
    arrivals = entries * int(np.diff(tables.inputs_at).max())
    links, each = tables.links[0], (operators, devices)
    shapes: tuple[tuple[int, ...], ...] = (
        each, (operators,), (devices,), (*each, links), (*each, links), (*each, links), (operators, links),
        (tensors,), (tensors, transfers, 3), (tensors, transfers), (arrivals, 4), (devices, resources),
    )  # fmt: skip
    return Flow(*(np.zeros(shape, np.int64) for shape in shapes))


@leaf
def ends(tables: Tables, flow: Flow, chosen: Ints) -> int:
    """When everything has ended at least, with what the channel does after it."""
    last = 0
    for place in tables.order:
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            first, every, at = NEVER, 0, tables.seat_at[seat]
            _arrive(tables, flow, chosen, place, seat, True)
            for x in range(tables.seat_at[seat + 1] - at):
                end = flow.start[x] + tables.time[place, tables.work[at + x]]
                flow.end[place, x] = end
                first, every = min(first, end), max(every, end)
            flow.first[place] = first
            last = max(last, every + tables.reduce[place, choice])
            _send(tables, flow, chosen, place, choice)
            continue
        first, ended = NEVER, NEVER
        for i in range(tables.seats_at[place], tables.seats_at[place + 1]):
            seat = tables.seats[i]
            _arrive(tables, flow, chosen, place, seat, False)
            every, at = 0, tables.seat_at[seat]
            for x in range(tables.seat_at[seat + 1] - at):
                end = flow.start[x] + tables.time[place, tables.work[at + x]]
                first, every = min(first, end), max(every, end)
            ended = min(ended, every)
        flow.first[place] = first
        last = max(last, ended)
        for r in range(tables.links[0]):
            flow.always[place, r] = 0
        for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
            for r in range(tables.links[0]):
                known = flow.always[tables.producer[tables.inputs[i]], r]
                flow.always[place, r] = max(flow.always[place, r], known)
    return last


@leaf
def _arrive(tables: Tables, flow: Flow, chosen: Ints, place: int, seat: int, decided: bool) -> None:
    """When the replicas of an operator in a seat can start, into ``flow.start``."""
    at, links, seats = tables.seat_at[seat], tables.links[0], len(tables.seat_at) - 1
    size, devices, queued = tables.seat_at[seat + 1] - at, len(tables.memory), 0
    for x in range(size):
        flow.start[x] = 0
        for r in range(links):
            flow.known[place, x, r] = 0
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        tensor = tables.inputs[i]
        producer = tables.producer[tensor]
        choice = chosen[tables.group[producer]]
        if choice < 0:
            for x in range(size):
                flow.start[x] = max(flow.start[x], flow.first[producer])
                for r in range(links):
                    flow.known[place, x, r] = max(flow.known[place, x, r], flow.always[producer, r])
            continue
        pair = tables.seat[producer, choice] * seats + seat
        for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
            k, x, link = tables.taken_from[e], tables.taken_by[e], tables.link[e]
            if decided:
                for r in range(links):
                    flow.known[place, x, r] = max(flow.known[place, x, r], flow.until[producer, k, r])
            there, length = flow.end[producer, k], tables.sent[tensor, tables.way[e]]
            if length == 0:
                flow.start[x] = max(flow.start[x], there)
                continue
            if 0 <= link - devices < links:
                there = flow.free[producer, k, link - devices]
                if decided:
                    there = flow.taken[tensor, transfer(tables, flow, tensor, k, tables.device[at + x], tables.way[e])]
            _queue(flow, queued, x, link, there, length)
            queued += 1
    for q in range(queued):
        x, r = flow.queue[q, 0], flow.queue[q, 1]
        flow.done[x, r] = max(flow.done[x, r], flow.queue[q, 2]) + flow.queue[q, 3]
        flow.start[x] = max(flow.start[x], flow.done[x, r])
    for q in range(queued):
        flow.done[flow.queue[q, 0], flow.queue[q, 1]] = 0


@leaf
def _queue(flow: Flow, queued: int, x: int, r: int, head: int, length: int) -> None:
    """One more arrival, in the order of when they can start."""
    q = queued
    while q > 0 and flow.queue[q - 1, 2] > head:
        for field in range(4):
            flow.queue[q, field] = flow.queue[q - 1, field]
        q -= 1
    flow.queue[q, 0], flow.queue[q, 1], flow.queue[q, 2], flow.queue[q, 3] = x, r, head, length


@leaf
def transfer(tables: Tables, flow: Flow, tensor: int, k: int, device: int, way: int) -> int:
    """Number of a transfer of a tensor; a new one, that no link has taken yet, if it is not known."""
    count = flow.transfers[tensor]
    for number in range(count):
        known = flow.transfer[tensor, number]
        if known[0] == k and known[1] == device and known[2] == way:
            return number
    flow.transfer[tensor, count, 0], flow.transfer[tensor, count, 1], flow.transfer[tensor, count, 2] = k, device, way
    flow.taken[tensor, count] = -1
    flow.transfers[tensor] = count + 1
    return count


@leaf
def _send(tables: Tables, flow: Flow, chosen: Ints, place: int, choice: int) -> None:
    """When links between device groups come to what the replicas of an operator send."""
    seat, links, devices, seats = (
        tables.seat[place, choice],
        tables.links[0],
        len(tables.memory),
        len(tables.seat_at) - 1,
    )
    at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
    for k in range(count):
        for r in range(links):
            flow.until[place, k, r] = flow.known[place, k, r]
            flow.free[place, k, r] = max(flow.end[place, k], flow.known[place, k, r])
    if tables.server[place, choice]:
        target = tables.device[at + place % count]
        for k in range(count):
            d = tables.device[at + k]
            r = tables.link_of[d, target] - devices
            if 0 <= r < links:
                flow.free[place, k, r] += tables.gradient[place, tables.rate_of[d, target]]
                flow.until[place, k, r] = flow.free[place, k, r]
    for o in range(tables.outputs_at[place], tables.outputs_at[place + 1]):
        flow.transfers[tables.outputs[o]] = 0
    for j in range(tables.readers_of_at[place], tables.readers_of_at[place + 1]):
        reader = tables.readers_of[j]
        other = chosen[tables.group[reader]]
        if other < 0:
            continue
        b = tables.seat[reader, other]
        pair, target = seat * seats + b, tables.seat_at[b]
        for x in range(tables.seat_at[b + 1] - target):
            for i in range(tables.inputs_at[reader], tables.inputs_at[reader + 1]):
                tensor = tables.inputs[i]
                if tables.producer[tensor] != place:
                    continue
                for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
                    r, length = tables.link[e] - devices, tables.sent[tensor, tables.way[e]]
                    if tables.taken_by[e] != x or length == 0 or not 0 <= r < links:
                        continue
                    k = tables.taken_from[e]
                    number = transfer(tables, flow, tensor, k, tables.device[target + x], tables.way[e])
                    if flow.taken[tensor, number] < 0:
                        taken = max(flow.free[place, k, r], flow.until[place, k, r])
                        flow.until[place, k, r] = taken + length
                        # One that is not decided may have asked for the same before others did.
                        for q in range(tables.readers_at[tensor], tables.readers_at[tensor + 1]):
                            if chosen[tables.group[tables.readers[q]]] < 0:
                                taken = flow.free[place, k, r]
                        flow.taken[tensor, number] = taken
    for r in range(links):
        flow.always[place, r] = NEVER
        for k in range(count):
            flow.always[place, r] = min(flow.always[place, r], flow.until[place, k, r])
