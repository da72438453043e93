"""Numba kernels of the fast simulator, second half: the run of the tasks, event by event.

The order of events is that of :func:`ddlopt.models.deployment.plan.simulator.simulate.simulate`, also where ends of
tasks tie: times are whole numbers (:mod:`~ddlopt.solvers.deployment.plan.simulator.ticks`). As each resource does its
tasks in the order in which they reserved it, only the first of each needs to be among the events: a handful at most
times, which are simply kept in order.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.kernels import kernel, record
from ddlopt.solvers.deployment.plan.simulator.build import Choice, lay_out
from ddlopt.solvers.deployment.plan.simulator.tables import Floats, Ints, Tables
from ddlopt.solvers.deployment.plan.simulator.work import COLUMNS, HOW, NONE, TASKS, Work, helper

_TABLES = (
    "record(Tables, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1],"
    " i8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8[::1], i8[::1],"
    " i8[:, ::1], i8[:, ::1], i8[:, ::1], u8[:, :, ::1], u8[:, :, ::1], u8[:, :, ::1], u8[:, :, ::1], u8[::1],"
    " i8, f8, f8, u8)"
)
_WORK = record(Work, *COLUMNS)

_ZERO, _ONE, _MINUS_ONE, _SIGN = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1), np.uint64(63)


@kernel(f"i8({_TABLES}, i8[:, ::1], i8[:, ::1], i8[:, ::1], _WORK, f8, f8[::1], f8[::1])", **HOW)
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
    """Seconds and excess of memory (plans,) of a step under each plan, the rows of ``actions``.

    ``duplicated`` and ``device`` have as many rows, or one for all plans.

    Seconds are infinite as soon as a step is seen to take more than ``above``; where it ends, ``work.peak`` has what
    devices hold at most. Returns how many plans before one for which there is no room in ``work``.
    """
    for row in range(len(actions)):
        own = row if len(duplicated) > 1 else 0
        if not lay_out(tables, Choice(actions[row], duplicated[own], device[own]), work):
            return row
        for r in range(len(work.queue)):
            work.free[r, 0], work.free[r, 1], work.queue[r] = _ZERO, _ZERO, NONE
        _settle_in(tables, work)
        time[row] = _run(tables, work, above)
        excess[row] = -np.inf
        for d in range(len(work.peak)):
            excess[row] = max(excess[row], work.peak[d] - tables.room_bytes[d])
    return len(actions)


@helper
def _settle_in(tables: Tables, work: Work) -> None:
    """What devices keep all the time."""
    operators, replicas, holding = work.operator, work.replica, work.holding
    for d in range(len(holding)):
        holding[d] = 0.0
    for place in range(len(operators)):
        start = operators[place].at
        for x in range(start, start + operators[place].count):
            holding[replicas[x].device] += tables.resident_bytes[place]
    for d in range(len(holding)):
        work.peak[d] = holding[d]


@helper
def _run(tables: Tables, work: Work, above: float) -> float:
    node, edge = work.node, work.edge
    now_s, high, low, waiting, turn = 0.0, _ZERO, _ZERO, 0, 0
    for task in range(work.used[TASKS]):
        if node[task].waits == 0:
            waiting = _reserve(tables, work, task, high, low, turn, waiting)
            turn += 1
    while waiting > 0:
        task = work.event[waiting - 1]
        high, low = node[task].finish_high, node[task].finish_low
        now_s = seconds(tables.scale_s, high, low)
        if now_s > above:
            return np.inf
        waiting = _advance(tables, work, task, waiting)
        _account(tables, work, task)
        i = node[task].head
        while i != NONE:
            later = edge[i].to
            i = edge[i].next
            node[later].waits -= 1
            if node[later].waits == 0:
                if node[later].resource != NONE:
                    waiting = _reserve(tables, work, later, high, low, turn, waiting)
                    turn += 1
                    continue
                j = node[later].head
                while j != NONE:
                    waiting = _reserve(tables, work, edge[j].to, high, low, turn, waiting)
                    turn += 1
                    j = edge[j].next
    return now_s


@helper
def seconds(scale_s: float, high: np.uint64, low: np.uint64) -> float:
    """Ticks in two words as seconds."""
    return (high + low * 2.0**-64) * scale_s


@helper
def _reserve(tables: Tables, work: Work, task: int, high: np.uint64, low: np.uint64, turn: int, waiting: int) -> int:
    """Give a task its time, from now on or when its resource is free; returns how many are first in their queues."""
    node, free, queue = work.node, work.free, work.queue
    resource = node[task].resource
    if _order(high, low, free[resource, 0], free[resource, 1], tables.slack) < 0:
        high, low = free[resource, 0], free[resource, 1]
    below = low + node[task].length_low
    above = high + node[task].length_high + (_ONE if below < low else _ZERO)
    free[resource, 0], free[resource, 1] = above, below
    node[task].finish_high, node[task].finish_low = above, below
    node[task].turn = turn
    node[task].behind = NONE
    ahead = queue[resource]
    queue[resource] = task
    if ahead != NONE:
        node[ahead].behind = task
        return waiting
    return _insert(tables, work, task, waiting)


@helper
def _advance(tables: Tables, work: Work, task: int, waiting: int) -> int:
    """Replace the first event by the next task of its resource, if there is one."""
    following = work.node[task].behind
    if following != NONE:
        return _insert(tables, work, following, waiting - 1)
    work.queue[work.node[task].resource] = NONE
    return waiting - 1


@helper
def _insert(tables: Tables, work: Work, task: int, waiting: int) -> int:
    """Put a task among the events, behind all that end after it, or at the same time and later in turn."""
    node, event = work.node, work.event
    high, low, turn = node[task].finish_high, node[task].finish_low, node[task].turn
    k = waiting
    while k > 0:
        other = event[k - 1]
        order = _order(node[other].finish_high, node[other].finish_low, high, low, tables.slack)
        if order > 0 or (order == 0 and node[other].turn > turn):
            break
        event[k] = other
        k -= 1
    event[k] = task
    return waiting + 1


@helper
def _order(
    one_high: np.uint64, one_low: np.uint64, other_high: np.uint64, other_low: np.uint64, slack: np.uint64
) -> int:
    """Whether a time is before another one, the same, or after it: -1, 0 or 1."""
    low = one_low - other_low
    high = one_high - other_high - (_ONE if one_low < other_low else _ZERO)
    if high >> _SIGN == _ZERO:
        return 0 if high == _ZERO and low <= slack else 1
    return 0 if high == _MINUS_ONE and _ZERO - low <= slack and low != _ZERO else -1


@helper
def _account(tables: Tables, work: Work, task: int) -> None:
    """Bytes that are there from the end of a task, and those that it was the last to need."""
    node, place, outputs = work.node, work.node[task].operator, tables.outputs
    if node[task].makes != NONE:
        _make(work, node[task].makes)
        _drop_unused(work, node[task].makes)
    elif place != NONE:
        # What nobody needs is given up when all is there.
        k = node[task].replica
        for i in range(tables.outputs_at[place], tables.outputs_at[place + 1]):
            _make(work, work.held[outputs[i]] + k)
        if tables.gradient_bytes[place] > 0.0:
            _make(work, work.operator[place].gradient + k)
            _drop_unused(work, work.operator[place].gradient + k)
        for i in range(tables.outputs_at[place], tables.outputs_at[place + 1]):
            _drop_unused(work, work.held[outputs[i]] + k)
    for i in range(node[task].edges, node[task].edges_end):
        buffer = work.edge[i].buffer
        if buffer != NONE:
            work.stock[buffer].users -= 1
            _drop_unused(work, buffer)


@helper
def _make(work: Work, buffer: int) -> None:
    stock, device = work.stock, work.stock[buffer].device
    stock[buffer].size += stock[buffer].made
    work.holding[device] += stock[buffer].made
    work.peak[device] = max(work.peak[device], work.holding[device])


@helper
def _drop_unused(work: Work, buffer: int) -> None:
    if work.stock[buffer].users == 0:
        work.holding[work.stock[buffer].device] -= work.stock[buffer].size
