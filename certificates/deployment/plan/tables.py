"""An instance, what groups may choose, and a claim, in whole numbers: times are rounded down."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.deployment.plan.choices import Choice, Seat
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, time_at
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.tolerances import let_pass

Ints = npt.NDArray[np.int64]

GOAL = 2**40
"""The claim in units of time: what thousands of tasks lose by rounding is far below a gap of interest."""
_LONGEST = 2 * GOAL
"""What is longer counts as that; it is above the claim by itself."""
_MOST_TERMS = 2**18
"""Times that are added up anywhere, so that three such sums are below 2^63."""
_MOST_PAIRS = 4_000_000
"""Replicas of pairs of seats, of which who takes from whom is listed."""
_MOST_BYTES = 2**44
"""That an operator counts as keeping, so that sums are below 2^62."""

_HERE = -1
"""The link of what stays on its device."""


class Tables(NamedTuple):
    """Arrays of whole numbers; resources are devices, links between device groups, links within them, and the channel.

    Replicas of seat s are ``seat_at[s] .. seat_at[s + 1]``. Entries of ``pair_at[a * seats + b] ..`` say what replicas
    of seat b take from those of a, both counted within their seats.

    Parameters
    ----------
    order, group : (operators,)
        Each after those that it reads from; of each the group.
    inputs_at, inputs : (operators + 1,), (.,)
        Tensors that an operator reads.
    producer : (tensors,)
    readers_at, readers : (tensors + 1,), (.,)
    outputs_at, outputs : (operators + 1,), (.,)
        Tensors that an operator makes.
    readers_of_at, readers_of : (operators + 1,), (.,)
        Who reads from an operator, in order.
    choices : (groups,)
        How many there are.
    seat, reduce, server, back : (operators, choices)
        Seat of an operator under its group's choice, the time on the channel, whether a server has its gradient, and
        how long the busiest link takes to bring the sum back.
    seats_at, seats : (operators + 1,), (.,)
        Seats that an operator may have.
    seat_at, device, work, copies : (seats + 1,), (replicas,), (replicas,), (seats,)
        The column of ``time``; whether all of several replicas have the whole batch.
    time : (operators, works)
    pair_at, taken_from, taken_by, way, link
        Of each entry the column of ``sent``, and the link, -1 on the device itself.
    links : (1,)
        How many links there are between device groups; they come after the devices.
    sent : (tensors, ways)
        Time of a transfer; 0 where none is needed.
    gradient : (operators, rates)
        Time of a transfer of the gradient.
    rate_of, link_of : (devices, devices)
    least, after : (operators,)
        Least time of a replica, and of the longest path of these after it.
    least_work : (groups,)
        Of all devices together.
    resident, memory : (operators,), (devices,)
        Bytes, rounded down.
    """

    order: Ints
    group: Ints
    inputs_at: Ints
    inputs: Ints
    producer: Ints
    readers_at: Ints
    readers: Ints
    outputs_at: Ints
    outputs: Ints
    readers_of_at: Ints
    readers_of: Ints
    choices: Ints
    seat: Ints
    reduce: Ints
    server: Ints
    back: Ints
    seats_at: Ints
    seats: Ints
    seat_at: Ints
    device: Ints
    work: Ints
    copies: Ints
    time: Ints
    pair_at: Ints
    taken_from: Ints
    taken_by: Ints
    way: Ints
    link: Ints
    links: Ints
    sent: Ints
    gradient: Ints
    rate_of: Ints
    link_of: Ints
    least: Ints
    after: Ints
    least_work: Ints
    resident: Ints
    memory: Ints


def tables_of(instance: DeploymentInstance, known: Sequence[Sequence[Choice]], claim: Fraction) -> Tables:
    """The arrays for what groups may choose; the claim is positive.

    Raises
    ------
    NotApplicableError
        If sums might overflow, or seats are too many.
    """
    devices, operators = instance.devices, len(instance.operators)
    read = sum(len(tensor.consumers) for tensor in instance.tensors)
    if (operators + read + 1) * (devices + 1) ** 2 > _MOST_TERMS:
        raise NotApplicableError(f"'{instance.name}' has too many operators and devices for a proof by this tree")

    def units(seconds: Fraction) -> int:
        return min(_LONGEST, floor(seconds * GOAL / claim))

    numbers: dict[Seat, int] = {}
    most = max(map(len, known))
    seat, reduce, server = (np.zeros((operators, most), np.int64) for _ in range(3))
    for members, own in zip(instance.members, known, strict=True):
        for c, choice in enumerate(own):
            for place, lies, sync in zip(members, choice.seats, choice.syncs, strict=True):
                seat[place, c] = numbers.setdefault(lies, len(numbers))
                server[place, c] = sync == "server"
                if sync == "reduce":
                    size = Fraction(instance.operators[place].gradient_bytes)
                    seconds = all_reduce_s(instance, choice.plan.device_groups, size, Fraction)
                    reduce[place, c] = units(Fraction(seconds))
    seats = list(numbers)
    works: dict[tuple[str, int], int] = {}
    kinds = [instance.device_groups[j].type for j in instance.device_group_of]
    work = [works.setdefault((kinds[replica.device], replica.units), len(works)) for row in seats for replica in row]
    time = np.array(
        [
            [units(Fraction(time_at(instance.shares, operator.times_s[kind], part, Fraction))) for kind, part in works]
            for operator in instance.operators
        ],
        np.int64,
    )
    seat_at = np.array([0, *accumulate(map(len, seats))])
    rates, rate_of, link_of = _links(instance)
    pairs, ways = _pairs(instance, seats, rate_of, link_of)
    latency = Fraction(instance.latency_s)

    def moved(size: Fraction, rate: int) -> int:
        return units(size / rates[rate] + latency) if size else 0

    sizes = [Fraction(tensor.size_bytes) for tensor in instance.tensors]
    sent = [[0, *(moved(size * part / UNITS, rate) for part, rate in ways)] for size in sizes]
    gradient = [
        [moved(Fraction(operator.gradient_bytes), rate) for rate in range(len(rates))]
        for operator in instance.operators
    ]
    back = np.zeros_like(server)
    for place, c in np.argwhere(server).tolist():
        replicas = [replica.device for replica in seats[seat[place, c]]]
        source, carried = replicas[place % len(replicas)], Counter[int]()
        for device in replicas:
            if device != source:
                carried[int(link_of[source, device])] += gradient[place][rate_of[source, device]]
        back[place, c] = max(carried.values())
    rank = {place: k for k, place in enumerate(instance.order)}
    may_have = [sorted({int(seat[place, c]) for c in range(len(known[operator.group]))})
                for place, operator in enumerate(instance.operators)]  # fmt: skip
    at_work = np.array(work, np.int64)
    sums = np.array([time[:, at_work[seat_at[s] : seat_at[s + 1]]].sum(axis=1) for s in range(len(seats))])
    least_of = np.array([time[:, at_work[seat_at[s] : seat_at[s + 1]]].min(axis=1) for s in range(len(seats))])
    least = np.array([least_of[own, place].min() for place, own in enumerate(may_have)], np.int64)
    after = np.zeros(operators, np.int64)
    for place in reversed(instance.order):
        after[place] = max((least[reader] + after[reader] for reader in instance.readers[place]), default=0)
    inputs_at, inputs = _rows(instance.inputs)
    outputs_at, outputs = _rows(instance.outputs)
    readers_at, readers = _rows([tensor.consumers for tensor in instance.tensors])
    readers_of_at, readers_of = _rows([sorted(own, key=rank.__getitem__) for own in instance.readers])
    seats_at, own_seats = _rows(may_have)
    least_work = [
        min(sum(int(sums[seat[place, c], place]) for place in members) for c in range(len(own)))
        for members, own in zip(instance.members, known, strict=True)
    ]
    limit = let_pass(Fraction(1))
    memory = [instance.device_groups[j].memory_bytes for j in instance.device_group_of]
    return Tables(
        order=np.array(instance.order, np.int64),
        group=np.array([operator.group for operator in instance.operators], np.int64),
        inputs_at=inputs_at,
        inputs=inputs,
        producer=np.array([tensor.producer for tensor in instance.tensors], np.int64),
        readers_at=readers_at,
        readers=readers,
        outputs_at=outputs_at,
        outputs=outputs,
        readers_of_at=readers_of_at,
        readers_of=readers_of,
        choices=np.array(list(map(len, known)), np.int64),
        seat=seat,
        reduce=reduce,
        server=server,
        back=back,
        seats_at=seats_at,
        seats=own_seats,
        seat_at=seat_at,
        device=np.array([replica.device for row in seats for replica in row], np.int64),
        work=at_work,
        copies=np.array([len(row) > 1 and all(each.units == UNITS for each in row) for row in seats], np.int64),
        time=time,
        pair_at=pairs[0],
        taken_from=pairs[1],
        taken_by=pairs[2],
        way=pairs[3],
        link=pairs[4],
        links=np.array([len(instance.device_groups) ** 2]),
        sent=np.array(sent, np.int64).reshape(len(sizes), len(ways) + 1),
        gradient=np.array(gradient, np.int64).reshape(operators, len(rates)),
        rate_of=rate_of,
        link_of=link_of,
        least=least,
        after=after,
        least_work=np.array(least_work, np.int64),
        resident=np.array([min(_MOST_BYTES, floor(each.resident_bytes)) for each in instance.operators], np.int64),
        memory=np.array([min(2**62, floor(Fraction(each) * limit)) for each in memory], np.int64),
    )


def _links(instance: DeploymentInstance) -> tuple[list[Fraction], Ints, Ints]:
    """Bandwidths that differ, and of each ordered pair of devices which one it has, and the link."""
    devices, groups, at = instance.devices, len(instance.device_groups), instance.device_group_of.tolist()
    known: dict[Fraction, int] = {}
    rate_of, link_of = np.zeros((devices, devices), np.int64), np.full((devices, devices), _HERE)
    for one in range(devices):
        for other in range(devices):
            a, b = at[one], at[other]
            if one != other:
                within = instance.device_groups[a].bandwidth_bytes_per_s
                rate = Fraction(within if a == b else float(instance.bandwidth_bytes_per_s[a, b]))
                rate_of[one, other] = known.setdefault(rate, len(known))
                own = devices + groups**2 + one * devices + other
                link_of[one, other] = own if a == b else devices + a * groups + b
    return list(known), rate_of, link_of


def _pairs(
    instance: DeploymentInstance, seats: list[Seat], rate_of: Ints, link_of: Ints
) -> tuple[tuple[Ints, Ints, Ints, Ints, Ints], list[tuple[int, int]]]:
    """What replicas of each seat take from those of each other one; ways are parts of the batch at a bandwidth."""
    if len(seats) ** 2 * instance.devices > _MOST_PAIRS:
        raise NotApplicableError(f"operators of '{instance.name}' may lie in {len(seats)} ways, too many for this tree")
    at = instance.device_group_of.tolist()
    ways: dict[tuple[int, int], int] = {}
    starts, rows = [0], []
    for one in seats:
        for other in seats:
            for holder, reader, units in _taken(one, other, at):
                source, target = one[holder].device, other[reader].device
                way = 0
                if source != target:
                    way = 1 + ways.setdefault((units, int(rate_of[source, target])), len(ways))
                rows.append((holder, reader, way, int(link_of[source, target])))
            starts.append(len(rows))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    holders, readers, own_ways, links = (np.ascontiguousarray(column) for column in columns)
    return (np.array(starts, np.int64), holders, readers, own_ways, links), list(ways)


def _taken(one: Seat, other: Seat, at: list[int]) -> list[tuple[int, int, int]]:
    """Which replica of one gives units of the batch to which replica of the other, as the simulator has it."""
    found = []
    whole = all(holder.units == UNITS for holder in one)
    for x, reader in enumerate(other):
        if whole:
            near = [k for k, holder in enumerate(one) if holder.device == reader.device]
            near = near or [k for k, holder in enumerate(one) if at[holder.device] == at[reader.device]]
            found.append(((near or [0])[0], x, reader.units))
            continue
        for k, holder in enumerate(one):
            units = min(holder.last, reader.last) - max(holder.first, reader.first)
            if units > 0:
                found.append((k, x, units))
    return found


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.array([0, *accumulate(map(len, rows))], np.int64)
    return starts, np.array([each for row in rows for each in row], np.int64)
