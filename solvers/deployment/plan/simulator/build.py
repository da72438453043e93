"""Numba kernels of the fast simulator, first half: the tasks of a plan and what waits for what.

The rules and the numbers of tasks are those of :class:`ddlopt.models.deployment.plan.simulator.tasks.Expansion`. Of n
replicas that send gradients to a server, n - 1 wait for as many; here a task that only gathers stands between, and all
gradients on the server are one buffer, which is given up when the last replica has the sum.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.solvers.deployment.plan.simulator.tables import MODEL_PARALLEL, PARAMETER_SERVER, Floats, Ints, Tables
from ddlopt.solvers.deployment.plan.simulator.ticks import Words
from ddlopt.solvers.deployment.plan.simulator.work import BUFFERS, EDGES, NONE, TASKS, Records, Work, helper


class Choice(NamedTuple):
    """A plan: the action of each group, and of each operator whether it is duplicated and the device that it must have.

    ``device`` is -1 where the rule of ``model_parallel`` holds; the last two count only in the modes that have them.
    """

    action: Ints
    duplicated: Ints
    device: Ints


_ZERO, _ONE, _BITS, _HALF = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)


@helper
def lay_out(tables: Tables, choice: Choice, work: Work) -> bool:
    """Fill ``work`` with the tasks of a plan; False where there might not be enough room."""
    for k in range(3):
        work.used[k] = 0
    for k in range(work.sent.shape[0]):
        for d in range(work.sent.shape[1]):
            work.sent[k, d] = NONE
    _place(tables, choice, work)
    operators, replicas, held, sent_to, found = work.operator, work.replica, work.held, work.sent, work.found
    node, edge, stock, used, parcel = work.node, work.edge, work.stock, work.used, work.parcel
    inputs_at, inputs, producers, consumers = tables.inputs_at, tables.inputs, tables.producer, tables.consumers
    outputs_at, outputs, size_bytes, latency = tables.outputs_at, tables.outputs, tables.size_bytes, tables.latency_s
    work_of, whole_of, time_s, time_of = tables.work, tables.whole, tables.time_s, tables.time
    reduce_s, reduces, gradient_bytes = tables.reduce_s, tables.reduce, tables.gradient_bytes
    rate_of, moved, sent_of, late = tables.rate_of, tables.moved, tables.sent, tables.latency
    link, rate, device_group, channel, units = (
        tables.link,
        tables.rate,
        tables.device_group,
        tables.resources - 1,
        tables.units,
    )
    cut = tables.cut
    for place in tables.order:
        start, count, whole = operators[place].at, operators[place].count, operators[place].whole
        spare = len(node) - max(used[0], used[1], used[2]) - count * (outputs_at[place + 1] - outputs_at[place] + 8)
        for i in range(inputs_at[place], inputs_at[place + 1]):
            spare -= 3 * count * operators[producers[inputs[i]]].count
        if spare < 0:
            return False
        for x in range(start, start + count):
            device, first, last, waits = replicas[x].device, replicas[x].first, replicas[x].last, 0
            for i in range(inputs_at[place], inputs_at[place + 1]):
                tensor = inputs[i]
                producer = producers[tensor]
                low, high = _holders(producer, place, x, operators, replicas, device_group)
                for holder in range(low, high):
                    if replicas[holder].first >= last:
                        break
                    begin, end = max(first, replicas[holder].first), min(last, replicas[holder].last)
                    if begin >= end:
                        continue
                    source, before = replicas[holder].device, replicas[holder].task
                    buffer = held[tensor] + holder - operators[producer].at
                    if source != device and size_bytes[tensor] == 0.0:
                        buffer = NONE
                    elif source != device:
                        sent = sent_to[tensor, device]
                        while sent != NONE and not _carries(sent, source, begin, end, parcel):
                            sent = node[sent].before
                        if sent == NONE:
                            amount = size_bytes[tensor] * ((cut[end] - cut[begin]) / units)
                            sent = _task(link[source, device], amount / rate[source, device] + latency, node, used)
                            _part_of(node, sent, moved, tensor, rate_of[source, device], cut[end] - cut[begin], late)
                            _wait(sent, before, buffer, node, edge, stock, used)
                            node[sent].makes = _buffer(device, amount, stock, used)
                            parcel[sent].source, parcel[sent].low, parcel[sent].high = source, begin, end
                            if consumers[tensor] > 1:
                                node[sent].before = sent_to[tensor, device]
                                sent_to[tensor, device] = sent
                        before, buffer = sent, node[sent].makes
                    found[waits, 0], found[waits, 1] = before, buffer
                    waits += 1
            mine = whole_of[device] if whole else work_of[replicas[x].seat]
            task = _task(device, time_s[place, mine], node, used)
            node[task].length_high, node[task].length_low = time_of[place, mine, 0], time_of[place, mine, 1]
            node[task].operator, node[task].replica = place, x - start
            for i in range(waits):
                _wait(task, found[i, 0], found[i, 1], node, edge, stock, used)
            replicas[x].task = task
        for i in range(outputs_at[place], outputs_at[place + 1]):
            held[outputs[i]] = used[BUFFERS]
            for x in range(start, start + count):
                share = (cut[replicas[x].last] - cut[replicas[x].first]) / units
                _buffer(replicas[x].device, size_bytes[outputs[i]] * share, stock, used)
        if gradient_bytes[place] == 0.0:
            continue
        operators[place].gradient = used[BUFFERS]
        for x in range(start, start + count):
            _buffer(replicas[x].device, gradient_bytes[place], stock, used)
        if whole:
            continue
        action = choice.action[tables.group[place]]
        if tables.mode[action] != PARAMETER_SERVER:
            slot = tables.slot[action]
            reduction = _all_reduce(place, channel, reduce_s[place, slot], operators, replicas, node, edge, stock, used)
            node[reduction].length_high, node[reduction].length_low = reduces[place, slot, 0], reduces[place, slot, 1]
        else:
            amount = gradient_bytes[place]
            _through_server(
                place, amount, latency, link, rate, rate_of, sent_of, operators, replicas, node, edge, stock, used
            )
    return True


@helper
def _place(tables: Tables, choice: Choice, work: Work) -> None:
    """Replicas of all operators."""
    operators, replicas = work.operator, work.replica
    group, mode, slots, seats = tables.group, tables.mode, tables.slot, tables.seat
    first, last, units = tables.first, tables.last, len(tables.cut) - 1
    at = 0
    for place in tables.order:
        action = choice.action[group[place]]
        slot = slots[action]
        start, count = seats[slot], seats[slot + 1] - seats[slot]
        whole = count == 1
        if mode[action] == MODEL_PARALLEL:
            wanted = choice.device[place]
            replicas[at].device = tables.spread[place, slot] if wanted < 0 else wanted
            count, whole = 1, True
        else:
            for k in range(count):
                replicas[at + k].seat = start + k
                replicas[at + k].device = tables.device[start + k]
            whole = whole or (choice.duplicated[place] != 0 and mode[action] != PARAMETER_SERVER)
        for k in range(count):
            replicas[at + k].first = 0 if whole else first[start + k]
            replicas[at + k].last = units if whole else last[start + k]
        operators[place].at, operators[place].count, operators[place].whole = at, count, 1 if whole else 0
        operators[place].parts = NONE if whole else tables.parts[slot]
        at += count


@helper
def _task(resource: int, duration: float, node: Records, used: Ints) -> int:
    task = used[TASKS]
    used[TASKS] += 1
    node[task].resource = resource
    node[task].waits = 0
    node[task].head = NONE
    node[task].edges = used[EDGES]
    node[task].edges_end = used[EDGES]
    node[task].makes = NONE
    node[task].operator = NONE
    node[task].duration_s = duration
    node[task].length_high = _ZERO
    node[task].length_low = _ZERO
    return task


@helper
def _part_of(node: Records, task: int, moved: Words, tensor: int, rate: int, units: float, latency: Words) -> None:
    """Ticks of the transfer of a part of the batch: ``units`` times those of a unit, of 128 bits, and latency."""
    high, low, times = moved[tensor, rate, 0], moved[tensor, rate, 1], np.uint64(units)
    # Upper half of the product of two words of 64 bits, by words of 32.
    first, second, one, other = low & _HALF, low >> _BITS, times & _HALF, times >> _BITS
    middle = second * one + ((first * one) >> _BITS)
    carried = second * other + (middle >> _BITS) + ((first * other + (middle & _HALF)) >> _BITS)
    below = low * times + latency[1]
    over = _ONE if below < latency[1] else _ZERO
    node[task].length_low = below
    node[task].length_high = high * times + carried + latency[0] + over


@helper
def _wait(task: int, before: int, buffer: int, node: Records, edge: Records, stock: Records, used: Ints) -> None:
    """Make the newest ``task`` wait for one ``before``, and need a buffer unless that is -1."""
    new = used[EDGES]
    used[EDGES] += 1
    edge[new].to = task
    edge[new].next = NONE
    edge[new].buffer = buffer
    if node[before].head == NONE:
        node[before].head = new
    else:
        edge[node[before].tail].next = new
    node[before].tail = new
    node[task].waits += 1
    node[task].edges_end = new + 1
    if buffer != NONE:
        stock[buffer].users += 1


@helper
def _buffer(device: int, made: float, stock: Records, used: Ints) -> int:
    buffer = used[BUFFERS]
    used[BUFFERS] += 1
    stock[buffer].device = device
    stock[buffer].users = 0
    stock[buffer].made = made
    stock[buffer].size = 0.0
    return buffer


@helper
def _carries(sent: int, source: int, begin: int, end: int, parcel: Records) -> bool:
    return parcel[sent].source == source and parcel[sent].low == begin and parcel[sent].high == end


@helper
def _holders(
    producer: int, place: int, x: int, operators: Records, replicas: Records, device_group: Ints
) -> tuple[int, int]:
    """Replicas of the producer that may have what replica ``x`` of an operator needs: from the first up to the second.

    Of those that all have everything the one that the device takes it from.
    """
    start, count = operators[producer].at, operators[producer].count
    if operators[producer].parts == operators[place].parts and not operators[place].whole:
        same = start + x - operators[place].at
        return same, same + 1
    if not operators[producer].whole:
        return start, start + count
    device = replicas[x].device
    for holder in range(start, start + count):
        if replicas[holder].device == device:
            return holder, holder + 1
    for holder in range(start, start + count):
        if device_group[replicas[holder].device] == device_group[device]:
            return holder, holder + 1
    return start, start + 1


@helper
def _all_reduce(
    place: int,
    channel: int,
    duration: float,
    operators: Records,
    replicas: Records,
    node: Records,
    edge: Records,
    stock: Records,
    used: Ints,
) -> int:
    reduction = _task(channel, duration, node, used)
    for k in range(operators[place].count):
        before = replicas[operators[place].at + k].task
        _wait(reduction, before, operators[place].gradient + k, node, edge, stock, used)
    return reduction


@helper
def _through_server(
    place: int,
    amount: float,
    latency: float,
    link: Ints,
    rate: Floats,
    rate_of: Ints,
    sent_of: Words,
    operators: Records,
    replicas: Records,
    node: Records,
    edge: Records,
    stock: Records,
    used: Ints,
) -> None:
    """Gradients to the server, and the sum back."""
    start, count, gradient = operators[place].at, operators[place].count, operators[place].gradient
    server = place % count
    at = replicas[start + server].device
    arrived = used[TASKS]
    for k in range(count):
        if k != server:
            source = replicas[start + k].device
            sent = _task(link[source, at], amount / rate[source, at] + latency, node, used)
            way = rate_of[source, at]
            node[sent].length_high, node[sent].length_low = sent_of[place, way, 0], sent_of[place, way, 1]
            _wait(sent, replicas[start + k].task, gradient + k, node, edge, stock, used)
            node[sent].makes = gradient + server
    gathered = _task(NONE, 0.0, node, used)
    _wait(gathered, replicas[start + server].task, NONE, node, edge, stock, used)
    for sent in range(arrived, gathered):
        _wait(gathered, sent, NONE, node, edge, stock, used)
    for k in range(count):
        if k != server:
            target = replicas[start + k].device
            back = _task(link[at, target], amount / rate[at, target] + latency, node, used)
            way = rate_of[at, target]
            node[back].length_high, node[back].length_low = sent_of[place, way, 0], sent_of[place, way, 1]
            _wait(back, gathered, gradient + server, node, edge, stock, used)
            node[back].makes = _buffer(target, amount, stock, used)
