"""Numba kernels of the fast simulator, first half: the tasks of a plan and what waits for what.

The rules and the numbers of tasks are those of :class:`ddlopt.models.deployment.tasks.Expansion`. Of n replicas that
send gradients to a server, n - 1 wait for as many; here a task that only gathers stands between, and all gradients on
the server are one buffer, which is given up when the last replica has the sum.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__``.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

from numba import njit

from ddlopt.solvers.deployment.simulator_tables import MODEL_PARALLEL, PARAMETER_SERVER, Ints, Tables
from ddlopt.solvers.deployment.simulator_work import NONE, Replicas, Tasks

_TASKS, _EDGES, _NEEDS, _BUFFERS, _FOUND = range(5)


class Choice(NamedTuple):
    """A plan: the action of each group, and of each operator whether it is duplicated and the device that it must have.

    ``device`` is -1 where the rule of ``model_parallel`` holds; the last two count only in the modes that have them.
    """

    action: Ints
    duplicated: Ints
    device: Ints


@njit(cache=True)
def lay_out(tables: Tables, choice: Choice, replicas: Replicas, tasks: Tasks) -> bool:
    """Fill ``replicas`` and ``tasks``; False where there is not enough room."""
    tasks.used[:] = 0
    replicas.sent[:] = NONE
    reached = 0
    for operator in tables.order:
        reached += _place(operator, reached, tables, choice, replicas)
    for operator in tables.order:
        if not _fits(operator, tables, replicas, tasks):
            return False
        start = replicas.at[operator]
        for x in range(start, start + replicas.count[operator]):
            _compute(operator, x, tables, replicas, tasks)
        _hold(operator, tables, replicas, tasks)
        if tables.gradient_bytes[operator] > 0.0:
            _synchronise(operator, tables, choice, replicas, tasks)
    return True


@njit(cache=True)
def _place(operator: int, at: int, tables: Tables, choice: Choice, replicas: Replicas) -> int:
    """Replicas of one operator; returns how many."""
    group = tables.group[operator]
    action = choice.action[group]
    slot = tables.slot[action]
    replicas.at[operator] = at
    replicas.alike[operator] = NONE
    replicas.whole[operator] = 1
    if tables.mode[action] == MODEL_PARALLEL:
        wanted = choice.device[operator]
        replicas.device[at] = tables.spread[operator, slot] if wanted < 0 else wanted
        replicas.first[at], replicas.last[at] = 0, int(tables.units)
        replicas.count[operator] = 1
        return 1
    start = tables.seat[slot]
    count = tables.seat[slot + 1] - start
    replicas.count[operator] = count
    duplicated = choice.duplicated[operator] != 0 and count > 1 and tables.mode[action] != PARAMETER_SERVER
    for k in range(count):
        replicas.seat[at + k] = start + k
        replicas.device[at + k] = tables.device[start + k]
        replicas.first[at + k] = 0 if duplicated else tables.first[group, start + k]
        replicas.last[at + k] = int(tables.units) if duplicated else tables.last[group, start + k]
    if not duplicated and count > 1:
        replicas.alike[operator] = tables.alike[group, slot]
        replicas.whole[operator] = 0
    return count


@njit(cache=True)
def _fits(operator: int, tables: Tables, replicas: Replicas, tasks: Tasks) -> bool:
    """Whether there is room for what one operator may add."""
    count = replicas.count[operator]
    more = 4 * count + 4
    for i in range(tables.inputs_at[operator], tables.inputs_at[operator + 1]):
        more += count * replicas.count[tables.producer[tables.inputs[i]]]
    more += count * (tables.outputs_at[operator + 1] - tables.outputs_at[operator])
    return tasks.used[:4].max() + 3 * more < len(tasks.resource)


@njit(cache=True)
def _add(resource: int, duration: float, operator: int, tasks: Tasks) -> int:
    task = tasks.used[_TASKS]
    tasks.used[_TASKS] += 1
    tasks.resource[task] = resource
    tasks.duration[task] = duration
    tasks.operator[task] = operator
    tasks.waits[task] = 0
    tasks.head[task] = NONE
    tasks.makes[task] = NONE
    tasks.needs_from[task] = tasks.used[_NEEDS]
    tasks.needs_to[task] = tasks.used[_NEEDS]
    return task


@njit(cache=True)
def _buffer(device: int, size: float, tasks: Tasks) -> int:
    buffer = tasks.used[_BUFFERS]
    tasks.used[_BUFFERS] += 1
    tasks.made[buffer] = size
    tasks.size[buffer] = 0.0
    tasks.device[buffer] = device
    tasks.users[buffer] = 0
    return buffer


@njit(cache=True)
def _wait(task: int, before: int, buffer: int, tasks: Tasks) -> None:
    """Make the newest ``task`` wait for one ``before``, and need a buffer unless that is -1."""
    edge = tasks.used[_EDGES]
    tasks.used[_EDGES] += 1
    tasks.edge_to[edge] = task
    tasks.edge_next[edge] = NONE
    if tasks.head[before] == NONE:
        tasks.head[before] = edge
    else:
        tasks.edge_next[tasks.tail[before]] = edge
    tasks.tail[before] = edge
    tasks.waits[task] += 1
    if buffer != NONE:
        tasks.needs[tasks.used[_NEEDS]] = buffer
        tasks.used[_NEEDS] += 1
        tasks.needs_to[task] = tasks.used[_NEEDS]
        tasks.users[buffer] += 1


@njit(cache=True)
def _compute(operator: int, x: int, tables: Tables, replicas: Replicas, tasks: Tasks) -> None:
    """The computation of replica ``x``, and the transfers that it is the first to need."""
    tasks.used[_FOUND] = 0
    for i in range(tables.inputs_at[operator], tables.inputs_at[operator + 1]):
        _bring(tables.inputs[i], operator, x, tables, replicas, tasks)
    device = replicas.device[x]
    if replicas.whole[operator]:
        duration = tables.whole_s[operator, device]
    else:
        duration = tables.time_s[operator, replicas.seat[x]]
    task = _add(device, duration, operator, tasks)
    tasks.replica[task] = x
    replicas.task[x] = task
    for i in range(tasks.used[_FOUND]):
        _wait(task, tasks.found_task[i], tasks.found_buffer[i], tasks)


@njit(cache=True)
def _bring(tensor: int, operator: int, x: int, tables: Tables, replicas: Replicas, tasks: Tasks) -> None:
    """Find what replica ``x`` of an operator waits for to have its part of a tensor."""
    first, last = replicas.first[x], replicas.last[x]
    if first == last:
        return
    producer = tables.producer[tensor]
    start, count = replicas.at[producer], replicas.count[producer]
    if replicas.whole[producer]:
        k = _nearest(producer, replicas.device[x], tables, replicas)
        _take(tensor, k, first, last, x, tables, replicas, tasks)
    elif replicas.alike[producer] == replicas.alike[operator]:
        # The part lies on the device.
        _find(
            replicas.task[start + x - replicas.at[operator]], replicas.held[tensor] + x - replicas.at[operator], tasks
        )
    else:
        for k in range(count):
            low, high = max(first, replicas.first[start + k]), min(last, replicas.last[start + k])
            if low < high:
                _take(tensor, k, low, high, x, tables, replicas, tasks)


@njit(cache=True)
def _find(task: int, buffer: int, tasks: Tasks) -> None:
    tasks.found_task[tasks.used[_FOUND]] = task
    tasks.found_buffer[tasks.used[_FOUND]] = buffer
    tasks.used[_FOUND] += 1


@njit(cache=True)
def _nearest(producer: int, device: int, tables: Tables, replicas: Replicas) -> int:
    """The replica, of those that all have everything, that a device takes it from."""
    start, near = replicas.at[producer], NONE
    for k in range(replicas.count[producer]):
        if replicas.device[start + k] == device:
            return k
        if near == NONE and tables.device_group[replicas.device[start + k]] == tables.device_group[device]:
            near = k
    return max(near, 0)


@njit(cache=True)
def _take(tensor: int, k: int, first: int, last: int, x: int, tables: Tables, replicas: Replicas, tasks: Tasks) -> None:
    """A part of a tensor for replica ``x`` from the producer's k-th: there, already on its way, or to be sent."""
    holder = replicas.at[tables.producer[tensor]] + k
    source, target = replicas.device[holder], replicas.device[x]
    buffer = replicas.held[tensor] + k
    if source == target or tables.size_bytes[tensor] == 0.0:
        _find(replicas.task[holder], buffer if source == target else NONE, tasks)
        return
    if tables.consumers[tensor] > 1:
        sent = replicas.sent[tensor, target]
        while sent != NONE:
            if tasks.source[sent] == source and tasks.first[sent] == first and tasks.last[sent] == last:
                _find(sent, tasks.makes[sent], tasks)
                return
            sent = tasks.sent_before[sent]
    size = tables.size_bytes[tensor] * ((last - first) / tables.units)
    sent = _send(source, target, size, tables, tasks)
    _wait(sent, replicas.task[holder], buffer, tasks)
    tasks.makes[sent] = _buffer(target, size, tasks)
    tasks.source[sent], tasks.first[sent], tasks.last[sent] = source, first, last
    tasks.sent_before[sent] = replicas.sent[tensor, target]
    replicas.sent[tensor, target] = sent
    _find(sent, tasks.makes[sent], tasks)


@njit(cache=True)
def _send(source: int, target: int, size: float, tables: Tables, tasks: Tasks) -> int:
    return _add(tables.link[source, target], size / tables.rate[source, target] + tables.latency_s, NONE, tasks)


@njit(cache=True)
def _hold(operator: int, tables: Tables, replicas: Replicas, tasks: Tasks) -> None:
    """Buffers of what the replicas of an operator make."""
    start, count = replicas.at[operator], replicas.count[operator]
    for i in range(tables.outputs_at[operator], tables.outputs_at[operator + 1]):
        tensor = tables.outputs[i]
        replicas.held[tensor] = tasks.used[_BUFFERS]
        for x in range(start, start + count):
            share = (replicas.last[x] - replicas.first[x]) / tables.units
            _buffer(replicas.device[x], tables.size_bytes[tensor] * share, tasks)


@njit(cache=True)
def _synchronise(operator: int, tables: Tables, choice: Choice, replicas: Replicas, tasks: Tasks) -> None:
    """Buffers of gradients, and their all-reduce or their way to a server and back."""
    start, count = replicas.at[operator], replicas.count[operator]
    size = tables.gradient_bytes[operator]
    gradient = tasks.used[_BUFFERS]
    replicas.gradient[operator] = gradient
    for x in range(start, start + count):
        _buffer(replicas.device[x], size, tasks)
    if replicas.whole[operator]:
        return
    action = choice.action[tables.group[operator]]
    if tables.mode[action] != PARAMETER_SERVER:
        reduction = _add(tables.resources - 1, tables.reduce_s[operator, tables.slot[action]], operator, tasks)
        for k in range(count):
            _wait(reduction, replicas.task[start + k], gradient + k, tasks)
        return
    server = operator % count
    at = replicas.device[start + server]
    arrived = tasks.used[_TASKS]
    for k in range(count):
        if k != server:
            sent = _send(replicas.device[start + k], at, size, tables, tasks)
            _wait(sent, replicas.task[start + k], gradient + k, tasks)
            tasks.makes[sent] = gradient + server
    gathered = _add(NONE, 0.0, NONE, tasks)
    _wait(gathered, replicas.task[start + server], NONE, tasks)
    for sent in range(arrived, gathered):
        _wait(gathered, sent, NONE, tasks)
    for k in range(count):
        if k != server:
            back = _send(at, replicas.device[start + k], size, tables, tasks)
            _wait(back, gathered, gradient + server, tasks)
            tasks.makes[back] = _buffer(replicas.device[start + k], size, tasks)
