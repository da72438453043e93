"""Task graphs of FlexNet, the simulator of TopoOpt's authors (hipersys-team/FlexFlow), from FlatBuffers files.

Such a file holds one training job as FlexFlow's search parallelised it: tasks on devices, transfers between servers,
and all-reduces. The schema is ``src/runtime/taskgraph.fbs`` of https://github.com/hipersys-team/FlexFlow; a table's
field is found by its number there.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

from ddlopt.instances.options import checked, one_of
from ddlopt.models.errors import InstanceError
from ddlopt.models.reading import UnreadableError, read_bytes
from ddlopt.models.topology import TopologyInstance

_INT16, _UINT32 = number_types.Int16Flags, number_types.Uint32Flags
_UINT64, _FLOAT32 = number_types.Uint64Flags, number_types.Float32Flags


class _Graph(IntEnum):
    """Fields of table TaskGraph."""

    GPUS_PER_NODE, NODES, SWITCHES, INTER_GPU_BANDWIDTH, DRAM_BANDWIDTH, NETWORK_BANDWIDTH = range(6)
    CONNECTIONS, OPERATORS, TASKS, DEVICES, ROUTES, RINGS = range(6, 12)


class _Task(IntEnum):
    """Fields of table Task."""

    TYPE, ID, DEVICE, RUNTIME, SIZE, NEXT = range(6)


class _Device(IntEnum):
    """Fields of table Device."""

    TYPE, ID, NODE, PROPERTY, BANDWIDTH = range(5)


class _Connection(IntEnum):
    """Fields of table Connection: a number of links from one node to another."""

    SOURCE, TARGET, LINKS = range(3)


class _Type(IntEnum):
    """Values of enum SimTaskType."""

    FORWARD, BACKWARD, COMMUNICATION, UPDATE, BARRIER, NOMINAL_COMMUNICATION, ALLREDUCE = range(7)


_COMPUTE = (_Type.FORWARD, _Type.BACKWARD, _Type.UPDATE)


@checked
def read_flexnet(
    path: str | Path,
    degree: int = 4,
    *,
    optics: str = "one_way",
    parallel_links: bool = True,
    host_forwarding: bool = True,
    overlap: str = "none",
    name: str | None = None,
) -> TopologyInstance:
    """The communication of a FlexNet task graph.

    All-reduces of one group are added up; those of a single server never leave it and are dropped. Transfers are the
    nominal ones, between servers whatever the network. The compute time is the longest sum of task times on one device,
    without overlap. A link has the network bandwidth of the file.

    Parameters
    ----------
    path : str or Path
        A ``.fbuf`` file.
    degree : int
        Interfaces of each server; the file does not fix it.
    optics : {"one_way", "duplex"}
    parallel_links, host_forwarding : bool
    overlap : {"none", "full"}
        As in :class:`~ddlopt.models.topology.instance.TopologyInstance`; the file says nothing of them either.
    name : str, optional
        None: that of the file.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no task graph.
    OptionError
        If an option is not one of its words.
    """
    one_of("optics", optics, ("one_way", "duplex"))
    one_of("overlap", overlap, ("none", "full"))
    path = Path(path)
    try:
        data = read_bytes(path)
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    try:
        fields = _fields(data)
    except (struct.error, IndexError, KeyError, ValueError, TypeError, OverflowError) as problem:
        raise InstanceError(f"{path}: is no FlexNet task graph, or a truncated one: {_reason(problem, data)}") from None
    return TopologyInstance.from_data(
        {
            "name": name or path.name.removesuffix(".fbuf"),
            "source": f"FlexNet task graph {path.name}",
            "degree": degree,
            "optics": optics,
            "parallel_links": parallel_links,
            "host_forwarding": host_forwarding,
            "overlap": overlap,
            **fields,
        },
        str(path),
    )


def _fields(data: bytes) -> dict[str, Any]:
    graph = Table(data, encode.Get(packer.uoffset, data, 0))
    servers = _number(graph, _Graph.NODES, _UINT32)
    nodes = servers + _number(graph, _Graph.SWITCHES, _UINT32)
    if not 1 < servers <= len(data):
        raise ValueError(f"nnode is {servers}")
    _refuse_odd_connections(graph, nodes)
    ends = {
        _number(device, _Device.ID, _UINT64): divmod(_number(device, _Device.PROPERTY, _UINT64), nodes)
        for device in _tables(graph, _Graph.DEVICES)
    }
    groups: Counter[tuple[int, ...]] = Counter()
    traffic = np.zeros((servers, servers))
    busy_ms: defaultdict[int, float] = defaultdict(float)
    for task in _tables(graph, _Graph.TASKS):
        kind = _Type(_number(task, _Task.TYPE, _INT16))
        device, size = _number(task, _Task.DEVICE, _UINT64), _number(task, _Task.SIZE, _UINT64)
        if kind is _Type.ALLREDUCE:
            groups[tuple(sorted(_numbers(task, _Task.NEXT)))] += size
        elif kind is _Type.NOMINAL_COMMUNICATION:
            source, target = ends[device]
            traffic[source, target] += size
        elif kind in _COMPUTE:
            busy_ms[device] += _number(task, _Task.RUNTIME, _FLOAT32)
    if not busy_ms:
        raise ValueError("it has no compute tasks")
    return {
        "servers": servers,
        "link_bandwidth_bytes_per_s": 1e3 * _number(graph, _Graph.NETWORK_BANDWIDTH, _FLOAT32),
        "allreduce_groups": [
            {"members": members, "gradient_bytes": size} for members, size in sorted(groups.items()) if len(members) > 1
        ],
        "traffic_bytes": traffic,
        "compute_s": float(f"{max(busy_ms.values()) / 1e3:.6g}"),
    }


def _refuse_odd_connections(graph: Table, nodes: int) -> None:
    """The simulated network is of no interest, but it ends the file: reading it finds what was cut off."""
    for connection in _tables(graph, _Graph.CONNECTIONS):
        source, target, _ = (_number(connection, field, _UINT32) for field in _Connection)
        if max(source, target) >= nodes:
            raise ValueError(f"a connection from node {source} to node {target}, but there are {nodes} nodes")


def _position(table: Table, field: int) -> int:
    """Where a field's value is, relative to its table; 0 where the table leaves it out."""
    return int(table.Offset(4 + 2 * field))


def _number(table: Table, field: int, flags: Any) -> Any:
    """A scalar; 0 is every field's default in this schema."""
    position = _position(table, field)
    return table.Get(flags, table.Pos + position) if position else 0


def _numbers(table: Table, field: int) -> list[int]:
    position = _position(table, field)
    return [int(value) for value in table.GetVectorAsNumpy(_UINT64, position)] if position else []


def _tables(table: Table, field: int) -> Iterator[Table]:
    position = _position(table, field)
    if not position:
        return
    start, length = table.Vector(position), table.VectorLen(position)
    if start + 4 * length > len(table.Bytes):
        raise ValueError(f"a list of {length} entries in {len(table.Bytes)} bytes")
    for place in range(length):
        yield Table(table.Bytes, table.Indirect(start + 4 * place))


def _reason(problem: Exception, data: bytes) -> str:
    if type(problem) is ValueError:
        return str(problem)
    return f"it refers to something outside its {len(data)} bytes"
