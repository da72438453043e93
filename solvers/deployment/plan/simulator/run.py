"""Numba kernels of the fast simulator, second half: the run of the tasks, event by event.

The order of events is that of :func:`ddlopt.models.deployment.plan.simulator.simulate.simulate`, also where ends of
tasks tie: times that are near each other are compared in :mod:`~ddlopt.solvers.deployment.plan.simulator.ticks`. As
each resource does its tasks in the order in which they reserved it, only the first of each needs
to be among the events: a handful at most times, which are simply kept in order.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.kernels import kernel, record
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.deployment.plan.simulator.build import Choice, lay_out
from ddlopt.solvers.deployment.plan.simulator.tables import Floats, Ints, Tables
from ddlopt.solvers.deployment.plan.simulator.work import COLUMNS, HOW, NONE, TASKS, Records, Work, helper

_TABLES = (
    "record(Tables, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1],"
    " i8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8[::1], i8[::1],"
    " f8[:, ::1], u8[:, :, ::1], f8[:, ::1], u8[:, :, ::1], i8[:, ::1], f8[:, ::1], i8[:, ::1], i8[:, ::1],"
    " u8[:, :, ::1], u8[:, :, ::1], u8[::1], i8, f8, f8, f8, u8)"
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
        for r in range(len(work.free)):
            work.free[r], work.free_high[r], work.free_low[r] = 0.0, _ZERO, _ZERO
            work.queue[r] = NONE
        _settle_in(tables, work)
        time[row] = _run(tables, work, above)
        excess[row] = -np.inf
        for d in range(len(work.peak)):
            excess[row] = max(excess[row], work.peak[d] - tables.memory_bytes[d] * (1.0 + FEASIBILITY_TOL))
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
    node, edge, stock = work.node, work.edge, work.stock
    queue, event = work.queue, work.event
    operators, held, holding, peak = work.operator, work.held, work.holding, work.peak
    outputs_at, outputs, gradient_bytes = tables.outputs_at, tables.outputs, tables.gradient_bytes
    now, high, low, waiting, turn, devices = 0.0, _ZERO, _ZERO, 0, 0, len(holding)
    for task in range(work.used[TASKS]):
        if node[task].waits == 0:
            waiting = _reserve(tables, work, task, now, high, low, turn, waiting)
            turn += 1
    while waiting > 0:
        task, now = event[waiting - 1].task, event[waiting - 1].finish_s
        high, low = node[task].finish_high, node[task].finish_low
        if now > above:
            return np.inf
        waiting = _advance(tables, task, waiting, node, queue, event)
        if node[task].makes != NONE:
            _make(node[task].makes, stock, holding, peak)
            _drop_unused(node[task].makes, stock, holding)
        elif node[task].resource < devices:
            _store(
                node[task].operator,
                node[task].replica,
                outputs_at,
                outputs,
                gradient_bytes,
                operators,
                held,
                stock,
                holding,
                peak,
            )
        for i in range(node[task].edges, node[task].edges_end):
            buffer = edge[i].buffer
            if buffer != NONE:
                stock[buffer].users -= 1
                _drop_unused(buffer, stock, holding)
        i = node[task].head
        while i != NONE:
            later = edge[i].to
            i = edge[i].next
            node[later].waits -= 1
            if node[later].waits == 0:
                if node[later].resource != NONE:
                    waiting = _reserve(tables, work, later, now, high, low, turn, waiting)
                    turn += 1
                    continue
                j = node[later].head
                while j != NONE:
                    waiting = _reserve(tables, work, edge[j].to, now, high, low, turn, waiting)
                    turn += 1
                    j = edge[j].next
    return now


@helper
def _reserve(
    tables: Tables,
    work: Work,
    task: int,
    now: float,
    high: np.uint64,
    low: np.uint64,
    turn: int,
    waiting: int,
) -> int:
    """Give a task its time; returns how many tasks are first in their queues."""
    node, free, free_high, free_low, queue = work.node, work.free, work.free_high, work.free_low, work.queue
    resource = node[task].resource
    if _order(now, high, low, free[resource], free_high[resource], free_low[resource], tables.near_s, tables.slack) < 0:
        now, high, low = free[resource], free_high[resource], free_low[resource]
    finish, below = now + node[task].duration_s, low + node[task].length_low
    above = high + node[task].length_high + (_ONE if below < low else _ZERO)
    free[resource], free_high[resource], free_low[resource] = finish, above, below
    node[task].finish_s, node[task].finish_high, node[task].finish_low = finish, above, below
    node[task].turn = turn
    node[task].behind = NONE
    ahead = queue[resource]
    queue[resource] = task
    if ahead != NONE:
        node[ahead].behind = task
        return waiting
    return _insert(tables, task, turn, waiting, node, work.event)


@helper
def _advance(tables: Tables, task: int, waiting: int, node: Records, queue: Ints, event: Records) -> int:
    """Replace the first event by the next task of its resource, if there is one."""
    following = node[task].behind
    waiting -= 1
    if following == NONE:
        queue[node[task].resource] = NONE
        return waiting
    return _insert(tables, following, node[following].turn, waiting, node, event)


@helper
def _insert(tables: Tables, task: int, turn: int, waiting: int, node: Records, event: Records) -> int:
    """Put a task among the events, behind all that end after it, or at the same time and later in turn."""
    finish, high, low, near_s, slack = (
        node[task].finish_s,
        node[task].finish_high,
        node[task].finish_low,
        tables.near_s,
        tables.slack,
    )
    k = waiting
    while k > 0:
        other = event[k - 1].task
        order = _order(
            event[k - 1].finish_s, node[other].finish_high, node[other].finish_low, finish, high, low, near_s, slack
        )
        if order > 0 or (order == 0 and event[k - 1].turn > turn):
            break
        event[k].task, event[k].turn, event[k].finish_s = event[k - 1].task, event[k - 1].turn, event[k - 1].finish_s
        k -= 1
    event[k].task, event[k].turn, event[k].finish_s = task, turn, finish
    return waiting + 1


@helper
def _order(
    one_s: float,
    one_high: np.uint64,
    one_low: np.uint64,
    other_s: float,
    other_high: np.uint64,
    other_low: np.uint64,
    near_s: float,
    slack: np.uint64,
) -> int:
    """Whether a time is before another one, the same, or after it: -1, 0 or 1."""
    if one_s - other_s > near_s:
        return 1
    if other_s - one_s > near_s:
        return -1
    low = one_low - other_low
    high = one_high - other_high - (_ONE if one_low < other_low else _ZERO)
    if high >> _SIGN == _ZERO:
        return 0 if high == _ZERO and low <= slack else 1
    return 0 if high == _MINUS_ONE and _ZERO - low <= slack and low != _ZERO else -1


@helper
def _store(
    place: int,
    k: int,
    outputs_at: Ints,
    outputs: Ints,
    gradient_bytes: Floats,
    operators: Records,
    held: Ints,
    stock: Records,
    holding: Floats,
    peak: Floats,
) -> None:
    """What the k-th replica of an operator makes; what nobody needs is given up when all is there."""
    for i in range(outputs_at[place], outputs_at[place + 1]):
        _make(held[outputs[i]] + k, stock, holding, peak)
    if gradient_bytes[place] > 0.0:
        _make(operators[place].gradient + k, stock, holding, peak)
        _drop_unused(operators[place].gradient + k, stock, holding)
    for i in range(outputs_at[place], outputs_at[place + 1]):
        _drop_unused(held[outputs[i]] + k, stock, holding)


@helper
def _make(buffer: int, stock: Records, holding: Floats, peak: Floats) -> None:
    device = stock[buffer].device
    stock[buffer].size += stock[buffer].made
    holding[device] += stock[buffer].made
    peak[device] = max(peak[device], holding[device])


@helper
def _drop_unused(buffer: int, stock: Records, holding: Floats) -> None:
    if stock[buffer].users == 0:
        holding[stock[buffer].device] -= stock[buffer].size
