"""Graphs in the JSON format of msr-fiddle/piper (MIT): layers with options by tensor-parallel degree.

An object of ``maxDevices``, ``maxMemoryPerDevice`` (bytes), ``bandwidth`` (bytes a second), ``mbsInBatch``, ``nodes``
and ``edges``. A node has ``id``, ``name`` and ``TMPCs``: for each tensor-parallel degree a list of objects with ``id``,
``timePerSample`` (seconds), ``parameterSize``, ``memoryUsageA``, ``memoryUsageB``, and ``syncTimeFw``, ``syncTimeBw``
(bytes, in spite of their names, by the id of the node before or behind). An edge has ``sourceId``, ``destId``,
``communicationCost`` (bytes).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.errors import InstanceError

_GIBIBYTE = float(1 << 30)


@checked
def read_piper(
    path: str | Path,
    *,
    devices: int | None = None,
    memory_gib: float | None = None,
    micro_batches: int | None = None,
    bandwidth_gib_per_s: float | None = None,
    time_unit_s: float = 1.0,
    name: str | None = None,
) -> PipelineInstance:
    """A network and its devices.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    devices, micro_batches : int, optional
        None: as in the file.
    memory_gib, bandwidth_gib_per_s : float, optional
        In 2³⁰ bytes; likewise.
    time_unit_s : float
        Unit of the file's times. Piper itself takes seconds; the layers of its ``gnmt.json`` and ``resnet.json`` have
        milliseconds (0.001).
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no such graph.
    OptionError
        If an option is out of range.
    """
    for option, whole in (("devices", devices), ("micro_batches", micro_batches)):
        if whole is not None:
            at_least(option, whole, 1)
    for option, given in (("memory_gib", memory_gib), ("bandwidth_gib_per_s", bandwidth_gib_per_s)):
        if given is not None:
            positive(option, given)
    positive("time_unit_s", time_unit_s)
    path = Path(path)
    data = object_of(path, "a JSON object")
    nodes = _rows(path, data, "nodes")
    places: dict[str, int] = {}
    for place, node in enumerate(nodes):
        own = str(_get(path, f"nodes[{place}]", node, "id", (int, str)))
        if places.setdefault(own, place) != place:
            raise InstanceError(f"{path}: nodes[{place}] has id {own}, as nodes[{places[own]}]; ids must differ")
    edges: dict[tuple[int, int], float] = {}
    for place, edge in enumerate(_rows(path, data, "edges")):
        where = f"edges[{place}]"
        source, target = (
            _place(path, where, places, _get(path, where, edge, key, (int, str))) for key in ("sourceId", "destId")
        )
        size = float(_get(path, where, edge, "communicationCost", (int, float)))
        edges[source, target] = edges.get((source, target), 0.0) + size
    names = [str(node.get("name", "")) or str(node["id"]) for node in nodes]
    layers = [
        {
            # Names need not differ there.
            "name": told if names.count(told) == 1 else f"{told} {node['id']}",
            "menus": _menus(_Network(path, places, edges, time_unit_s), f"nodes[{place}]", node, place),
        }
        for place, (node, told) in enumerate(zip(nodes, names, strict=True))
    ]

    def figure(option: float | None, unit: float, key: str) -> float:
        return float(_get(path, "the graph", data, key, (int, float))) if option is None else option * unit

    def count(option: int | None, key: str) -> int:
        return int(_get(path, "the graph", data, key, int)) if option is None else option

    return PipelineInstance.from_data(
        {
            "name": name or path.name.split(".json")[0].lower().replace("_", "-"),
            "source": f"{path.name}, in the format of msr-fiddle/piper",
            "layers": layers,
            "edges": [{"maker": u, "user": v, "size_bytes": size} for (u, v), size in edges.items()],
            "devices": count(devices, "maxDevices"),
            "memory_bytes": figure(memory_gib, _GIBIBYTE, "maxMemoryPerDevice"),
            "bandwidth_bytes_per_s": figure(bandwidth_gib_per_s, _GIBIBYTE, "bandwidth"),
            "micro_batches": count(micro_batches, "mbsInBatch"),
        },
        str(path),
    )


class _Network(NamedTuple):
    path: Path
    places: Mapping[str, int]
    edges: Mapping[tuple[int, int], float]
    time_unit_s: float


def _menus(network: _Network, where: str, node: Mapping[str, Any], place: int) -> list[dict[str, Any]]:
    found = []
    for degree, options in _get(network.path, where, node, "TMPCs", dict).items():
        at = f"{where}.TMPCs[{degree}]"
        if not str(degree).isdecimal() or int(degree) < 1:
            raise InstanceError(f"{network.path}: {at}: degrees are whole numbers from 1 on")
        if not isinstance(options, list) or not all(isinstance(option, Mapping) for option in options):
            raise InstanceError(f"{network.path}: {at} is no list of objects")
        menu = [_option(network, f"{at}[{number}]", option, place) for number, option in enumerate(options)]
        found.append({"tensor": int(degree), "options": menu})
    return sorted(found, key=lambda menu: menu["tensor"])


def _option(network: _Network, where: str, option: Mapping[str, Any], place: int) -> dict[str, Any]:
    path, places, edges, time_unit_s = network

    def figure(key: str) -> float:
        return float(_get(path, where, option, key, (int, float)))

    def pairs(key: str, before: bool) -> list[tuple[int, float]]:
        found = []
        for other, size in _get(path, where, option, key, dict).items():
            its = _place(path, f"{where}.{key}", places, other)
            # Published graphs also name neighbours of other kinds, which their planner does not look at.
            if ((its, place) if before else (place, its)) in edges and size:
                found.append((its, size))
        return found

    return {
        "name": str(option.get("id", "")) or "plain",
        "time_s": time_unit_s * figure("timePerSample"),
        "weight_bytes": figure("parameterSize"),
        "kept_bytes": figure("memoryUsageA"),
        "fixed_bytes": figure("memoryUsageB"),
        "gathered": pairs("syncTimeFw", True),
        "scattered": pairs("syncTimeBw", False),
    }


def _place(path: Path, where: str, places: Mapping[str, int], own: Any) -> int:
    if str(own) not in places:
        raise InstanceError(f"{path}: {where} names node {own}, which there is not")
    return places[str(own)]


def _rows(path: Path, data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = _get(path, "the graph", data, key, list)
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InstanceError(f"{path}: {key}[{place}] is {row!r}; expected an object")
    found: list[Mapping[str, Any]] = rows
    return found


def _get(path: Path, where: str, data: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    if key not in data:
        raise InstanceError(f"{path}: {where} has no {key}")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InstanceError(f"{path}: {where}: {key} is {value!r}, which is no {_told(kind)}")
    return value


def _told(kind: type | tuple[type, ...]) -> str:
    words = {int: "whole number", float: "number", str: "name", list: "list", dict: "object"}
    return words[kind[-1] if isinstance(kind, tuple) else kind]
