"""Numba kernels of the branch and bound over plans: the least time of all plans that have some groups decided."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.frontier.deployment.plan.tree.ahead import AHEAD, Ahead, look_ahead
from ddlopt.frontier.deployment.plan.tree.ends import FLOW, Flow, ends, flow_for, transfer_of
from ddlopt.frontier.deployment.plan.tree.tables import Tables
from ddlopt.models.kernels import kernel, leaf

DONE, FULL, PAUSED = range(3)
"""Why the search returns: all is searched, no room for more plans, or it has looked at as many as it was to."""


class Tree(NamedTuple):
    """Where the search is.

    Parameters
    ----------
    at : (1,)
        How many groups are decided.
    line : (groups,)
        Groups in the order in which they are decided.
    chosen : (groups,)
        Choice of each, -1 where there is none.
    code, bound_s : (groups, choices)
        Of each depth what is to be tried, the most promising first.
    listed, next : (groups,)
        How many there are, and which comes next; -1 before they are listed.
    """

    at: Ints
    line: Ints
    chosen: Ints
    code: Ints
    bound_s: Floats
    listed: Ints
    next: Ints


_TABLES = (
    "record(Tables, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8[::1],"
    " i8[::1], f8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[:, ::1], f8[:, ::1], i8[:, ::1],"
    " f8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:, ::1], i8[:, ::1],"
    " i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8, i8[::1], i8[::1], i8[::1], i8[::1],"
    " b1[:, ::1], f8[:, ::1])"
)
_TREE = "record(Tree, i8[::1], i8[::1], i8[::1], i8[:, ::1], f8[:, ::1], i8[::1], i8[::1])"
_ROOM = f"record(Room, {FLOW}, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], i8[::1], f8[::1], f8[:, ::1])"


class Room(NamedTuple):
    """What bounds are calculated in.

    Parameters
    ----------
    flow : Flow
    after_s : (operators, devices)
        Of replicas of operators whose group is decided: what comes after at least.
    held_bytes : (devices,)
    head_s, work_s, tail_s : (resources, jobs)
        Jobs of resources: when they can start, how long they take, what comes after.
    jobs, load_s : (resources,), (resources + paths,)
    sum_s : (resources, 3)
        Transfers that are put together: their work, when the first can start, and what comes after any at least; the
        work is 0 between calls.
    """

    flow: Flow
    after_s: Floats
    held_bytes: Floats
    head_s: Floats
    work_s: Floats
    tail_s: Floats
    jobs: Ints
    load_s: Floats
    sum_s: Floats


def room_for(tables: Tables) -> Room:
    """Empty."""
    operators, devices = len(tables.order), len(tables.room_bytes)
    resources = tables.prices.shape[1] - len(tables.on_path)
    many = (resources, 2 * operators + len(tables.producer))
    return Room(
        flow=flow_for(tables, resources),
        after_s=np.zeros((operators, devices)),
        held_bytes=np.zeros(devices),
        head_s=np.zeros(many),
        work_s=np.zeros(many),
        tail_s=np.zeros(many),
        jobs=np.zeros(resources, np.int64),
        load_s=np.zeros(tables.prices.shape[1]),
        sum_s=np.zeros((resources, 3)),
    )


@kernel(f"i8({_TABLES}, {_TREE}, {_ROOM}, {AHEAD}, f8, i8[:, ::1], i8[::1])")
def search(tables: Tables, tree: Tree, room: Room, ahead: Ahead, below_s: float, found: Ints, used: Ints) -> int:
    """Go on in depth first order until there are enough plans that may take less than ``below_s``.

    They are put into the rows of ``found`` (plans, groups). ``used`` has how many rows are, and how many partial plans
    may yet be looked at.
    """
    groups = len(tree.line)
    while True:
        depth = tree.at[0]
        if tree.next[depth] < 0:
            if used[1] <= 0:
                return PAUSED
            used[1] -= _branch(tables, tree, room, ahead, depth, below_s)
            tree.next[depth] = 0
        group, place = tree.line[depth], tree.next[depth]
        if place == tree.listed[depth] or not tree.bound_s[depth, place] < below_s:
            tree.chosen[group] = -1
            tree.next[depth] = -1
            if depth == 0:
                return DONE
            tree.at[0] = depth - 1
            continue
        if depth + 1 == groups and used[0] == len(found):
            return FULL
        tree.chosen[group] = tree.code[depth, place]
        tree.next[depth] = place + 1
        if depth + 1 < groups:
            tree.at[0] = depth + 1
            continue
        for g in range(groups):
            found[used[0], g] = tree.chosen[g]
        used[0] += 1


@kernel(f"f8({_TABLES}, i8[::1], {_ROOM})")
def least(tables: Tables, chosen: Ints, room: Room) -> float:
    """Seconds that a step takes at least under every plan that has these choices; -1 stands for any."""
    return _least(tables, chosen, room, np.inf)


@leaf
def _branch(tables: Tables, tree: Tree, room: Room, ahead: Ahead, depth: int, below_s: float) -> int:
    """List the choices for a group whose bound is below the limit, the least first; returns how many were tried."""
    group, found, tried, mixes = tree.line[depth], 0, 1, len(ahead.first)
    if mixes > 0:
        look_ahead(ahead, tree.chosen, depth, below_s)
    for choice in range(tables.choices[group]):
        ahead_s = ahead.least_s[ahead.stands[group, choice]] if mixes > 0 else 0.0
        if not ahead_s < below_s:
            continue
        tried += 1
        tree.chosen[group] = choice
        bound_s = max(ahead_s, _least(tables, tree.chosen, room, below_s))
        if not bound_s < below_s:
            continue
        k = found
        while k > 0 and tree.bound_s[depth, k - 1] > bound_s:
            tree.bound_s[depth, k], tree.code[depth, k] = tree.bound_s[depth, k - 1], tree.code[depth, k - 1]
            k -= 1
        tree.bound_s[depth, k], tree.code[depth, k] = bound_s, choice
        found += 1
    tree.chosen[group] = -1
    tree.listed[depth] = found
    return tried


@leaf
def _least(tables: Tables, chosen: Ints, room: Room, below_s: float) -> float:
    """The largest of all bounds; whatever is not below the limit where one is not."""
    if not _fits(tables, chosen, room):
        return np.inf
    for r in range(len(room.jobs)):
        room.jobs[r] = 0
    for r in range(len(room.load_s)):
        room.load_s[r] = 0.0
    bound_s = ends(tables, chosen, room.flow)
    if not bound_s < below_s:
        return bound_s
    _tails(tables, chosen, room)
    _list(tables, chosen, room)
    for r in range(len(room.jobs)):
        bound_s = max(bound_s, _busy(room, r))
    for k in range(len(tables.prices)):
        priced_s = 0.0
        for r in range(len(room.load_s)):
            priced_s += tables.prices[k, r] * room.load_s[r]
        for g in range(len(chosen)):
            if chosen[g] < 0:
                priced_s += tables.priced_s[k, g]
        bound_s = max(bound_s, priced_s)
    return bound_s


@leaf
def _fits(tables: Tables, chosen: Ints, room: Room) -> bool:
    """Whether what operators keep fits."""
    for d in range(len(tables.room_bytes)):
        room.held_bytes[d] = 0.0
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice < 0 or tables.resident_bytes[place] == 0.0:
            continue
        seat = tables.seat[place, choice]
        for k in range(tables.seat_at[seat], tables.seat_at[seat + 1]):
            d = tables.device[k]
            room.held_bytes[d] += tables.resident_bytes[place]
            if room.held_bytes[d] > tables.room_bytes[d]:
                return False
    return True


@leaf
def _tails(tables: Tables, chosen: Ints, room: Room) -> None:
    """What comes at least after the replicas of operators that are decided."""
    seats = len(tables.seat_at) - 1
    for place in range(len(tables.group)):
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
            for x in range(count):
                room.after_s[place, x] = tables.reduce_s[place, choice] + tables.back_s[place, choice]
                if tables.server[place, choice] and x != place % count:
                    rate = tables.rate[tables.device[at + x], tables.device[at + place % count]]
                    room.after_s[place, x] += tables.gradient_bytes[place] / rate + tables.latency_s
    for position in range(len(tables.order) - 1, -1, -1):
        place = tables.order[position]
        choice = chosen[tables.group[place]]
        seat = tables.seat[place, choice] if choice >= 0 else -1
        for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
            tensor = tables.inputs[i]
            producer, amount = tables.producer[tensor], tables.size_bytes[tensor]
            other = chosen[tables.group[producer]]
            if other < 0:
                continue
            source = tables.seat[producer, other]
            if seat < 0:
                # Some replica of this one waits for each part of the batch, but not for each copy of all of it.
                if not tables.copies[source]:
                    rest_s = tables.least_s[place] + tables.after_s[place]
                    for x in range(tables.seat_at[source + 1] - tables.seat_at[source]):
                        room.after_s[producer, x] = max(room.after_s[producer, x], rest_s)
                continue
            pair, at = source * seats + seat, tables.seat_at[seat]
            for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
                x, k = tables.taken_by[e], tables.taken_from[e]
                rest_s = tables.time_s[place, at + x] + room.after_s[place, x]
                if amount > 0.0:
                    rest_s += amount * tables.per_byte_s[e] + tables.fixed_s[e]
                room.after_s[producer, k] = max(room.after_s[producer, k], rest_s)


@leaf
def _job(room: Room, r: int, head_s: float, work_s: float, tail_s: float) -> None:
    """One more job of a resource, in the order of when they can start, the last first."""
    k = room.jobs[r]
    while k > 0 and room.head_s[r, k - 1] < head_s:
        room.head_s[r, k], room.work_s[r, k] = room.head_s[r, k - 1], room.work_s[r, k - 1]
        room.tail_s[r, k] = room.tail_s[r, k - 1]
        k -= 1
    room.head_s[r, k], room.work_s[r, k], room.tail_s[r, k] = head_s, work_s, tail_s
    room.jobs[r] += 1
    room.load_s[r] += work_s


@leaf
def _list(tables: Tables, chosen: Ints, room: Room) -> None:
    """Jobs of devices, of links between device groups and of the channel."""
    resources = len(room.jobs)
    for place in tables.order:
        choice = chosen[tables.group[place]]
        if choice < 0:
            continue
        seat = tables.seat[place, choice]
        at, count, all_s = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat], 0.0
        least_s, reduce_s = np.inf, tables.reduce_s[place, choice]
        for x in range(count):
            time_s = tables.time_s[place, at + x]
            _job(room, tables.device[at + x], room.flow.end_s[place, x] - time_s, time_s, room.after_s[place, x])
            all_s, least_s = max(all_s, room.flow.end_s[place, x]), min(least_s, time_s)
        if reduce_s > 0.0:
            _job(room, resources - 1, all_s, reduce_s, 0.0)
        for k in range(len(tables.on_path)):
            room.load_s[resources + k] += tables.on_path[k, place] * least_s + tables.channel[k] * reduce_s
        if tables.server[place, choice]:
            _through_server(tables, room, place, choice)
    for tensor in range(len(tables.producer)):
        one = tables.producer[tensor]
        choice = chosen[tables.group[one]]
        if choice >= 0 and tables.size_bytes[tensor] > 0.0:
            _sent(tables, chosen, room, tensor, one, tables.seat[one, choice])


@leaf
def _sent(tables: Tables, chosen: Ints, room: Room, tensor: int, one: int, a: int) -> None:
    """All that links carry of a tensor, as one job of each."""
    seats, amount = len(tables.seat_at) - 1, tables.size_bytes[tensor]
    if room.flow.transfers[tensor] == 0:
        return
    for i in range(tables.readers_at[tensor], tables.readers_at[tensor + 1]):
        other = tables.readers[i]
        choice = chosen[tables.group[other]]
        if choice < 0:
            continue
        b = tables.seat[other, choice]
        for e in range(tables.pair_at[a * seats + b], tables.pair_at[a * seats + b + 1]):
            if tables.pair_link[e] < 0:
                continue
            x = tables.taken_by[e]
            work_s = amount * tables.per_byte_s[e] + tables.fixed_s[e]
            number = transfer_of(room.flow, tensor, tables.taken_from[e], tables.device[tables.seat_at[b] + x], work_s)
            tail_s = tables.time_s[other, tables.seat_at[b] + x] + room.after_s[other, x]
            room.flow.transfer_s[tensor, number, 2] = max(room.flow.transfer_s[tensor, number, 2], tail_s)
    for number in range(room.flow.transfers[tensor]):
        d = tables.device[tables.seat_at[a] + room.flow.transfer[tensor, number, 0]]
        r = tables.link[d, room.flow.transfer[tensor, number, 1]]
        _carry(
            room,
            r,
            room.flow.transfer_s[tensor, number, 1],
            room.flow.transfer_s[tensor, number, 0],
            room.flow.transfer_s[tensor, number, 2],
        )
    for number in range(room.flow.transfers[tensor]):
        d = tables.device[tables.seat_at[a] + room.flow.transfer[tensor, number, 0]]
        _carried(room, tables.link[d, room.flow.transfer[tensor, number, 1]])


@leaf
def _through_server(tables: Tables, room: Room, place: int, choice: int) -> None:
    """What links carry of a gradient: to the server, and back when all is there."""
    seat, devices = tables.seat[place, choice], len(tables.room_bytes)
    at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
    server, amount = place % count, tables.gradient_bytes[place]
    target = tables.device[at + server]
    there_s = room.flow.end_s[place, server]
    for k in range(count):
        d = tables.device[at + k]
        if k == server:
            continue
        r, head_s = tables.link[d, target], room.flow.end_s[place, k]
        work_s = amount / tables.rate[d, target] + tables.latency_s
        if r < 0:
            there_s = max(there_s, head_s + work_s)
            continue
        _carry(room, r, max(head_s, room.flow.known_s[place, k, r - devices]), work_s, tables.back_s[place, choice])
        there_s = max(there_s, room.sum_s[r, 1] + room.sum_s[r, 0])
    for k in range(count):
        if k != server:
            _carried(room, tables.link[tables.device[at + k], target])
    for k in range(count):
        d = tables.device[at + k]
        if k != server and tables.link[target, d] >= 0:
            _carry(room, tables.link[target, d], there_s, amount / tables.rate[target, d] + tables.latency_s, 0.0)
    for k in range(count):
        if k != server:
            _carried(room, tables.link[target, tables.device[at + k]])


@leaf
def _carry(room: Room, r: int, head_s: float, work_s: float, tail_s: float) -> None:
    """One more transfer on a link, to be made a job together with others."""
    if room.sum_s[r, 0] == 0.0:
        room.sum_s[r, 1], room.sum_s[r, 2] = head_s, tail_s
    room.sum_s[r, 0] += work_s
    room.sum_s[r, 1], room.sum_s[r, 2] = min(room.sum_s[r, 1], head_s), min(room.sum_s[r, 2], tail_s)


@leaf
def _carried(room: Room, r: int) -> None:
    """What a link between device groups carries as a job."""
    if r >= 0 and room.sum_s[r, 0] > 0.0:
        _job(room, r, room.sum_s[r, 1], room.sum_s[r, 0], room.sum_s[r, 2])
        room.sum_s[r, 0] = 0.0


@leaf
def _busy(room: Room, r: int) -> float:
    """One job at a time: of all jobs from some time on with at least some tail, when they are done."""
    bound_s, count = 0.0, room.jobs[r]
    for t in range(count):
        tail_s, sum_s = room.tail_s[r, t], 0.0
        for k in range(count):
            if room.tail_s[r, k] >= tail_s:
                sum_s += room.work_s[r, k]
                bound_s = max(bound_s, room.head_s[r, k] + sum_s + tail_s)
    return bound_s
