"""Numba kernels of the fast simulator, first half: the tasks of a plan and what waits for what.

The rules and the numbers of tasks are those of :class:`ddlopt.models.deployment.plan.simulator.tasks.Expansion`. Of n
replicas that send gradients to a server, n - 1 wait for as many; here a task that only gathers stands between, and all
gradients on the server are one buffer, which is given up when the last replica has the sum.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.solvers.deployment.plan.simulator.tables import MODEL_PARALLEL, PARAMETER_SERVER, Ints, Tables
from ddlopt.solvers.deployment.plan.simulator.ticks import FINER, Words
from ddlopt.solvers.deployment.plan.simulator.work import BUFFERS, EDGES, NONE, TASKS, Work, helper


class Choice(NamedTuple):
    """A plan: the action of each group, and of each operator whether it is duplicated and the device that it must have.

    ``device`` is -1 where the rule of ``model_parallel`` holds; the last two count only in the modes that have them.
    """

    action: Ints
    duplicated: Ints
    device: Ints


_ZERO, _ONE, _BITS, _HALF = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
_FINER, _REST = np.uint64(FINER), np.uint64(64 - FINER)


@helper
def lay_out(tables: Tables, choice: Choice, work: Work) -> bool:
    """Fill ``work`` with the tasks of a plan; False where there might not be enough room."""
    for k in range(3):
        work.used[k] = 0
    for k in range(work.sent.shape[0]):
        for d in range(work.sent.shape[1]):
            work.sent[k, d] = NONE
    _place(tables, choice, work)
    for place in tables.order:
        if not _has_room(tables, work, place):
            return False
        start, count = work.operator[place].at, work.operator[place].count
        for x in range(start, start + count):
            _compute(tables, work, place, x)
        for i in range(tables.outputs_at[place], tables.outputs_at[place + 1]):
            tensor = tables.outputs[i]
            work.held[tensor] = work.used[BUFFERS]
            for x in range(start, start + count):
                units = tables.cut[work.replica[x].last] - tables.cut[work.replica[x].first]
                _buffer(work, work.replica[x].device, tables.size_bytes[tensor] * (units / tables.units))
        if tables.gradient_bytes[place] == 0.0:
            continue
        work.operator[place].gradient = work.used[BUFFERS]
        for x in range(start, start + count):
            _buffer(work, work.replica[x].device, tables.gradient_bytes[place])
        action = choice.action[tables.group[place]]
        if work.operator[place].whole:
            continue
        if tables.mode[action] != PARAMETER_SERVER:
            _all_reduce(tables, work, place, tables.slot[action])
        else:
            _through_server(tables, work, place)
    return True


@helper
def _place(tables: Tables, choice: Choice, work: Work) -> None:
    """Replicas of all operators."""
    operators, replicas = work.operator, work.replica
    at = 0
    for place in tables.order:
        action = choice.action[tables.group[place]]
        slot = tables.slot[action]
        start, count = tables.seat[slot], tables.seat[slot + 1] - tables.seat[slot]
        whole = count == 1
        if tables.mode[action] == MODEL_PARALLEL:
            wanted = choice.device[place]
            replicas[at].device = tables.spread[place, slot] if wanted < 0 else wanted
            count, whole = 1, True
        else:
            for k in range(count):
                replicas[at + k].seat = start + k
                replicas[at + k].device = tables.device[start + k]
            whole = whole or (choice.duplicated[place] != 0 and tables.mode[action] != PARAMETER_SERVER)
        for k in range(count):
            replicas[at + k].first = 0 if whole else tables.first[start + k]
            replicas[at + k].last = len(tables.cut) - 1 if whole else tables.last[start + k]
        operators[place].at, operators[place].count, operators[place].whole = at, count, 1 if whole else 0
        operators[place].parts = NONE if whole else tables.parts[slot]
        at += count


@helper
def _has_room(tables: Tables, work: Work, place: int) -> bool:
    """Whether there is room for all tasks, edges and buffers that an operator may have."""
    used, count = work.used, work.operator[place].count
    left = len(work.node) - max(used[0], used[1], used[2])
    left -= count * (tables.outputs_at[place + 1] - tables.outputs_at[place] + 8)
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        left -= 3 * count * work.operator[tables.producer[tables.inputs[i]]].count
    return left >= 0


@helper
def _compute(tables: Tables, work: Work, place: int, x: int) -> None:
    """The computation of replica ``x`` of an operator, after the transfers that it needs and that are not there yet."""
    node, replicas = work.node, work.replica
    device, first, last, waits = replicas[x].device, replicas[x].first, replicas[x].last, 0
    for i in range(tables.inputs_at[place], tables.inputs_at[place + 1]):
        tensor = tables.inputs[i]
        low, high = _holders(tables, work, tables.producer[tensor], place, x)
        for holder in range(low, high):
            if replicas[holder].first >= last:
                break
            begin, end = max(first, replicas[holder].first), min(last, replicas[holder].last)
            if begin < end:
                work.found[waits, 0], work.found[waits, 1] = _brought(tables, work, tensor, holder, device, begin, end)
                waits += 1
    task = _task(work, device)
    mine = tables.whole[device] if work.operator[place].whole else tables.work[replicas[x].seat]
    _takes(work, task, tables.time, place, mine)
    node[task].operator, node[task].replica = place, x - work.operator[place].at
    for i in range(waits):
        _wait(work, task, work.found[i, 0], work.found[i, 1])
    replicas[x].task = task


@helper
def _brought(
    tables: Tables, work: Work, tensor: int, holder: int, device: int, begin: int, end: int
) -> tuple[int, int]:
    """What a replica on a device waits for that needs a part of a tensor from its ``holder``: task and buffer."""
    node, parcel = work.node, work.parcel
    source, before = work.replica[holder].device, work.replica[holder].task
    buffer = work.held[tensor] + holder - work.operator[tables.producer[tensor]].at
    if source == device:
        return before, buffer
    if tables.size_bytes[tensor] == 0.0:
        return before, int(NONE)
    sent = work.sent[tensor, device]
    while sent != NONE and not (
        parcel[sent].source == source and parcel[sent].low == begin and parcel[sent].high == end
    ):
        sent = node[sent].before
    if sent == NONE:
        units = tables.cut[end] - tables.cut[begin]
        sent = _task(work, tables.link[source, device])
        _takes_part(tables, work, sent, tensor, tables.rate_of[source, device], units)
        _wait(work, sent, before, buffer)
        node[sent].makes = _buffer(work, device, tables.size_bytes[tensor] * (units / tables.units))
        parcel[sent].source, parcel[sent].low, parcel[sent].high = source, begin, end
        if tables.consumers[tensor] > 1:
            node[sent].before = work.sent[tensor, device]
            work.sent[tensor, device] = sent
    return sent, node[sent].makes


@helper
def _task(work: Work, resource: int) -> int:
    """A new task that takes no time yet."""
    node, used = work.node, work.used
    task = used[TASKS]
    used[TASKS] += 1
    node[task].resource = resource
    node[task].waits = 0
    node[task].head = NONE
    node[task].edges = used[EDGES]
    node[task].edges_end = used[EDGES]
    node[task].makes = NONE
    node[task].operator = NONE
    node[task].length_high = _ZERO
    node[task].length_low = _ZERO
    return task


@helper
def _takes(work: Work, task: int, ticks: Words, row: int, column: int) -> None:
    """A task takes what a table says."""
    work.node[task].length_high, work.node[task].length_low = ticks[row, column, 0], ticks[row, column, 1]


@helper
def _takes_part(tables: Tables, work: Work, task: int, tensor: int, rate: int, units: float) -> None:
    """A transfer of a part of the batch takes ``units`` times what a unit does, and latency."""
    times = np.uint64(units)
    middle, lowest = _product(tables.moved[tensor, rate, 1], times)
    highest, below = _product(tables.moved[tensor, rate, 0], times)
    middle += below
    highest += _ONE if middle < below else _ZERO
    low = (lowest >> _FINER | middle << _REST) + tables.latency[1]
    over = _ONE if low < tables.latency[1] else _ZERO
    work.node[task].length_high = (middle >> _FINER | highest << _REST) + tables.latency[0] + over
    work.node[task].length_low = low


@helper
def _product(one: np.uint64, other: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Upper and lower word of a product of two words, by halves of them."""
    low = (one & _HALF) * (other & _HALF)
    middle = (one >> _BITS) * (other & _HALF) + (low >> _BITS)
    last = (one & _HALF) * (other >> _BITS) + (middle & _HALF)
    return (one >> _BITS) * (other >> _BITS) + (middle >> _BITS) + (last >> _BITS), one * other


@helper
def _wait(work: Work, task: int, before: int, buffer: int) -> None:
    """Make the newest ``task`` wait for one ``before``, and need a buffer unless that is none."""
    node, edge = work.node, work.edge
    new = work.used[EDGES]
    work.used[EDGES] += 1
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
        work.stock[buffer].users += 1


@helper
def _buffer(work: Work, device: int, made: float) -> int:
    buffer, stock = work.used[BUFFERS], work.stock
    work.used[BUFFERS] += 1
    stock[buffer].device = device
    stock[buffer].users = 0
    stock[buffer].made = made
    stock[buffer].size = 0.0
    return buffer


@helper
def _holders(tables: Tables, work: Work, producer: int, place: int, x: int) -> tuple[int, int]:
    """Replicas of the producer that may have what replica ``x`` of an operator needs: from the first up to the second.

    Of those that all have everything the one that the device takes it from.
    """
    operators, replicas, group = work.operator, work.replica, tables.device_group
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
        if group[replicas[holder].device] == group[device]:
            return holder, holder + 1
    return start, start + 1


@helper
def _all_reduce(tables: Tables, work: Work, place: int, slot: int) -> None:
    reduction = _task(work, tables.resources - 1)
    _takes(work, reduction, tables.reduce, place, slot)
    for k in range(work.operator[place].count):
        before = work.replica[work.operator[place].at + k].task
        _wait(work, reduction, before, work.operator[place].gradient + k)


@helper
def _through_server(tables: Tables, work: Work, place: int) -> None:
    """Gradients to the server, and the sum back."""
    node, replicas, gradient = work.node, work.replica, work.operator[place].gradient
    start, count = work.operator[place].at, work.operator[place].count
    server = place % count
    at = replicas[start + server].device
    arrived = work.used[TASKS]
    for k in range(count):
        if k != server:
            source = replicas[start + k].device
            sent = _task(work, tables.link[source, at])
            _takes(work, sent, tables.sent, place, tables.rate_of[source, at])
            _wait(work, sent, replicas[start + k].task, gradient + k)
            node[sent].makes = gradient + server
    gathered = _task(work, NONE)
    _wait(work, gathered, replicas[start + server].task, NONE)
    for sent in range(arrived, gathered):
        _wait(work, gathered, sent, NONE)
    for k in range(count):
        if k != server:
            target = replicas[start + k].device
            back = _task(work, tables.link[at, target])
            _takes(work, back, tables.sent, place, tables.rate_of[at, target])
            _wait(work, back, gathered, gradient + server)
            node[back].makes = _buffer(work, target, tables.gradient_bytes[place])
