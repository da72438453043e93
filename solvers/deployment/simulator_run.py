"""Numba kernels of the fast simulator, second half: the run of the tasks, event by event.

The order of events is that of :func:`ddlopt.models.deployment.simulate.simulate`, so that floats agree to the last
digit. As each resource does its tasks in the order in which they reserved it, only the first of each needs to be among
the events, whose heap so stays small.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__``.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit

from ddlopt.solvers.deployment.simulator_build import Choice, lay_out
from ddlopt.solvers.deployment.simulator_tables import Floats, Ints, Tables
from ddlopt.solvers.deployment.simulator_work import (
    AT,
    BEHIND,
    BUFFER,
    COUNT,
    DEVICE,
    DURATION,
    EDGES,
    EDGES_END,
    FINISH,
    GRADIENT,
    HEAD,
    MADE,
    MAKES,
    NEXT,
    NONE,
    OPERATOR,
    REPLICA,
    RESOURCE,
    SIZE,
    TASKS,
    TO,
    TURN,
    USERS,
    WAITS,
    Work,
)

NO_ROOM = -1.0
TOLERANCE = 1e-9
"""Relative excess over a memory that counts as rounding."""


@njit(cache=True)
def step(tables: Tables, choice: Choice, work: Work, above: float) -> float:
    """Seconds of a step; infinite as soon as it is seen to take more than ``above``; ``NO_ROOM`` in ``work``.

    Peaks of memory are in ``work.peak`` where it ends.
    """
    if not lay_out(tables, choice, work):
        return NO_ROOM
    work.free[:] = 0.0
    work.queue[:] = NONE
    _settle_in(tables, work)
    return _run(tables, work, above)


@njit(cache=True)
def steps(
    tables: Tables,
    actions: Ints,
    duplicated: Ints,
    device: Ints,
    work: Work,
    above: float,
    time: Floats,
    excess: Floats,
) -> int:
    """Time and excess (plans,) of many plans, the rows of ``actions``; returns how many before there is no room."""
    for row in range(len(actions)):
        time[row] = step(tables, Choice(actions[row], duplicated, device), work, above)
        if time[row] == NO_ROOM:
            return row
        excess[row] = excess_bytes(tables, work)
    return len(actions)


@njit(cache=True)
def excess_bytes(tables: Tables, work: Work) -> float:
    """The most that any device needs beyond its memory; negative where all have enough."""
    most = -np.inf
    for device in range(len(work.peak)):
        most = max(most, work.peak[device] - tables.memory_bytes[device] * (1.0 + TOLERANCE))
    return most


@njit(cache=True)
def _settle_in(tables: Tables, work: Work) -> None:
    """What devices keep all the time."""
    operators, replicas, holding = work.operator, work.replica, work.holding
    holding[:] = 0.0
    for place in range(len(operators)):
        start = operators[place, AT]
        for x in range(start, start + operators[place, COUNT]):
            holding[replicas[x, DEVICE]] += tables.resident_bytes[place]
    work.peak[:] = holding


@njit(cache=True)
def _run(tables: Tables, work: Work, above: float) -> float:
    node, cost, edge, stock, size = work.node, work.cost, work.edge, work.stock, work.size
    free, queue, event, event_s = work.free, work.queue, work.event, work.event_s
    operators, held, holding, peak = work.operator, work.held, work.holding, work.peak
    outputs_at, outputs, gradient_bytes = tables.outputs_at, tables.outputs, tables.gradient_bytes
    now, waiting, turn, devices = 0.0, 0, 0, len(holding)
    for task in range(work.used[TASKS]):
        if node[task, WAITS] == 0:
            waiting = _reserve(task, now, turn, waiting, node, cost, free, queue, event, event_s)
            turn += 1
    while waiting > 0:
        task, now = event[0, 0], event_s[0]
        if now > above:
            return np.inf
        waiting = _advance(task, waiting, node, cost, queue, event, event_s)
        if node[task, MAKES] != NONE:
            _make(node[task, MAKES], stock, size, holding, peak)
            _drop_unused(node[task, MAKES], stock, size, holding)
        elif node[task, RESOURCE] < devices:
            _store(
                node[task, OPERATOR],
                node[task, REPLICA],
                outputs_at,
                outputs,
                gradient_bytes,
                operators,
                held,
                stock,
                size,
                holding,
                peak,
            )
        for i in range(node[task, EDGES], node[task, EDGES_END]):
            buffer = edge[i, BUFFER]
            if buffer != NONE:
                stock[buffer, USERS] -= 1
                _drop_unused(buffer, stock, size, holding)
        i = node[task, HEAD]
        while i != NONE:
            later = edge[i, TO]
            i = edge[i, NEXT]
            node[later, WAITS] -= 1
            if node[later, WAITS] == 0:
                if node[later, RESOURCE] != NONE:
                    waiting = _reserve(later, now, turn, waiting, node, cost, free, queue, event, event_s)
                    turn += 1
                    continue
                j = node[later, HEAD]
                while j != NONE:
                    waiting = _reserve(edge[j, TO], now, turn, waiting, node, cost, free, queue, event, event_s)
                    turn += 1
                    j = edge[j, NEXT]
    return now


@njit(cache=True)
def _reserve(
    task: int,
    now: float,
    turn: int,
    waiting: int,
    node: Ints,
    cost: Floats,
    free: Floats,
    queue: Ints,
    event: Ints,
    event_s: Floats,
) -> int:
    """Give a task its time; returns how many tasks are first in their queues."""
    resource = node[task, RESOURCE]
    finish = max(now, free[resource]) + cost[task, DURATION]
    free[resource] = finish
    cost[task, FINISH] = finish
    node[task, TURN] = turn
    node[task, BEHIND] = NONE
    ahead = queue[resource]
    queue[resource] = task
    if ahead != NONE:
        node[ahead, BEHIND] = task
        return waiting
    k = waiting
    while k > 0:
        parent = (k - 1) // 2
        # The newest turn is the last among equals.
        if event_s[parent] <= finish:
            break
        event[k, 0], event[k, 1], event_s[k] = event[parent, 0], event[parent, 1], event_s[parent]
        k = parent
    event[k, 0], event[k, 1], event_s[k] = task, turn, finish
    return waiting + 1


@njit(cache=True)
def _advance(task: int, waiting: int, node: Ints, cost: Floats, queue: Ints, event: Ints, event_s: Floats) -> int:
    """Replace the first event by the next task of its resource, if there is one."""
    following = node[task, BEHIND]
    if following == NONE:
        queue[node[task, RESOURCE]] = NONE
        waiting -= 1
        following, turn, finish = event[waiting, 0], event[waiting, 1], event_s[waiting]
    else:
        turn, finish = node[following, TURN], cost[following, FINISH]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= waiting:
            break
        other = child + 1
        if other < waiting and (
            event_s[other] < event_s[child] or (event_s[other] == event_s[child] and event[other, 1] < event[child, 1])
        ):
            child = other
        if event_s[child] > finish or (event_s[child] == finish and event[child, 1] > turn):
            break
        event[k, 0], event[k, 1], event_s[k] = event[child, 0], event[child, 1], event_s[child]
        k = child
    event[k, 0], event[k, 1], event_s[k] = following, turn, finish
    return waiting


@njit(cache=True)
def _store(
    place: int,
    k: int,
    outputs_at: Ints,
    outputs: Ints,
    gradient_bytes: Floats,
    operators: Ints,
    held: Ints,
    stock: Ints,
    size: Floats,
    holding: Floats,
    peak: Floats,
) -> None:
    """What the k-th replica of an operator makes; what nobody needs is given up when all is there."""
    for i in range(outputs_at[place], outputs_at[place + 1]):
        _make(held[outputs[i]] + k, stock, size, holding, peak)
    if gradient_bytes[place] > 0.0:
        _make(operators[place, GRADIENT] + k, stock, size, holding, peak)
        _drop_unused(operators[place, GRADIENT] + k, stock, size, holding)
    for i in range(outputs_at[place], outputs_at[place + 1]):
        _drop_unused(held[outputs[i]] + k, stock, size, holding)


@njit(cache=True)
def _make(buffer: int, stock: Ints, size: Floats, holding: Floats, peak: Floats) -> None:
    device = stock[buffer, DEVICE]
    size[buffer, SIZE] += size[buffer, MADE]
    holding[device] += size[buffer, MADE]
    peak[device] = max(peak[device], holding[device])


@njit(cache=True)
def _drop_unused(buffer: int, stock: Ints, size: Floats, holding: Floats) -> None:
    if stock[buffer, USERS] == 0:
        holding[stock[buffer, DEVICE]] -= size[buffer, SIZE]
