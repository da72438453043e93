"""Numba kernels of the fast simulator, second half: the run of the tasks, event by event.

The order of events is that of :func:`ddlopt.models.deployment.plan.simulator.simulate.simulate`, so that floats agree
to the last digit. As each resource does its tasks in the order in which they reserved it, only the first of each needs
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
    " i8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], f8[:, ::1],"
    " f8[:, ::1], f8[:, ::1], i8[:, ::1], f8[:, ::1], i8[:, ::1], i8, f8, f8)"
)
_WORK = record(Work, *COLUMNS)


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
            work.free[r] = 0.0
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
    free, queue, event = work.free, work.queue, work.event
    operators, held, holding, peak = work.operator, work.held, work.holding, work.peak
    outputs_at, outputs, gradient_bytes = tables.outputs_at, tables.outputs, tables.gradient_bytes
    now, waiting, turn, devices = 0.0, 0, 0, len(holding)
    for task in range(work.used[TASKS]):
        if node[task].waits == 0:
            waiting = _reserve(task, now, turn, waiting, node, free, queue, event)
            turn += 1
    while waiting > 0:
        task, now = event[waiting - 1].task, event[waiting - 1].finish_s
        if now > above:
            return np.inf
        waiting = _advance(task, waiting, node, queue, event)
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
                    waiting = _reserve(later, now, turn, waiting, node, free, queue, event)
                    turn += 1
                    continue
                j = node[later].head
                while j != NONE:
                    waiting = _reserve(edge[j].to, now, turn, waiting, node, free, queue, event)
                    turn += 1
                    j = edge[j].next
    return now


@helper
def _reserve(
    task: int,
    now: float,
    turn: int,
    waiting: int,
    node: Records,
    free: Floats,
    queue: Ints,
    event: Records,
) -> int:
    """Give a task its time; returns how many tasks are first in their queues."""
    resource = node[task].resource
    finish = max(now, free[resource]) + node[task].duration_s
    free[resource] = finish
    node[task].finish_s = finish
    node[task].turn = turn
    node[task].behind = NONE
    ahead = queue[resource]
    queue[resource] = task
    if ahead != NONE:
        node[ahead].behind = task
        return waiting
    return _insert(task, turn, finish, waiting, event)


@helper
def _advance(task: int, waiting: int, node: Records, queue: Ints, event: Records) -> int:
    """Replace the first event by the next task of its resource, if there is one."""
    following = node[task].behind
    waiting -= 1
    if following == NONE:
        queue[node[task].resource] = NONE
        return waiting
    return _insert(following, node[following].turn, node[following].finish_s, waiting, event)


@helper
def _insert(task: int, turn: int, finish: float, waiting: int, event: Records) -> int:
    """Put a task among the events, behind all that end after it, or at the same time and later in turn."""
    k = waiting
    while k > 0 and (event[k - 1].finish_s < finish or (event[k - 1].finish_s == finish and event[k - 1].turn < turn)):
        event[k].task, event[k].turn, event[k].finish_s = event[k - 1].task, event[k - 1].turn, event[k - 1].finish_s
        k -= 1
    event[k].task, event[k].turn, event[k].finish_s = task, turn, finish
    return waiting + 1


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
