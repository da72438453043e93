"""Numba kernels of the checker: all plans in whole numbers, without those whose bound is not below the claim.

With some groups decided, a step takes at least the following in whatever order tasks are done. Times are rounded down;
all that is added up is below 2^63 (:mod:`~ddlopt.models.deployment.plan.certificate.tables`).

* *Paths.* A replica of a decided operator starts after the ends of what it takes, and of the transfers. An operator
  that is not decided has one of its seats: none of its replicas ends before the least end in any, and all of them end
  no earlier than the last replica does in the seat where that is soonest. Who reads from it waits for some replica.
* *One task at a time.* Take jobs of a resource that cannot start before r and have at least q after them in a step:
  it takes r, their sum and q. Resources are devices, links, and the channel. Of a tensor that passes a link the
  transfers to its first reader count, together: what other readers need is the same or comes besides.
* *Work.* Devices together compute for no more than their number times the step; a group that is not decided adds the
  least of its choices.

*Tails.* A replica that has a part of the batch that no other has is waited for by a replica of every reader: that which
has a sample of the part; and so on, from reader to reader, whatever their seats, so that the longest path of least
times comes after it. Where all replicas have the whole batch, only readers whose seat is known count.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.models.deployment.plan.certificate.tables import GOAL, Ints, Tables
from ddlopt.models.kernels import kernel, leaf

DONE, FULL, PAUSED = range(3)
"""Why the search returns: all is searched, no room for more plans, or it has looked at as many as it was to."""
_NEVER = np.iinfo(np.int64).max


class Room(NamedTuple):
    """Where the kernels calculate.

    Parameters
    ----------
    end, after : (operators, devices)
        Of replicas of decided operators: when they end at least, what comes after at least.
    first : (operators,)
        When the first replica ends at least.
    start : (devices,)
    head, length, tail : (resources, jobs)
        When jobs can start, how long they take, what comes after; those that start last come first.
    jobs : (resources,)
    earliest, sum, least : (resources,)
        Of one tensor, by link: when its first transfer can start, all transfers, and what comes after any at least;
        the sum is 0 between calls.
    """

    end: Ints
    after: Ints
    first: Ints
    start: Ints
    head: Ints
    length: Ints
    tail: Ints
    jobs: Ints
    earliest: Ints
    sum: Ints
    least: Ints


_TABLES = (
    "record(Tables, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[:, ::1],"
    " i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[::1], i8[::1], i8[::1],"
    " i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"
)
_ROOM = (
    "record(Room, i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1],"
    " i8[::1], i8[::1])"
)


def room_for(tables: Tables) -> Room:
    """Empty."""
    operators, devices = len(tables.order), len(tables.memory)
    resources = 1 + max(devices, int(tables.link_of.max(initial=0)) + 1)
    jobs = 2 * operators + len(tables.producer)
    each, many = (operators, devices), (resources, jobs)
    shapes = each, each, operators, devices, many, many, many, resources, resources, resources, resources
    return Room(*(np.zeros(shape, np.int64) for shape in shapes))


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
    found = _ends(tables, room, chosen)
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
        room.start[d] = 0
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice < 0:
            continue
        seat = tables.seat[place, choice]
        for k in range(tables.seat_at[seat], tables.seat_at[seat + 1]):
            d = tables.device[k]
            room.start[d] += tables.resident[place]
            if room.start[d] > tables.memory[d]:
                return False
    return True


@leaf
def _ends(tables: Tables, room: Room, chosen: Ints) -> int:
    """Ends of replicas on longest paths; the last of them, with what the channel does after it."""
    last = 0
    for place in tables.order:
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            _arrive(tables, room, chosen, place, seat)
            first, every, at = _NEVER, 0, tables.seat_at[seat]
            for x in range(tables.seat_at[seat + 1] - at):
                end = room.start[x] + tables.time[place, tables.work[at + x]]
                room.end[place, x] = end
                first, every = min(first, end), max(every, end)
            room.first[place] = first
            last = max(last, every + tables.reduce[place, choice])
            continue
        first, ended = _NEVER, _NEVER
        for i in range(tables.seats_at[place], tables.seats_at[place + 1]):
            seat = tables.seats[i]
            _arrive(tables, room, chosen, place, seat)
            every, at = 0, tables.seat_at[seat]
            for x in range(tables.seat_at[seat + 1] - at):
                end = room.start[x] + tables.time[place, tables.work[at + x]]
                first, every = min(first, end), max(every, end)
            ended = min(ended, every)
        room.first[place] = first
        last = max(last, ended)
    return last


@leaf
def _arrive(tables: Tables, room: Room, chosen: Ints, place: int, seat: int) -> None:
    """When the replicas of an operator in a seat have all that they need, into ``room.start``."""
    size, seats = tables.seat_at[seat + 1] - tables.seat_at[seat], len(tables.seat_at) - 1
    for x in range(size):
        room.start[x] = 0
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        tensor = tables.inputs[i]
        producer = tables.producer[tensor]
        choice = chosen[tables.group[producer]]
        if choice < 0:
            for x in range(size):
                room.start[x] = max(room.start[x], room.first[producer])
            continue
        pair = tables.seat[producer, choice] * seats + seat
        for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
            x = tables.taken_by[e]
            there = room.end[producer, tables.taken_from[e]] + tables.sent[tensor, tables.way[e]]
            room.start[x] = max(room.start[x], there)


@leaf
def _tails(tables: Tables, room: Room, chosen: Ints) -> None:
    """What comes at least after the replicas of operators that are decided."""
    seats = len(tables.seat_at) - 1
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            for x in range(tables.seat_at[seat + 1] - tables.seat_at[seat]):
                room.after[place, x] = tables.reduce[place, choice]
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
            _job(room, tables.device[at + x], room.end[place, x] - length, length, room.after[place, x])
            every = max(every, room.end[place, x])
            total += length
        if tables.reduce[place, choice] > 0:
            _job(room, channel, every, tables.reduce[place, choice], 0)
        if tables.server[place, choice]:
            _through_server(tables, room, place, seat)
    for tensor in range(len(tables.producer)):
        one, other = tables.producer[tensor], tables.first_reader[tensor]
        a, b = chosen[tables.group[one]], chosen[tables.group[other]]
        if a >= 0 and b >= 0:
            _sent(tables, room, tensor, tables.seat[one, a], tables.seat[other, b])
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
def _sent(tables: Tables, room: Room, tensor: int, a: int, b: int) -> None:
    """All that links carry of a tensor to its first reader, as one job of each."""
    pair, at = a * (len(tables.seat_at) - 1) + b, tables.seat_at[b]
    one, other = tables.producer[tensor], tables.first_reader[tensor]
    for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
        if tables.link[e] >= 0:
            x = tables.taken_by[e]
            tail = tables.time[other, tables.work[at + x]] + room.after[other, x]
            length = tables.sent[tensor, tables.way[e]]
            _carry(room, tables.link[e], room.end[one, tables.taken_from[e]], length, tail)
    for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
        if tables.link[e] >= 0:
            _carried(room, tables.link[e])


@leaf
def _through_server(tables: Tables, room: Room, place: int, seat: int) -> None:
    """What links carry of a gradient: to the server, and back to each other replica when all is there."""
    at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
    server = place % count
    target = tables.device[at + server]
    gathered, slowest = room.end[place, server], 0
    for k in range(count):
        d = tables.device[at + k]
        if k != server:
            gathered = max(gathered, room.end[place, k] + tables.gradient[place, tables.rate_of[d, target]])
            slowest = max(slowest, tables.gradient[place, tables.rate_of[target, d]])
    for k in range(count):
        d = tables.device[at + k]
        if k != server:
            there = tables.gradient[place, tables.rate_of[d, target]]
            _carry(room, tables.link_of[d, target], room.end[place, k], there, slowest)
    for k in range(count):
        if k != server:
            _carried(room, tables.link_of[tables.device[at + k], target])
    for k in range(count):
        d = tables.device[at + k]
        if k != server:
            back = tables.gradient[place, tables.rate_of[target, d]]
            _carry(room, tables.link_of[target, d], gathered, back, 0)
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
