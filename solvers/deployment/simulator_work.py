"""Room in which the fast simulator lays out the tasks of a plan."""

from typing import Any, NamedTuple

import numpy as np

from ddlopt.solvers.deployment.simulator_tables import Floats, Ints, Tables

NONE = -1


class Replicas(NamedTuple):
    """Those of an operator lie side by side: ``count[operator]`` from ``at[operator]`` on.

    Parameters
    ----------
    at, count : (operators,)
    whole, alike : (operators,)
        1 where each has the whole batch; a number that is the same where devices and parts are, or -1.
    device, first, last, seat, task : (replicas,)
    held : (tensors,)
        Number of the buffer of the producer's first replica, which those of the others follow.
    gradient : (operators,)
        The same for gradients; with a server all have their own, but the server's.
    sent : (tensors, devices)
        Last transfer of it to the device, or -1.
    """

    at: Ints
    count: Ints
    whole: Ints
    alike: Ints
    device: Ints
    first: Ints
    last: Ints
    seat: Ints
    task: Ints
    held: Ints
    gradient: Ints
    sent: Ints


class Tasks(NamedTuple):
    """Tasks by number, what waits for them, and the bytes that they make and need.

    Parameters
    ----------
    resource : (tasks,)
        -1 for a task that only gathers others, and is done when they are.
    duration, finish : (tasks,)
    waits : (tasks,)
        Tasks that it waits for.
    operator, replica : (tasks,)
        Of a computation or collective, whose operator is -1 otherwise; place of the computing replica.
    head, tail : (tasks,)
        First and last of its edges; ``edge_to`` is what waits for it, ``edge_next`` the next edge.
    needs_from, needs_to : (tasks,)
        Its buffers in ``needs``.
    makes : (tasks,)
        Buffer of a transfer, or -1.
    source, first, last, sent_before : (tasks,)
        Of a transfer: sending device, part of the batch, and the transfer of the same tensor to the same device before.
    turn, behind : (tasks,)
        When it became ready, and who is behind it in the queue of its resource.
    made, size, device, users : (buffers,)
        Bytes that each make adds, bytes there, where, and who still needs them.
    found_task, found_buffer : (.,)
        What a computation waits for, before it has its number.
    used : (5,)
        Tasks, edges, needs, buffers and finds in use.
    """

    resource: Ints
    duration: Floats
    finish: Floats
    waits: Ints
    operator: Ints
    replica: Ints
    head: Ints
    tail: Ints
    edge_to: Ints
    edge_next: Ints
    needs_from: Ints
    needs_to: Ints
    needs: Ints
    makes: Ints
    source: Ints
    first: Ints
    last: Ints
    sent_before: Ints
    turn: Ints
    behind: Ints
    made: Floats
    size: Floats
    device: Ints
    users: Ints
    found_task: Ints
    found_buffer: Ints
    used: Ints


class Events(NamedTuple):
    """Resources, and the heap of the tasks that are first in their queues.

    Parameters
    ----------
    free, last : (resources,)
        Until when it is taken, and the last task in its queue, or -1.
    task, finish, turn : (resources,)
        The heap, by finish and then by turn.
    holding, peak : (devices,)
        Bytes, now and at most.
    """

    free: Floats
    last: Ints
    task: Ints
    finish: Floats
    turn: Ints
    holding: Floats
    peak: Floats


class Work(NamedTuple):
    """All of it."""

    replicas: Replicas
    tasks: Tasks
    events: Events


def workspace(tables: Tables, room: int) -> Work:
    """Arrays for so many tasks, edges, needs and buffers each."""
    operators, tensors, devices = len(tables.order), len(tables.producer), len(tables.device_group)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    def floats(size: int) -> Floats:
        return np.zeros(size)

    seats, resources = operators * devices, tables.resources
    replicas = Replicas(
        *(ints(operators) for _ in range(4)),
        *(ints(seats) for _ in range(5)),
        held=ints(tensors),
        gradient=ints(operators),
        sent=ints(tensors, devices),
    )
    floating = ("duration", "finish", "made", "size")
    each: Any = {name: floats(room) if name in floating else ints(room) for name in Tasks._fields}
    laid_out = Tasks(**each | {"used": ints(5)})
    events = Events(
        floats(resources),
        ints(resources),
        ints(resources + 1),
        floats(resources + 1),
        ints(resources + 1),
        floats(devices),
        floats(devices),
    )
    return Work(replicas, laid_out, events)
