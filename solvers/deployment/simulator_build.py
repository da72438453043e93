"""Numba kernels of the fast simulator, first half: the tasks of a plan and what waits for what.

The rules and the numbers of tasks are those of :class:`ddlopt.models.deployment.tasks.Expansion`. Of n replicas that
send gradients to a server, n - 1 wait for as many; here a task that only gathers stands between, and all gradients on
the server are one buffer, which is given up when the last replica has the sum.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__``.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

from numba import njit

from ddlopt.solvers.deployment.simulator_tables import MODEL_PARALLEL, PARAMETER_SERVER, Floats, Ints, Tables
from ddlopt.solvers.deployment.simulator_work import (
    ALIKE,
    AT,
    BEFORE,
    BUFFER,
    BUFFERS,
    COUNT,
    DEVICE,
    DURATION,
    EDGES,
    EDGES_END,
    EDGES_USED,
    FIRST,
    GRADIENT,
    HEAD,
    HIGH,
    LAST,
    LOW,
    MADE,
    MAKES,
    NEXT,
    NONE,
    OPERATOR,
    REPLICA,
    RESOURCE,
    SEAT,
    SIZE,
    SOURCE,
    TAIL,
    TASK,
    TASKS,
    TO,
    USERS,
    WAITS,
    WHOLE,
    Work,
)


class Choice(NamedTuple):
    """A plan: the action of each group, and of each operator whether it is duplicated and the device that it must have.

    ``device`` is -1 where the rule of ``model_parallel`` holds; the last two count only in the modes that have them.
    """

    action: Ints
    duplicated: Ints
    device: Ints


@njit(cache=True)
def lay_out(tables: Tables, choice: Choice, work: Work) -> bool:
    """Fill ``work`` with the tasks of a plan; False where there might not be enough room."""
    work.used[:] = 0
    work.sent[:] = NONE
    _place(tables, choice, work)
    operators, replicas, held, sent_to, found = work.operator, work.replica, work.held, work.sent, work.found
    node, cost, edge, stock, size, used = work.node, work.cost, work.edge, work.stock, work.size, work.used
    inputs_at, inputs, producers, consumers = tables.inputs_at, tables.inputs, tables.producer, tables.consumers
    outputs_at, outputs, size_bytes, latency = tables.outputs_at, tables.outputs, tables.size_bytes, tables.latency_s
    time_s, whole_s, reduce_s, gradient_bytes = tables.time_s, tables.whole_s, tables.reduce_s, tables.gradient_bytes
    link, rate, device_group, channel, units = (
        tables.link,
        tables.rate,
        tables.device_group,
        tables.resources - 1,
        tables.units,
    )
    for place in tables.order:
        start, count, whole = operators[place, AT], operators[place, COUNT], operators[place, WHOLE]
        spare = len(node) - used.max() - count * (outputs_at[place + 1] - outputs_at[place] + 8)
        for i in range(inputs_at[place], inputs_at[place + 1]):
            spare -= 3 * count * operators[producers[inputs[i]], COUNT]
        if spare < 0:
            return False
        for x in range(start, start + count):
            device, first, last, waits = replicas[x, DEVICE], replicas[x, FIRST], replicas[x, LAST], 0
            for i in range(inputs_at[place], inputs_at[place + 1]):
                tensor = inputs[i]
                producer = producers[tensor]
                low, high = _holders(producer, place, x, operators, replicas, device_group)
                for holder in range(low, high):
                    begin, end = max(first, replicas[holder, FIRST]), min(last, replicas[holder, LAST])
                    if begin >= end:
                        continue
                    source, before = replicas[holder, DEVICE], replicas[holder, TASK]
                    buffer = held[tensor] + holder - operators[producer, AT]
                    if source != device and size_bytes[tensor] == 0.0:
                        buffer = NONE
                    elif source != device:
                        sent = sent_to[tensor, device]
                        while sent != NONE and not _carries(sent, source, begin, end, node):
                            sent = node[sent, BEFORE]
                        if sent == NONE:
                            amount = size_bytes[tensor] * ((end - begin) / units)
                            sent = _task(
                                link[source, device], amount / rate[source, device] + latency, node, cost, used
                            )
                            _wait(sent, before, buffer, node, edge, stock, used)
                            node[sent, MAKES] = _buffer(device, amount, stock, size, used)
                            node[sent, SOURCE], node[sent, LOW], node[sent, HIGH] = source, begin, end
                            if consumers[tensor] > 1:
                                node[sent, BEFORE] = sent_to[tensor, device]
                                sent_to[tensor, device] = sent
                        before, buffer = sent, node[sent, MAKES]
                    found[waits, 0], found[waits, 1] = before, buffer
                    waits += 1
            task = _task(
                device, whole_s[place, device] if whole else time_s[place, replicas[x, SEAT]], node, cost, used
            )
            node[task, OPERATOR], node[task, REPLICA] = place, x - start
            for i in range(waits):
                _wait(task, found[i, 0], found[i, 1], node, edge, stock, used)
            replicas[x, TASK] = task
        for i in range(outputs_at[place], outputs_at[place + 1]):
            held[outputs[i]] = used[BUFFERS]
            for x in range(start, start + count):
                share = (replicas[x, LAST] - replicas[x, FIRST]) / units
                _buffer(replicas[x, DEVICE], size_bytes[outputs[i]] * share, stock, size, used)
        if gradient_bytes[place] == 0.0:
            continue
        operators[place, GRADIENT] = used[BUFFERS]
        for x in range(start, start + count):
            _buffer(replicas[x, DEVICE], gradient_bytes[place], stock, size, used)
        if whole:
            continue
        action = choice.action[tables.group[place]]
        if tables.mode[action] != PARAMETER_SERVER:
            _all_reduce(
                place, channel, reduce_s[place, tables.slot[action]], operators, replicas, node, cost, edge, stock, used
            )
        else:
            amount = gradient_bytes[place]
            _through_server(
                place, amount, latency, link, rate, operators, replicas, node, cost, edge, stock, size, used
            )
    return True


@njit(cache=True)
def _place(tables: Tables, choice: Choice, work: Work) -> None:
    """Replicas of all operators."""
    operators, replicas = work.operator, work.replica
    group, mode, slots, seats = tables.group, tables.mode, tables.slot, tables.seat
    first, last, units = tables.first, tables.last, int(tables.units)
    at = 0
    for place in tables.order:
        action = choice.action[group[place]]
        slot = slots[action]
        start, count = seats[slot], seats[slot + 1] - seats[slot]
        whole = count == 1
        if mode[action] == MODEL_PARALLEL:
            wanted = choice.device[place]
            replicas[at, DEVICE] = tables.spread[place, slot] if wanted < 0 else wanted
            count, whole = 1, True
        else:
            for k in range(count):
                replicas[at + k, SEAT] = start + k
                replicas[at + k, DEVICE] = tables.device[start + k]
            whole = whole or (choice.duplicated[place] != 0 and mode[action] != PARAMETER_SERVER)
        for k in range(count):
            replicas[at + k, FIRST] = 0 if whole else first[start + k]
            replicas[at + k, LAST] = units if whole else last[start + k]
        operators[place, AT], operators[place, COUNT], operators[place, WHOLE] = at, count, 1 if whole else 0
        operators[place, ALIKE] = NONE if whole else tables.alike[slot]
        at += count


@njit(cache=True)
def _task(resource: int, duration: float, node: Ints, cost: Floats, used: Ints) -> int:
    task = used[TASKS]
    used[TASKS] += 1
    node[task, RESOURCE] = resource
    node[task, WAITS] = 0
    node[task, HEAD] = NONE
    node[task, EDGES] = used[EDGES_USED]
    node[task, EDGES_END] = used[EDGES_USED]
    node[task, MAKES] = NONE
    node[task, OPERATOR] = NONE
    cost[task, DURATION] = duration
    return task


@njit(cache=True)
def _wait(task: int, before: int, buffer: int, node: Ints, edge: Ints, stock: Ints, used: Ints) -> None:
    """Make the newest ``task`` wait for one ``before``, and need a buffer unless that is -1."""
    new = used[EDGES_USED]
    used[EDGES_USED] += 1
    edge[new, TO] = task
    edge[new, NEXT] = NONE
    edge[new, BUFFER] = buffer
    if node[before, HEAD] == NONE:
        node[before, HEAD] = new
    else:
        edge[node[before, TAIL], NEXT] = new
    node[before, TAIL] = new
    node[task, WAITS] += 1
    node[task, EDGES_END] = new + 1
    if buffer != NONE:
        stock[buffer, USERS] += 1


@njit(cache=True)
def _buffer(device: int, made: float, stock: Ints, size: Floats, used: Ints) -> int:
    buffer = used[BUFFERS]
    used[BUFFERS] += 1
    stock[buffer, DEVICE] = device
    stock[buffer, USERS] = 0
    size[buffer, MADE] = made
    size[buffer, SIZE] = 0.0
    return buffer


@njit(cache=True)
def _carries(sent: int, source: int, begin: int, end: int, node: Ints) -> bool:
    return node[sent, SOURCE] == source and node[sent, LOW] == begin and node[sent, HIGH] == end


@njit(cache=True)
def _holders(producer: int, place: int, x: int, operators: Ints, replicas: Ints, device_group: Ints) -> tuple[int, int]:
    """Replicas of the producer that may have what replica ``x`` of an operator needs: from the first up to the second.

    Of those that all have everything the one that the device takes it from.
    """
    start, count = operators[producer, AT], operators[producer, COUNT]
    if operators[producer, ALIKE] == operators[place, ALIKE] and not operators[place, WHOLE]:
        alike = start + x - operators[place, AT]
        return alike, alike + 1
    if not operators[producer, WHOLE]:
        return start, start + count
    near, device = NONE, replicas[x, DEVICE]
    for holder in range(start, start + count):
        if replicas[holder, DEVICE] == device:
            return holder, holder + 1
        if near == NONE and device_group[replicas[holder, DEVICE]] == device_group[device]:
            near = holder
    near = start if near == NONE else near
    return near, near + 1


@njit(cache=True)
def _all_reduce(
    place: int,
    channel: int,
    duration: float,
    operators: Ints,
    replicas: Ints,
    node: Ints,
    cost: Floats,
    edge: Ints,
    stock: Ints,
    used: Ints,
) -> None:
    reduction = _task(channel, duration, node, cost, used)
    for k in range(operators[place, COUNT]):
        before = replicas[operators[place, AT] + k, TASK]
        _wait(reduction, before, operators[place, GRADIENT] + k, node, edge, stock, used)


@njit(cache=True)
def _through_server(
    place: int,
    amount: float,
    latency: float,
    link: Ints,
    rate: Floats,
    operators: Ints,
    replicas: Ints,
    node: Ints,
    cost: Floats,
    edge: Ints,
    stock: Ints,
    size: Floats,
    used: Ints,
) -> None:
    """Gradients to the server, and the sum back."""
    start, count, gradient = operators[place, AT], operators[place, COUNT], operators[place, GRADIENT]
    server = place % count
    at = replicas[start + server, DEVICE]
    arrived = used[TASKS]
    for k in range(count):
        if k != server:
            source = replicas[start + k, DEVICE]
            sent = _task(link[source, at], amount / rate[source, at] + latency, node, cost, used)
            _wait(sent, replicas[start + k, TASK], gradient + k, node, edge, stock, used)
            node[sent, MAKES] = gradient + server
    gathered = _task(NONE, 0.0, node, cost, used)
    _wait(gathered, replicas[start + server, TASK], NONE, node, edge, stock, used)
    for sent in range(arrived, gathered):
        _wait(gathered, sent, NONE, node, edge, stock, used)
    for k in range(count):
        if k != server:
            target = replicas[start + k, DEVICE]
            back = _task(link[at, target], amount / rate[at, target] + latency, node, cost, used)
            _wait(back, gathered, gradient + server, node, edge, stock, used)
            node[back, MAKES] = _buffer(target, amount, stock, size, used)
