"""Room in which the fast simulator lays out the tasks of a plan: a few tables, whose columns have names here.

Few and wide, because Numba counts references whenever it takes an array out of a tuple.
"""

from typing import NamedTuple

import numpy as np

from ddlopt.solvers.deployment.simulator_tables import Floats, Ints, Tables

NONE = -1

AT, COUNT, WHOLE, ALIKE, GRADIENT = range(5)
"""Of an operator: its first replica and how many there are; 1 where each has the whole batch; a number that is the same
where devices and parts are, or -1; the buffer of its first gradient."""
DEVICE, FIRST, LAST, SEAT, TASK = range(5)
"""Of a replica: its device, its part of the batch, its seat in the tables, its task."""
RESOURCE, WAITS, HEAD, TAIL, EDGES, EDGES_END, MAKES, OPERATOR, REPLICA, TURN, BEHIND = range(11)
"""Of a task: its resource (-1: it only gathers others); how many tasks it waits for; first and last edge to what waits
for it; its edges from what it waits for; the buffer that a transfer makes, or -1; of a computation the operator, -1
otherwise, and the replica; when it became ready; who is behind it in the queue of its resource."""
SOURCE, LOW, HIGH, BEFORE = range(11, 15)
"""Of a transfer: sending device, part of the batch, the transfer of the same tensor to the same device before it."""
DURATION, FINISH = range(2)
"""Of a task, in seconds."""
TO, NEXT, BUFFER = range(3)
"""Of an edge: the task that waits; the next edge from the same task; the buffer that it needs, or -1."""
USERS = 1
"""Of a buffer, beside its device: tasks that still need it."""
MADE, SIZE = range(2)
"""Of a buffer: bytes that each make adds, bytes there."""
TASKS, EDGES_USED, BUFFERS = range(3)
"""What is counted."""


class Work(NamedTuple):
    """All of it; columns are named above.

    Parameters
    ----------
    operator : (operators, 5)
    replica : (replicas, 5)
    held : (tensors,)
        The buffer of the producer's first replica.
    sent : (tensors, devices)
        The last transfer of it to the device, or -1.
    node : (room, 15)
    cost : (room, 2)
    edge : (room, 3)
    found : (room, 2)
        Task and buffer of what a computation waits for, before it has its number.
    stock : (room, 2)
    size : (room, 2)
    used : (3,)
        Tasks, edges and buffers.
    free, queue : (resources,)
        Until when it is taken, and the last task in its queue, or -1.
    event : (resources, 2)
        Heap of the first task of each queue, and its turn.
    event_s : (resources,)
        When it ends.
    holding, peak : (devices,)
        Bytes, now and at most.
    """

    operator: Ints
    replica: Ints
    held: Ints
    sent: Ints
    node: Ints
    cost: Floats
    edge: Ints
    found: Ints
    stock: Ints
    size: Floats
    used: Ints
    free: Floats
    queue: Ints
    event: Ints
    event_s: Floats
    holding: Floats
    peak: Floats


def workspace(tables: Tables, room: int) -> Work:
    """Tables for so many tasks, edges and buffers each."""
    operators, tensors, devices = len(tables.order), len(tables.producer), len(tables.device_group)
    resources = tables.resources
    return Work(
        operator=np.zeros((operators, 5), np.int64),
        replica=np.zeros((operators * devices, 5), np.int64),
        held=np.zeros(tensors, np.int64),
        sent=np.zeros((tensors, devices), np.int64),
        node=np.zeros((room, 15), np.int64),
        cost=np.zeros((room, 2)),
        edge=np.zeros((room, 3), np.int64),
        found=np.zeros((room, 2), np.int64),
        stock=np.zeros((room, 2), np.int64),
        size=np.zeros((room, 2)),
        used=np.zeros(3, np.int64),
        free=np.zeros(resources),
        queue=np.zeros(resources, np.int64),
        event=np.zeros((resources, 2), np.int64),
        event_s=np.zeros(resources),
        holding=np.zeros(devices),
        peak=np.zeros(devices),
    )
