"""What bounds of partial plans look up: seats of operators, what passes between any two, and prices of resources."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.frontier.deployment.plan.seats import HERE, Floats, Ints, Seat, Seats, pairs_of, ways
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.least_times import whole_times
from ddlopt.models.deployment.plan.shares import UNITS, time_at
from ddlopt.models.tolerances import let_pass_at_most
from ddlopt.solvers.deployment.plan.simulator.tables import rows_of

Bools = npt.NDArray[np.bool_]

# Of multiplicative weights: prices of any of them give a bound, and their steps shrink with their number.
_ROUNDS = 400
_KEPT = (1, 3, 10, 30, 60, 100, 150, 200, 260, 320, _ROUNDS)
"""Turns whose prices are kept."""


class Tables(NamedTuple):
    """An instance and its choices as arrays; resources are devices, links between device groups, and the channel.

    A *seat* is where an operator may lie: replicas with their parts of the batch. ``seat_at[s] .. seat_at[s + 1]`` are
    the replicas of seat s. Entries of ``pair_at[a * seats + b] ..`` say what replicas of seat b take from those of a.

    Parameters
    ----------
    order, group, inputs_at, inputs, producer : Ints
        Operators in order, their groups, tensors that they read, and who makes a tensor.
    readers_at, readers, size_bytes : Ints, Ints, Floats
        Of each tensor.
    seat_at, device, copies : Ints
        Replicas of seats, their devices, and whether all of several replicas have the whole batch.
    time_s : (operators, replicas)
    pair_at, taken_from, taken_by, pair_link : Ints
        Replicas counted within their seats, and the link.
    per_byte_s, fixed_s : Floats
        Of each entry.
    delay_per_byte_s, delay_s : (seats, seats)
        That every replica waits at least for.
    seat, reduce_s, server : (operators, choices)
        Seat, seconds on the channel, and whether a server has the gradients.
    choices : (groups,)
    seats_at, seats, sync_s : (operators + 1,), (.,), (.,)
        What an operator may have, and the least time from the end of all its replicas to that of its gradient.
    least_s, after_s : (operators,)
        Least time of any replica, and of what comes after one that is waited for.
    gradient_bytes : (operators,)
    rate, link : (devices, devices)
    on_path, channel : (paths, operators), (paths,)
        Paths whose length counts like the load of a resource, and whether all that the channel does comes after it.
    prices : (prices, resources + paths)
        Not negative, 1 together.
    priced_s : (prices, groups)
        The least that any choice of a group costs.
    resident_bytes, room_bytes : (operators,), (devices,)
        What is kept all the time, and what no check lets pass more than.
    latency_s : float
    outputs_at, outputs, heirs_at, heirs : Ints
        Tensors that an operator makes, and the operators that read any of them, in order.
    near : (seats, seats)
        Whether nothing is sent from one to the other.
    back_s : (operators, choices)
        Of the busiest link that brings sums of gradients back from a server.
    """

    order: Ints
    group: Ints
    inputs_at: Ints
    inputs: Ints
    producer: Ints
    readers_at: Ints
    readers: Ints
    size_bytes: Floats
    seat_at: Ints
    device: Ints
    copies: Ints
    time_s: Floats
    pair_at: Ints
    taken_from: Ints
    taken_by: Ints
    pair_link: Ints
    per_byte_s: Floats
    fixed_s: Floats
    delay_per_byte_s: Floats
    delay_s: Floats
    seat: Ints
    reduce_s: Floats
    server: Ints
    choices: Ints
    seats_at: Ints
    seats: Ints
    sync_s: Floats
    least_s: Floats
    after_s: Floats
    gradient_bytes: Floats
    rate: Floats
    link: Ints
    on_path: Ints
    channel: Ints
    prices: Floats
    priced_s: Floats
    resident_bytes: Floats
    room_bytes: Floats
    latency_s: float
    outputs_at: Ints
    outputs: Ints
    heirs_at: Ints
    heirs: Ints
    near: Bools
    back_s: Floats


def tables(choices: Choices) -> Tables:
    """The arrays of an instance for what groups choose from."""
    instance = choices.instance
    seats = Seats(choices)
    known = list(seats.numbers)
    devices, at = instance.devices, instance.device_group_of
    groups = len(instance.device_groups)
    rate, link = ways(instance)
    device = np.array([replica.device for row in known for replica in row])
    units = [replica.units for row in known for replica in row]
    work = list(zip((instance.device_groups[at[place]].type for place in device), units, strict=True))
    time_s = np.array(
        [
            [float(time_at(instance.shares, operator.times_s[kind], part)) for kind, part in work]
            for operator in instance.operators
        ]
    )
    seat_at = np.concatenate(([0], np.cumsum([len(row) for row in known])))
    pairs, delay_per_byte_s, delay_s = pairs_of(seats, known, rate, link, instance.latency_s)
    inputs_at, inputs = rows_of(instance.inputs)
    rank = {place: k for k, place in enumerate(instance.order)}
    readers = [sorted(tensor.consumers, key=rank.__getitem__) for tensor in instance.tensors]
    readers_at, readers_of = rows_of(readers)
    near = np.ones((len(known), len(known)), np.bool_)
    row = np.repeat(np.arange(len(known) ** 2), np.diff(pairs[0]))
    near.flat[row[pairs[3] != HERE]] = False
    outputs_at, outputs = rows_of(instance.outputs)
    heirs_at, heirs = rows_of([sorted(own, key=rank.__getitem__) for own in instance.readers])
    counts = np.array([len(own) for own in choices.of_groups])
    on_path, channel = _paths(instance)
    seats_at, own_seats, sync_s, least_s = _seats_of(seats, seat_at, time_s, counts)
    found = Tables(
        order=np.array(instance.order),
        group=np.array([operator.group for operator in instance.operators]),
        inputs_at=inputs_at,
        inputs=inputs,
        producer=np.array([tensor.producer for tensor in instance.tensors], np.int64),
        readers_at=readers_at,
        readers=readers_of,
        size_bytes=np.array([tensor.size_bytes for tensor in instance.tensors], np.float64),
        seat_at=seat_at,
        device=device,
        copies=np.array([len(row) > 1 and all(replica.units == UNITS for replica in row) for row in known], np.int64),
        time_s=time_s,
        pair_at=pairs[0],
        taken_from=pairs[1],
        taken_by=pairs[2],
        pair_link=pairs[3],
        per_byte_s=pairs[4],
        fixed_s=pairs[5],
        delay_per_byte_s=delay_per_byte_s,
        delay_s=delay_s,
        seat=seats.seat,
        reduce_s=seats.reduce_s,
        server=seats.server,
        choices=counts,
        seats_at=seats_at,
        seats=own_seats,
        sync_s=sync_s,
        least_s=least_s,
        after_s=_after(instance, least_s),
        gradient_bytes=np.array([operator.gradient_bytes for operator in instance.operators]),
        rate=rate,
        link=link,
        on_path=on_path,
        channel=channel,
        prices=np.zeros((0, 0)),
        priced_s=np.zeros((0, 0)),
        resident_bytes=np.array([operator.resident_bytes for operator in instance.operators]),
        room_bytes=np.array([let_pass_at_most(instance.device_groups[j].memory_bytes) for j in at]),
        latency_s=instance.latency_s,
        outputs_at=outputs_at,
        outputs=outputs,
        heirs_at=heirs_at,
        heirs=heirs,
        near=near,
        back_s=_back(instance, seats, known, rate),
    )
    prices, priced_s = _prices(found, devices + groups**2 + 1)
    return found._replace(prices=prices, priced_s=priced_s)


def _seats_of(seats: Seats, seat_at: Ints, time_s: Floats, counts: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Seats that each operator may have, their least synchronisation, and the least time of an operator."""
    starts, own, sync_s, least_s = [0], [], [], []
    for place, operator in enumerate(seats.instance.operators):
        here: dict[int, float] = {}
        for c in range(counts[operator.group]):
            seat = int(seats.seat[place, c])
            here[seat] = min(here.get(seat, np.inf), seats.reduce_s[place, c])
        own += list(here)
        sync_s += list(here.values())
        starts.append(len(own))
        least_s.append(min(time_s[place, seat_at[seat] : seat_at[seat + 1]].min() for seat in here))
    return np.array(starts), np.array(own), np.array(sync_s), np.array(least_s)


def _back(instance: DeploymentInstance, seats: Seats, known: list[Seat], rate: Floats) -> Floats:
    """(operators, choices) seconds of the busiest link that brings sums of gradients back from their servers."""
    at, found = instance.device_group_of, np.zeros(seats.server.shape)
    for place, c in np.argwhere(seats.server).tolist():
        devices = [replica.device for replica in known[seats.seat[place, c]]]
        server, sums = devices[place % len(devices)], dict[int, float]()
        for device in devices:
            if device != server:
                # Within a device group every device has a link of its own.
                link = -1 - device if at[device] == at[server] else int(at[device])
                time_s = instance.operators[place].gradient_bytes / rate[server, device] + instance.latency_s
                sums[link] = sums.get(link, 0.0) + time_s
        found[place, c] = max(sums.values())
    return found


def _after(instance: DeploymentInstance, least_s: Floats) -> Floats:
    after_s = np.zeros(len(least_s))
    for place in reversed(instance.order):
        after_s[place] = max((least_s[reader] + after_s[reader] for reader in instance.readers[place]), default=0.0)
    return after_s


def _through_server(tables: Tables, place: int, devices: Ints) -> list[tuple[int, float]]:
    """Links between device groups that a gradient goes over, to its server and back, with seconds."""
    server = int(devices[place % len(devices)])
    amount = float(tables.gradient_bytes[place])
    found: list[tuple[int, float]] = []
    for device in devices.tolist():
        for way in ((device, server), (server, device)):
            if tables.link[way] >= 0:
                found.append((int(tables.link[way]), float(amount / tables.rate[way]) + tables.latency_s))
    return found


def _paths(instance: DeploymentInstance) -> tuple[Ints, Ints]:
    """The longest path, and the longest to an operator after which all gradients are; with whole times."""
    operators = range(len(instance.operators))
    whole_s = whole_times(instance).min(axis=1)
    needs: list[set[int]] = [set() for _ in operators]
    before: list[set[int]] = [set() for _ in operators]
    length_s, last = whole_s.copy(), [-1] * len(whole_s)
    for place in instance.order:
        needs[place] = {instance.tensors[tensor].producer for tensor in instance.inputs[place]}
        before[place] = needs[place].union(*(before[each] for each in needs[place]))
        if needs[place]:
            last[place] = max(sorted(needs[place]), key=length_s.__getitem__)
            length_s[place] += length_s[last[place]]
    gradients = [place for place in operators if instance.operators[place].gradient_bytes]
    first = [place for place in operators if gradients and all(place in before[each] for each in gradients)]
    ends = [max(operators, key=length_s.__getitem__), max(first, key=length_s.__getitem__, default=-1)]
    on_path = np.zeros((2, len(whole_s)), np.int64)
    for path, end in enumerate(ends):
        while end >= 0:
            on_path[path, end] = 1
            end = last[end]
    return on_path, np.array([0, 1])


def _prices(tables: Tables, resources: int) -> tuple[Floats, Floats]:
    """Prices of which each is best for some weights of the groups, and what each group costs at least."""
    groups, most = len(tables.choices), tables.seat.shape[1]
    loads = np.zeros((groups, most, resources + len(tables.on_path)))
    devices = len(tables.room_bytes)
    for place, group in enumerate(tables.group.tolist()):
        for c in range(tables.choices[group]):
            seat = tables.seat[place, c]
            own = slice(tables.seat_at[seat], tables.seat_at[seat + 1])
            np.add.at(loads[group, c], tables.device[own], tables.time_s[place, own])
            loads[group, c, resources - 1] += tables.reduce_s[place, c]
            loads[group, c, resources:] += tables.on_path[:, place] * tables.time_s[place, own].min()
            loads[group, c, resources:] += tables.channel * tables.reduce_s[place, c]
            if tables.server[place, c]:
                for where, time_s in _through_server(tables, place, tables.device[own]):
                    loads[group, c, where] += time_s
    there = np.arange(most) < tables.choices[:, None]
    prices = np.eye(loads.shape[2])[resources:]
    even = np.zeros(loads.shape[2])
    even[:devices] = 1 / devices
    weights = (loads.max(axis=(0, 1)) > 0) * 1.0
    kept = [even, *prices]
    for turn in range(1, _ROUNDS + 1):
        if not weights.any():
            break
        weights = weights / weights.sum()
        if turn in _KEPT:
            kept.append(weights)
        chosen = np.where(there, loads @ weights, np.inf).argmin(axis=1)
        busy = loads[np.arange(groups), chosen].sum(axis=0)
        if not busy.max() > 0:
            break
        weights = weights * np.exp(busy / busy.max() / turn**0.5)
    found = np.array(kept)
    costs = np.where(there[:, :, None], loads @ found.T, np.inf)
    return np.ascontiguousarray(found), np.ascontiguousarray(costs.min(axis=1).T)
