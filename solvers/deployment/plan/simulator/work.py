"""Room in which the fast simulator lays out the tasks of a plan: a few tables of records.

Numbers in records are unsigned, because Numba asks of every signed one whether it counts from the end of an array.
Kernels do without Numba's counts of references (``_nrt``), which take a quarter of the time; so they cannot make arrays
or parts of arrays.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import from_dtype, types

from ddlopt.models.kernels import inner
from ddlopt.solvers.deployment.plan.simulator.tables import Floats, Tables
from ddlopt.solvers.deployment.plan.simulator.ticks import Words

Records = npt.NDArray[Any]

HOW: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
"""Options of kernels."""
helper = inner(**HOW)
"""Decorator."""

NONE = np.uint32(2**32 - 1)
"""In place of a number that there is not."""
TASKS, EDGES, BUFFERS = range(3)
"""What is counted."""

_NUMBER = np.uint32
_OPERATOR = np.dtype([(name, _NUMBER) for name in ("at", "count", "whole", "parts", "gradient")])
"""Its first replica and how many there are; 1 where each has the whole batch; a number that is the same where devices
and parts are, or none; the buffer of its first gradient."""
_REPLICA = np.dtype([(name, _NUMBER) for name in ("device", "first", "last", "seat", "task")])
"""Its device, its part of the batch, its seat in the tables, its task."""
_TASK = np.dtype(
    [(name, np.uint64) for name in ("length_high", "length_low", "finish_high", "finish_low")]
    + [
        (name, _NUMBER)
        for name in (
            *("resource", "waits", "head", "tail", "edges", "edges_end"),
            *("makes", "operator", "replica", "turn", "behind", "before"),
        )
    ]
)
"""How long it takes and when it ends, each in two words of ticks; its resource, or none if it only gathers others; how
many tasks it waits for; first and last edge to what waits for it; its edges from what it waits for; the buffer that a
transfer makes, or none; of a computation the operator and the replica, or none; when it became ready; who is behind it
in the queue of its resource; of a transfer the one of the same tensor to the same device before it."""
_PARCEL = np.dtype([(name, _NUMBER) for name in ("source", "low", "high")])
"""Of a transfer, by the number of its task: sending device and part of the batch."""
_EDGE = np.dtype([(name, _NUMBER) for name in ("to", "next", "buffer")])
"""The task that waits; the next edge from the same task; the buffer that it needs, or none."""
_BUFFER = np.dtype([("made", np.float64), ("size", np.float64), ("device", _NUMBER), ("users", _NUMBER)])
"""Bytes that each make adds, bytes there; where; tasks that still need it."""


class Work(NamedTuple):
    """All of it.

    Parameters
    ----------
    operator : (operators,) records
    replica : (replicas,) records
    held : (tensors,)
        The buffer of the producer's first replica.
    sent : (tensors, devices)
        The last transfer of it to the device, or none.
    node : (room,) records
        Tasks.
    parcel, edge : (room,) records
    found : (room, 2)
        Task and buffer of what a computation waits for, before it has its number.
    stock : (room,) records
        Buffers.
    used : (3,)
        Tasks, edges and buffers.
    free : (resources, 2)
        Until when it is taken, in ticks.
    queue : (resources,)
        The last task in its queue, or none.
    event : (resources,)
        The first task of each queue, the one that ends last before the others.
    holding, peak : (devices,)
        Bytes, now and at most.
    """

    operator: Records
    replica: Records
    held: npt.NDArray[np.uint32]
    sent: npt.NDArray[np.uint32]
    node: Records
    parcel: Records
    edge: Records
    found: npt.NDArray[np.uint32]
    stock: Records
    used: npt.NDArray[np.uint32]
    free: Words
    queue: npt.NDArray[np.uint32]
    event: npt.NDArray[np.uint32]
    holding: Floats
    peak: Floats


def _records(kind: np.dtype[Any]) -> types.Array:
    """The type of an array of records, as Numba finds it: it takes none for aligned."""
    return types.Array(from_dtype(kind), 1, "C", aligned=False)


COLUMNS = (
    *map(_records, (_OPERATOR, _REPLICA)),
    *(types.u4[::1], types.u4[:, ::1]),
    *map(_records, (_TASK, _PARCEL, _EDGE)),
    types.u4[:, ::1],
    _records(_BUFFER),
    *(types.u4[::1], types.u8[:, ::1], types.u4[::1], types.u4[::1], types.f8[::1], types.f8[::1]),
)
"""Types of the tables, in order."""


def workspace(tables: Tables, room: int) -> Work:
    """Tables with room for ``room`` tasks, edges and buffers each."""
    operators, tensors, devices = len(tables.order), len(tables.producer), len(tables.device_group)
    resources = tables.resources
    return Work(
        operator=np.zeros(operators, _OPERATOR),
        replica=np.zeros(operators * devices, _REPLICA),
        held=np.zeros(tensors, _NUMBER),
        sent=np.zeros((tensors, devices), _NUMBER),
        node=np.zeros(room, _TASK),
        parcel=np.zeros(room, _PARCEL),
        edge=np.zeros(room, _EDGE),
        found=np.zeros((room, 2), _NUMBER),
        stock=np.zeros(room, _BUFFER),
        used=np.zeros(3, _NUMBER),
        free=np.zeros((resources, 2), np.uint64),
        queue=np.zeros(resources, _NUMBER),
        event=np.zeros(resources, _NUMBER),
        holding=np.zeros(devices),
        peak=np.zeros(devices),
    )
