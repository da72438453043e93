"""Numba kernels of the checker: all plans in whole numbers, without those whose bound is not below the claim.

With some groups decided, a step takes at least the following. Times are rounded down; all that is added up is below
2^63 (:mod:`~ddlopt.certificates.deployment.plan.tables`).

* *Paths.* A replica of a decided operator starts after the ends of what it takes, and of the transfers. An operator
  that is not decided has one of its seats: none of its replicas ends before the least end in any, and all of them end
  no earlier than the last replica does in the seat where that is soonest. Who reads from it waits for some replica.
  What the order of work says besides is in :mod:`~ddlopt.certificates.deployment.plan.ends`.
* *One task at a time.* Take jobs of a resource that cannot start before r and have at least q after them in a step:
  it takes r, their sum and q. Resources are devices, links, and the channel. What a link carries of a tensor is one
  job. Gradients go to a server over each link one after the other, and the sum goes back when all are there.
* *Work.* Devices together compute for no more than their number times the step; a group that is not decided adds the
  least of its choices.

*Tails.* A replica that has a part of the batch that no other has is waited for by a replica of every reader: that which
has a sample of the part; and so on, from reader to reader, whatever their seats, so that the longest path of least
times comes after it. Where all replicas have the whole batch, only readers whose seat is known count.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.certificates.deployment.plan.ends import FLOW, Flow, ends, flow_for, transfer
from ddlopt.certificates.deployment.plan.tables import GOAL, Ints, Tables
from ddlopt.models.kernels import kernel, leaf

DONE, FULL, PAUSED = range(3)
"""Why the search returns: all is searched, no room for more plans, or it has looked at as many as it was to."""


class Room(NamedTuple):
    """Where the kernels calculate.

    Parameters
    ----------
    flow : Flow
    after : (operators, devices)
        What comes at least after replicas of decided operators.
    held : (devices,)
        Bytes.
    last : (tensors, transfers)
        What comes after a transfer at least.
    head, length, tail : (resources, jobs)
        When jobs can start, how long they take, what comes after; those that start last come first.
    jobs : (resources,)
    earliest, sum, least : (resources,)
        Of one tensor, by link: when its first transfer can start, all transfers, and what comes after any at least;
        the sum is 0 between calls.
    """

    flow: Flow
    after: Ints
    held: Ints
    last: Ints
    head: Ints
    length: Ints
    tail: Ints
    jobs: Ints
    earliest: Ints
    sum: Ints
    least: Ints


_TABLES = (
    "record(Tables, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1],"
    " i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1],"
    " i8[:, ::1],"
    " i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1],"
    " i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"
)
_ROOM = (
    f"record(Room, {FLOW}, i8[:, ::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1],"
    " i8[::1], i8[::1])"
)


def room_for(tables: Tables) -> Room:
    """Empty."""
    operators, devices = len(tables.order), len(tables.memory)
    resources = 1 + max(devices, int(tables.link_of.max(initial=0)) + 1)
    many = (resources, 2 * operators + len(tables.producer))
    flow = flow_for(tables, resources)
    shapes = (operators, devices), devices, flow.taken.shape, many, many, many, *(resources,) * 4
    return Room(flow, *(np.zeros(shape, np.int64) for shape in shapes))


@kernel(f"i8({_TABLES}, {_ROOM}, i8[::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1])")
def search(
    tables: Tables, room: Room, line: Ints, chosen: Ints, following: Ints, at: Ints, found: Ints, used: Ints
) -> int:
    """Go on in depth first order until there are enough plans whose bound is below the claim.

    Groups are decided in the order of ``line``; ``chosen`` has the choices, -1 where there is none, ``following`` the
    next one to try at each depth, and ``at`` the depth. Plans are put into the rows of ``found``; ``used`` has how many
    rows are, and how many partial plans may yet be looked at.
    """
    groups = len(line)
    while True:
        depth = at[0]
        group, choice = line[depth], following[depth]
        if choice == tables.choices[group]:
            chosen[group] = -1
            if depth == 0:
                return DONE
            at[0] = depth - 1
            continue
        if used[1] <= 0:
            return PAUSED
        if depth + 1 == groups and used[0] == len(found):
            return FULL
        following[depth] = choice + 1
        chosen[group] = choice
        used[1] -= 1
        if _bound(tables, room, chosen) >= GOAL:
            continue
        if depth + 1 < groups:
            at[0] = depth + 1
            following[depth + 1] = 0
            continue
        for g in range(groups):
            found[used[0], g] = chosen[g]
        used[0] += 1


@kernel(f"i8({_TABLES}, {_ROOM}, i8[::1])")
def bound(tables: Tables, room: Room, chosen: Ints) -> int:
    """Time of every plan that has these choices, at least; -1 stands for any. The claim or more where it is that."""
    return _bound(tables, room, chosen)


@leaf
def _bound(tables: Tables, room: Room, chosen: Ints) -> int:
    if not _fits(tables, room, chosen):
        return GOAL
    found = ends(tables, room.flow, chosen)
    if found >= GOAL:
        return found
    _tails(tables, room, chosen)
    for r in range(len(room.jobs)):
        room.jobs[r] = 0
    total = _list(tables, room, chosen)
    for g in range(len(chosen)):
        if chosen[g] < 0:
            total += tables.least_work[g]
    found = max(found, total // len(tables.memory))
    for r in range(len(room.jobs)):
        found = max(found, _busy(room, r))
    return found


@leaf
def _fits(tables: Tables, room: Room, chosen: Ints) -> bool:
    """Whether what operators keep all the time fits."""
    for d in range(len(tables.memory)):
        room.held[d] = 0
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice < 0:
            continue
        seat = tables.seat[place, choice]
        for k in range(tables.seat_at[seat], tables.seat_at[seat + 1]):
            d = tables.device[k]
            room.held[d] += tables.resident[place]
            if room.held[d] > tables.memory[d]:
                return False
    return True


@leaf
def _tails(tables: Tables, room: Room, chosen: Ints) -> None:
    """What comes at least after the replicas of operators that are decided."""
    seats = len(tables.seat_at) - 1
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
            for x in range(count):
                room.after[place, x] = tables.reduce[place, choice] + tables.back[place, choice]
                if tables.server[place, choice] and x != place % count:
                    rate = tables.rate_of[tables.device[at + x], tables.device[at + place % count]]
                    room.after[place, x] += tables.gradient[place, rate]
    for position in range(len(tables.order) - 1, -1, -1):
        place = tables.order[position]
        choice = chosen[tables.group[place]]
        for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
            tensor = tables.inputs[i]
            producer = tables.producer[tensor]
            other = chosen[tables.group[producer]]
            if other < 0:
                continue
            source = tables.seat[producer, other]
            if choice < 0:
                if not tables.copies[source]:
                    rest = tables.least[place] + tables.after[place]
                    for x in range(tables.seat_at[source + 1] - tables.seat_at[source]):
                        room.after[producer, x] = max(room.after[producer, x], rest)
                continue
            seat = tables.seat[place, choice]
            pair, at = source * seats + seat, tables.seat_at[seat]
            for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
                x, k = tables.taken_by[e], tables.taken_from[e]
                rest = tables.sent[tensor, tables.way[e]] + tables.time[place, tables.work[at + x]]
                room.after[producer, k] = max(room.after[producer, k], rest + room.after[place, x])


@leaf
def _job(room: Room, r: int, head: int, length: int, tail: int) -> None:
    """One more job of a resource, in the order of when they can start, the last first."""
    k = room.jobs[r]
    while k > 0 and room.head[r, k - 1] < head:
        room.head[r, k], room.length[r, k] = room.head[r, k - 1], room.length[r, k - 1]
        room.tail[r, k] = room.tail[r, k - 1]
        k -= 1
    room.head[r, k], room.length[r, k], room.tail[r, k] = head, length, tail
    room.jobs[r] += 1


@leaf
def _list(tables: Tables, room: Room, chosen: Ints) -> int:
    """Jobs of devices, links and the channel; what devices compute, all together."""
    channel, total = len(room.jobs) - 1, 0
    for place in tables.order:
        choice = chosen[tables.group[place]]
        if choice < 0:
            continue
        seat = tables.seat[place, choice]
        at, every = tables.seat_at[seat], 0
        for x in range(tables.seat_at[seat + 1] - at):
            length = tables.time[place, tables.work[at + x]]
            _job(room, tables.device[at + x], room.flow.end[place, x] - length, length, room.after[place, x])
            every = max(every, room.flow.end[place, x])
            total += length
        if tables.reduce[place, choice] > 0:
            _job(room, channel, every, tables.reduce[place, choice], 0)
        if tables.server[place, choice]:
            _through_server(tables, room, place, choice)
    for tensor in range(len(tables.producer)):
        choice = chosen[tables.group[tables.producer[tensor]]]
        if choice >= 0:
            _sent(tables, room, chosen, tensor, tables.seat[tables.producer[tensor], choice])
    return total


@leaf
def _carry(room: Room, r: int, head: int, length: int, tail: int) -> None:
    """One more transfer on a link, to be made a job together with others."""
    if length == 0:
        return
    if room.sum[r] == 0:
        room.earliest[r], room.least[r] = head, tail
    room.earliest[r], room.least[r] = min(room.earliest[r], head), min(room.least[r], tail)
    room.sum[r] += length


@leaf
def _carried(room: Room, r: int) -> None:
    """What a link carries as a job; its scratch is empty then."""
    if room.sum[r] > 0:
        _job(room, r, room.earliest[r], room.sum[r], room.least[r])
        room.sum[r] = 0


@leaf
def _sent(tables: Tables, room: Room, chosen: Ints, tensor: int, a: int) -> None:
    """All that links carry of a tensor, as one job of each."""
    flow, one, at = room.flow, tables.producer[tensor], tables.seat_at[a]
    for number in range(len(room.last[tensor])):
        room.last[tensor, number] = 0
    for i in range(tables.readers_at[tensor], tables.readers_at[tensor + 1]):
        other = tables.readers[i]
        choice = chosen[tables.group[other]]
        if choice < 0:
            continue
        b = tables.seat[other, choice]
        pair, target = a * (len(tables.seat_at) - 1) + b, tables.seat_at[b]
        for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
            if tables.sent[tensor, tables.way[e]] > 0:
                k, x = tables.taken_from[e], tables.taken_by[e]
                number = transfer(tables, flow, tensor, k, tables.device[target + x], tables.way[e])
                tail = tables.time[other, tables.work[target + x]] + room.after[other, x]
                room.last[tensor, number] = max(room.last[tensor, number], tail)
    for number in range(flow.transfers[tensor]):
        k, device, way = flow.transfer[tensor, number]
        head = max(flow.taken[tensor, number], flow.end[one, k])
        link = tables.link_of[tables.device[at + k], device]
        _carry(room, link, head, tables.sent[tensor, way], room.last[tensor, number])
    for number in range(flow.transfers[tensor]):
        k, device, _ = flow.transfer[tensor, number]
        _carried(room, tables.link_of[tables.device[at + k], device])


@leaf
def _through_server(tables: Tables, room: Room, place: int, choice: int) -> None:
    """What links carry of a gradient: to the server, and back to each other replica when all is there."""
    seat, flow = tables.seat[place, choice], room.flow
    at, count, devices = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat], len(tables.memory)
    server, back = place % count, tables.back[place, choice]
    target = tables.device[at + server]
    gathered = flow.end[place, server]
    for k in range(count):
        d = tables.device[at + k]
        if k != server:
            r, head = tables.link_of[d, target], flow.end[place, k]
            if r - devices < tables.links[0]:
                head = max(head, flow.known[place, k, r - devices])
            _carry(room, r, head, tables.gradient[place, tables.rate_of[d, target]], back)
            if room.sum[r] > 0:
                gathered = max(gathered, room.earliest[r] + room.sum[r])
    for k in range(count):
        if k != server:
            _carried(room, tables.link_of[tables.device[at + k], target])
    for k in range(count):
        d = tables.device[at + k]
        if k != server:
            _carry(room, tables.link_of[target, d], gathered, tables.gradient[place, tables.rate_of[target, d]], 0)
    for k in range(count):
        if k != server:
            _carried(room, tables.link_of[target, tables.device[at + k]])


@leaf
def _busy(room: Room, r: int) -> int:
    """The largest head, sum and tail of jobs from some head on with at least some tail."""
    found, count = 0, room.jobs[r]
    for t in range(count):
        tail, total = room.tail[r, t], 0
        for k in range(count):
            if room.tail[r, k] >= tail:
                total += room.length[r, k]
                found = max(found, room.head[r, k] + total + tail)
    return found
