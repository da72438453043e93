"""Numba kernels of the branch and bound: when replicas end at least, first come, first served.

The simulator's resources take tasks in the order in which they become ready, and with some groups decided part of that
order is known whatever the others are:

* *Links between device groups.* Transfers of an output wait for the replica that makes it and nothing else, so that the
  link takes them all when it ends, in the order of their readers. A replica that waits for it, directly or through
  others, ends later, and what it sends over the same link comes after all of that.
* *Devices.* An operator that reads on its device only, from p and from what p has waited for there, or what something
  in the same seat has read that p has waited for, becomes ready when p ends. Other readers of p on the device are ready
  then at the earliest, and those that are later in the order come after it; so do all that wait for any of them there.
* *Arrivals.* What comes to one replica over one link comes one after the other.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.frontier.deployment.plan.tree.tables import Tables
from ddlopt.models.kernels import leaf

Bools = npt.NDArray[np.bool_]


class Flow(NamedTuple):
    """Where these kernels calculate.

    Parameters
    ----------
    end_s : (operators, devices)
        Of replicas of operators whose group is decided: when they end at least.
    seat_end_s, first_s : (seats of all operators,), (operators,)
        When the first replica ends at least: of seats of others, and of any operator.
    start_s : (devices,)
        When replicas of a seat can start.
    known_s, until_s, free_s : (operators, devices, links)
        When a link between device groups has done at least what it took before a replica ends, with what the replica
        sends, and what is before that which it sends to readers.
    always_s : (operators, links)
        The least ``until_s`` of all replicas, decided or not.
    ended : (operators, operators)
        Whether the second has ended on the device of each replica of the first.
    turn_s, busy_s : (operators, devices)
        When the device comes to a replica; when it has done what it took until a replica ends.
    transfers, transfer, transfer_s : (tensors,), (tensors, transfers, 2), (tensors, transfers, 3)
        Of each the holder and the device that it goes to; how long it takes, when the link comes to it (-1 before that
        is known), and what comes after it.
    queue, queue_s, done_s : (arrivals, 2), (arrivals, 2), (devices, resources)
        Arrivals at a replica by when they can start: replica and link, start and length; when the link is done, 0
        between calls.
    """

    end_s: Floats
    seat_end_s: Floats
    first_s: Floats
    start_s: Floats
    known_s: Floats
    until_s: Floats
    free_s: Floats
    always_s: Floats
    ended: Bools
    turn_s: Floats
    busy_s: Floats
    transfers: Ints
    transfer: Ints
    transfer_s: Floats
    queue: Ints
    queue_s: Floats
    done_s: Floats


FLOW = (
    "record(Flow, f8[:, ::1], f8[::1], f8[::1], f8[::1], f8[:, :, ::1], f8[:, :, ::1], f8[:, :, ::1], f8[:, ::1],"
    " b1[:, ::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[:, :, ::1], f8[:, :, ::1], i8[:, ::1], f8[:, ::1], f8[:, ::1])"
)


def flow_for(tables: Tables, resources: int) -> Flow:
    """Empty."""
    operators, devices, tensors = len(tables.order), len(tables.room_bytes), len(tables.producer)
    entries = int(np.diff(tables.pair_at).max())
    transfers = entries * int(np.diff(tables.readers_at).max(initial=1))
    arrivals = entries * int(np.diff(tables.inputs_at).max())
    each, links = (operators, devices), resources - 1 - devices
    return Flow(
        end_s=np.zeros(each),
        seat_end_s=np.zeros(len(tables.seats)),
        first_s=np.zeros(operators),
        start_s=np.zeros(devices),
        known_s=np.zeros((*each, links)),
        until_s=np.zeros((*each, links)),
        free_s=np.zeros((*each, links)),
        always_s=np.zeros((operators, links)),
        ended=np.zeros((operators, operators), np.bool_),
        turn_s=np.zeros(each),
        busy_s=np.zeros(each),
        transfers=np.zeros(tensors, np.int64),
        transfer=np.zeros((tensors, transfers, 2), np.int64),
        transfer_s=np.zeros((tensors, transfers, 3)),
        queue=np.zeros((arrivals, 2), np.int64),
        queue_s=np.zeros((arrivals, 2)),
        done_s=np.zeros((devices, resources)),
    )


@leaf
def ends(tables: Tables, chosen: Ints, flow: Flow) -> float:
    """Ends of replicas on longest paths, with the best seat of each operator that is not decided; the last of them."""
    last_s = 0.0
    flow.turn_s[:] = 0.0
    for place in tables.order:
        choice = chosen[tables.group[place]]
        if choice >= 0:
            seat = tables.seat[place, choice]
            _arrive(tables, chosen, flow, place, seat, True)
            first_s, all_s = np.inf, 0.0
            at = tables.seat_at[seat]
            for x in range(tables.seat_at[seat + 1] - at):
                end_s = flow.start_s[x] + tables.time_s[place, at + x]
                flow.end_s[place, x] = end_s
                first_s, all_s = min(first_s, end_s), max(all_s, end_s)
            flow.first_s[place] = first_s
            last_s = max(last_s, all_s + tables.reduce_s[place, choice])
            _send(tables, chosen, flow, place, choice)
            _release(tables, chosen, flow, place, seat)
            continue
        first_s, ended_s = np.inf, np.inf
        for i in range(tables.seats_at[place], tables.seats_at[place + 1]):
            seat = tables.seats[i]
            _arrive(tables, chosen, flow, place, seat, False)
            own_s, all_s = np.inf, 0.0
            at = tables.seat_at[seat]
            for x in range(tables.seat_at[seat + 1] - at):
                end_s = flow.start_s[x] + tables.time_s[place, at + x]
                own_s, all_s = min(own_s, end_s), max(all_s, end_s)
            flow.seat_end_s[i] = own_s
            first_s, ended_s = min(first_s, own_s), min(ended_s, all_s + tables.sync_s[i])
        flow.first_s[place] = first_s
        last_s = max(last_s, ended_s)
        for r in range(flow.always_s.shape[1]):
            flow.always_s[place, r] = 0.0
        for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
            producer = tables.producer[tables.inputs[i]]
            for r in range(flow.always_s.shape[1]):
                flow.always_s[place, r] = max(flow.always_s[place, r], flow.always_s[producer, r])
    return last_s


@leaf
def _arrive(tables: Tables, chosen: Ints, flow: Flow, place: int, seat: int, decided: bool) -> None:
    """When the replicas of an operator in a seat have all that they need, into ``flow.start_s``."""
    at, size, links = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat], flow.always_s.shape[1]
    for x in range(size):
        flow.start_s[x] = flow.turn_s[place, x] if decided else 0.0
        if decided:
            for r in range(links):
                flow.known_s[place, x, r] = 0.0
    seats, queued, devices = len(tables.seat_at) - 1, 0, len(tables.room_bytes)
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        tensor = tables.inputs[i]
        producer, amount = tables.producer[tensor], tables.size_bytes[tensor]
        choice = chosen[tables.group[producer]]
        if choice >= 0:
            pair = tables.seat[producer, choice] * seats + seat
            for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
                x, k = tables.taken_by[e], tables.taken_from[e]
                if decided:
                    for r in range(links):
                        flow.known_s[place, x, r] = max(flow.known_s[place, x, r], flow.until_s[producer, k, r])
                there_s = flow.end_s[producer, k]
                if amount > 0.0:
                    sent_s = amount * tables.per_byte_s[e] + tables.fixed_s[e]
                    r = tables.pair_link[e]
                    if r >= 0:
                        if decided:
                            number = transfer_of(flow, tensor, k, tables.device[at + x], sent_s)
                            there_s = flow.transfer_s[tensor, number, 1]
                        else:
                            there_s = max(there_s, flow.free_s[producer, k, r - devices])
                        queued = _queue(flow, queued, x, r, there_s, sent_s)
                        continue
                    there_s += sent_s
                flow.start_s[x] = max(flow.start_s[x], there_s)
            continue
        least_s = np.inf
        for k in range(tables.seats_at[producer], tables.seats_at[producer + 1]):
            other, there_s = tables.seats[k], flow.seat_end_s[k]
            if amount > 0.0:
                there_s += amount * tables.delay_per_byte_s[other, seat] + tables.delay_s[other, seat]
            least_s = min(least_s, there_s)
        for x in range(size):
            flow.start_s[x] = max(flow.start_s[x], least_s)
            if decided:
                for r in range(links):
                    flow.known_s[place, x, r] = max(flow.known_s[place, x, r], flow.always_s[producer, r])
    for q in range(queued):
        x, r = flow.queue[q, 0], flow.queue[q, 1]
        done_s = max(flow.done_s[x, r], flow.queue_s[q, 0]) + flow.queue_s[q, 1]
        flow.done_s[x, r] = done_s
        flow.start_s[x] = max(flow.start_s[x], done_s)
    for q in range(queued):
        flow.done_s[flow.queue[q, 0], flow.queue[q, 1]] = 0.0


@leaf
def _release(tables: Tables, chosen: Ints, flow: Flow, place: int, seat: int) -> None:
    """When devices come to what reads from an operator there."""
    seats, operators = len(tables.seat_at) - 1, len(tables.group)
    at, count = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat]
    for o in range(operators):
        flow.ended[place, o] = False
    for k in range(count):
        flow.busy_s[place, k] = 0.0
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        producer = tables.producer[tables.inputs[i]]
        choice = chosen[tables.group[producer]]
        if choice < 0:
            continue
        source = tables.seat[producer, choice]
        pair = source * seats + seat
        for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
            k, x = tables.taken_from[e], tables.taken_by[e]
            if tables.device[tables.seat_at[source] + k] == tables.device[at + x]:
                flow.busy_s[place, x] = max(flow.busy_s[place, x], flow.busy_s[producer, k])
        if tables.near[source, seat]:
            flow.ended[place, producer] = True
            for o in range(operators):
                flow.ended[place, o] = flow.ended[place, o] or flow.ended[producer, o]
    for k in range(count):
        flow.busy_s[place, k] = max(flow.busy_s[place, k], flow.end_s[place, k])
    for j in range(tables.heirs_at[place], tables.heirs_at[place + 1]):
        reader = tables.heirs[j]
        other = chosen[tables.group[reader]]
        if other < 0:
            continue
        b = tables.seat[reader, other]
        alone = _waits_only_for(tables, chosen, flow, reader, b, place)
        pair = seat * seats + b
        for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
            k, x = tables.taken_from[e], tables.taken_by[e]
            if tables.device[at + k] == tables.device[tables.seat_at[b] + x]:
                flow.turn_s[reader, x] = max(flow.turn_s[reader, x], flow.busy_s[place, k])
                if alone:
                    flow.busy_s[place, k] += tables.time_s[reader, tables.seat_at[b] + x]


@leaf
def _waits_only_for(tables: Tables, chosen: Ints, flow: Flow, reader: int, seat: int, place: int) -> bool:
    """Whether the reader is ready on each device as soon as the operator has ended there."""
    for i in range(tables.inputs_at[reader], tables.inputs_at[reader + 1]):
        tensor = tables.inputs[i]
        producer = tables.producer[tensor]
        choice = chosen[tables.group[producer]]
        if choice < 0:
            return False
        if (producer == place or flow.ended[place, producer]) and tables.near[tables.seat[producer, choice], seat]:
            continue
        # It has come if something in the same seat has read it.
        come = False
        for j in range(tables.readers_at[tensor], tables.readers_at[tensor + 1]):
            other = tables.readers[j]
            if other == place or flow.ended[place, other]:
                choice = chosen[tables.group[other]]
                come = come or (choice >= 0 and tables.seat[other, choice] == seat)
        if not come:
            return False
    return True


@leaf
def transfer_of(flow: Flow, tensor: int, k: int, device: int, work_s: float) -> int:
    """Which transfer of a tensor it is: from a replica to a device, with its seconds; one more if there is none."""
    for number in range(flow.transfers[tensor]):
        known = flow.transfer[tensor, number, 0] == k and flow.transfer[tensor, number, 1] == device
        if known and flow.transfer_s[tensor, number, 0] == work_s:
            return number
    number = flow.transfers[tensor]
    flow.transfers[tensor] += 1
    flow.transfer[tensor, number, 0], flow.transfer[tensor, number, 1], flow.transfer_s[tensor, number, 0] = (
        k,
        device,
        work_s,
    )
    flow.transfer_s[tensor, number, 1] = -1.0
    flow.transfer_s[tensor, number, 2] = 0.0
    return number


@leaf
def _send(tables: Tables, chosen: Ints, flow: Flow, place: int, choice: int) -> None:
    """When transfers from the replicas of an operator can start: each link takes them as soon as their replica ends."""
    seat, links, devices = tables.seat[place, choice], flow.always_s.shape[1], len(tables.room_bytes)
    at, count, seats = tables.seat_at[seat], tables.seat_at[seat + 1] - tables.seat_at[seat], len(tables.seat_at) - 1
    for k in range(count):
        for r in range(links):
            flow.until_s[place, k, r] = flow.known_s[place, k, r]
            flow.free_s[place, k, r] = max(flow.end_s[place, k], flow.known_s[place, k, r])
    if tables.server[place, choice]:
        target = tables.device[at + place % count]
        for k in range(count):
            d = tables.device[at + k]
            r = tables.link[d, target] - devices
            if r >= 0:
                flow.free_s[place, k, r] += tables.gradient_bytes[place] / tables.rate[d, target] + tables.latency_s
                flow.until_s[place, k, r] = flow.free_s[place, k, r]
    for o in range(tables.outputs_at[place], tables.outputs_at[place + 1]):
        flow.transfers[tables.outputs[o]] = 0
    for j in range(tables.heirs_at[place], tables.heirs_at[place + 1]):
        reader = tables.heirs[j]
        other = chosen[tables.group[reader]]
        if other < 0:
            continue
        b = tables.seat[reader, other]
        pair = seat * seats + b
        for x in range(tables.seat_at[b + 1] - tables.seat_at[b]):
            device = tables.device[tables.seat_at[b] + x]
            for i in range(tables.inputs_at[reader], tables.inputs_at[reader + 1]):
                tensor = tables.inputs[i]
                if tables.producer[tensor] != place or tables.size_bytes[tensor] == 0.0:
                    continue
                for e in range(tables.pair_at[pair], tables.pair_at[pair + 1]):
                    if tables.taken_by[e] != x or tables.pair_link[e] < 0:
                        continue
                    k, r = tables.taken_from[e], tables.pair_link[e] - devices
                    work_s = tables.size_bytes[tensor] * tables.per_byte_s[e] + tables.fixed_s[e]
                    number = transfer_of(flow, tensor, k, device, work_s)
                    if flow.transfer_s[tensor, number, 1] < 0.0:
                        start_s = max(flow.until_s[place, k, r], flow.free_s[place, k, r])
                        flow.until_s[place, k, r] = start_s + work_s
                        # One that is not decided may have asked for the same before others did.
                        for q in range(tables.readers_at[tensor], tables.readers_at[tensor + 1]):
                            if chosen[tables.group[tables.readers[q]]] < 0:
                                start_s = flow.free_s[place, k, r]
                        flow.transfer_s[tensor, number, 1] = start_s
    for r in range(links):
        least_s = np.inf
        for k in range(count):
            least_s = min(least_s, flow.until_s[place, k, r])
        flow.always_s[place, r] = least_s


@leaf
def _queue(flow: Flow, queued: int, x: int, r: int, head_s: float, work_s: float) -> int:
    """One more transfer to a replica, in the order of when they can start."""
    q = queued
    while q > 0 and flow.queue_s[q - 1, 0] > head_s:
        flow.queue[q, 0], flow.queue[q, 1] = flow.queue[q - 1, 0], flow.queue[q - 1, 1]
        flow.queue_s[q, 0], flow.queue_s[q, 1] = flow.queue_s[q - 1, 0], flow.queue_s[q - 1, 1]
        q -= 1
    flow.queue[q, 0], flow.queue[q, 1], flow.queue_s[q, 0], flow.queue_s[q, 1] = x, r, head_s, work_s
    return queued + 1
