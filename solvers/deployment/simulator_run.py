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
from ddlopt.solvers.deployment.simulator_work import NONE, Events, Replicas, Tasks, Work

NO_ROOM = -1.0
TOLERANCE = 1e-9
"""Relative excess over a memory that counts as rounding."""


@njit(cache=True)
def step(tables: Tables, choice: Choice, work: Work, above: float) -> float:
    """Seconds of a step; infinite as soon as it is seen to take more than ``above``; ``NO_ROOM`` in ``work``.

    Peaks of memory are in ``work.events`` where it ends.
    """
    if not lay_out(tables, choice, work.replicas, work.tasks):
        return NO_ROOM
    events = work.events
    events.free[:] = 0.0
    events.last[:] = NONE
    _settle_in(tables, work.replicas, events)
    return _run(tables, work.replicas, work.tasks, events, above)


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
        excess[row] = excess_bytes(tables, work.events)
    return len(actions)


@njit(cache=True)
def excess_bytes(tables: Tables, events: Events) -> float:
    """The most that any device needs beyond its memory; negative where all have enough."""
    most = -np.inf
    for device in range(len(events.peak)):
        most = max(most, events.peak[device] - tables.memory_bytes[device] * (1.0 + TOLERANCE))
    return most


@njit(cache=True)
def _settle_in(tables: Tables, replicas: Replicas, events: Events) -> None:
    """What devices keep all the time."""
    events.holding[:] = 0.0
    for operator in range(len(tables.resident_bytes)):
        start = replicas.at[operator]
        for x in range(start, start + replicas.count[operator]):
            events.holding[replicas.device[x]] += tables.resident_bytes[operator]
    events.peak[:] = events.holding


@njit(cache=True)
def _run(tables: Tables, replicas: Replicas, tasks: Tasks, events: Events, above: float) -> float:
    now, waiting, turn = 0.0, 0, 0
    for task in range(tasks.used[0]):
        if tasks.waits[task] == 0:
            waiting = _reserve(task, now, turn, waiting, tasks, events)
            turn += 1
    while waiting > 0:
        task = events.task[0]
        now = events.finish[0]
        if now > above:
            return np.inf
        waiting = _advance(task, waiting, tasks, events)
        _account(task, tables, replicas, tasks, events)
        edge = tasks.head[task]
        while edge != NONE:
            later = tasks.edge_to[edge]
            edge = tasks.edge_next[edge]
            tasks.waits[later] -= 1
            if tasks.waits[later] > 0:
                continue
            if tasks.resource[later] != NONE:
                waiting = _reserve(later, now, turn, waiting, tasks, events)
                turn += 1
                continue
            inner = tasks.head[later]
            while inner != NONE:
                last = tasks.edge_to[inner]
                inner = tasks.edge_next[inner]
                tasks.waits[last] -= 1
                waiting = _reserve(last, now, turn, waiting, tasks, events)
                turn += 1
    return now


@njit(cache=True)
def _reserve(task: int, now: float, turn: int, waiting: int, tasks: Tasks, events: Events) -> int:
    """Give a task its time; returns how many tasks are first in their queues."""
    resource = tasks.resource[task]
    finish = max(now, events.free[resource]) + tasks.duration[task]
    events.free[resource] = finish
    tasks.finish[task] = finish
    tasks.turn[task] = turn
    tasks.behind[task] = NONE
    ahead = events.last[resource]
    events.last[resource] = task
    if ahead != NONE:
        tasks.behind[ahead] = task
        return waiting
    k = waiting
    while k > 0:
        parent = (k - 1) // 2
        # The newest turn is the last among equals.
        if events.finish[parent] <= finish:
            break
        _move(parent, k, events)
        k = parent
    _put(k, task, finish, turn, events)
    return waiting + 1


@njit(cache=True)
def _advance(task: int, waiting: int, tasks: Tasks, events: Events) -> int:
    """Replace the first event by the next task of its resource, if there is one."""
    following = tasks.behind[task]
    if following == NONE:
        events.last[tasks.resource[task]] = NONE
        waiting -= 1
        if waiting == 0:
            return 0
        following, finish, turn = events.task[waiting], events.finish[waiting], events.turn[waiting]
    else:
        finish, turn = tasks.finish[following], tasks.turn[following]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= waiting:
            break
        if child + 1 < waiting and _before(child + 1, events.finish[child], events.turn[child], events):
            child += 1
        if not _before(child, finish, turn, events):
            break
        _move(child, k, events)
        k = child
    _put(k, following, finish, turn, events)
    return waiting


@njit(cache=True)
def _before(k: int, finish: float, turn: int, events: Events) -> bool:
    return events.finish[k] < finish or (events.finish[k] == finish and events.turn[k] < turn)


@njit(cache=True)
def _move(source: int, target: int, events: Events) -> None:
    events.task[target] = events.task[source]
    events.finish[target] = events.finish[source]
    events.turn[target] = events.turn[source]


@njit(cache=True)
def _put(k: int, task: int, finish: float, turn: int, events: Events) -> None:
    events.task[k] = task
    events.finish[k] = finish
    events.turn[k] = turn


@njit(cache=True)
def _account(task: int, tables: Tables, replicas: Replicas, tasks: Tasks, events: Events) -> None:
    """Memory at the end of a task: first what it makes, then what it gives up."""
    operator = tasks.operator[task]
    if operator == NONE:
        buffer = tasks.makes[task]
        _make(buffer, tasks, events)
        _drop_unused(buffer, tasks, events)
    elif tasks.resource[task] < len(events.holding):
        k = tasks.replica[task] - replicas.at[operator]
        for i in range(tables.outputs_at[operator], tables.outputs_at[operator + 1]):
            _make(replicas.held[tables.outputs[i]] + k, tasks, events)
        if tables.gradient_bytes[operator] > 0.0:
            _make(replicas.gradient[operator] + k, tasks, events)
            _drop_unused(replicas.gradient[operator] + k, tasks, events)
        for i in range(tables.outputs_at[operator], tables.outputs_at[operator + 1]):
            _drop_unused(replicas.held[tables.outputs[i]] + k, tasks, events)
    for i in range(tasks.needs_from[task], tasks.needs_to[task]):
        buffer = tasks.needs[i]
        tasks.users[buffer] -= 1
        _drop_unused(buffer, tasks, events)


@njit(cache=True)
def _make(buffer: int, tasks: Tasks, events: Events) -> None:
    device = tasks.device[buffer]
    tasks.size[buffer] += tasks.made[buffer]
    events.holding[device] += tasks.made[buffer]
    events.peak[device] = max(events.peak[device], events.holding[device])


@njit(cache=True)
def _drop_unused(buffer: int, tasks: Tasks, events: Events) -> None:
    if tasks.users[buffer] == 0:
        events.holding[tasks.device[buffer]] -= tasks.size[buffer]
