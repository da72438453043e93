"""Measured times in place of the roofline, where an operator of a layer was measured.

Matched are dense layers on one vector a sample, and embedding tables, by their sizes. (Convolutions are not: the
measurements name them without the size of their image, so that one figure stands for several.) A layer applied several
times by each sample takes as many times as long. Strategies that were not measured, the cuts by columns and rows, take
their roofline times the ratio of measured time and roofline of what was, so that a layer's strategies stay comparable.
"""

from collections.abc import Sequence
from typing import Any

from ddlopt.instances.readers.graphs.flexnet_measures import GPUS_PER_PART, Measures
from ddlopt.instances.workloads.codesign.graphs import Graph, Piece
from ddlopt.instances.workloads.codesign.strategies import Fields, Setting
from ddlopt.models.codesign import Device
from ddlopt.models.errors import InstanceError


def fill(layers: Sequence[Fields], graph: Graph, setting: Setting, device: Device, measures: Measures) -> list[str]:
    """Set ``measured_s`` of the strategies of ``layers``, which are :meth:`.Menus.layers` of the graph.

    Returns
    -------
    list of str
        Layers that have measured times now.

    Raises
    ------
    InstanceError
        If an operator was measured, but not for as many samples as a data-parallel strategy needs, or none was.
    """
    found = []
    operators = [(f"Embed_{table.rows}x{table.dimension}", 1) for table in graph.tables]
    operators += [_operator(piece) for piece in graph.pieces]
    for layer, (operator, times) in zip(layers, operators, strict=True):
        if _fill(layer, operator, times, setting, device, measures):
            found.append(layer["name"])
    if not found:
        raise InstanceError(f"{measures.origin}: no dense layer and no table of this job was measured")
    return found


def _operator(piece: Piece) -> tuple[str, int]:
    """Name as in the measurements and how often a sample applies it; no name for what was not measured."""
    if len(piece.split) != 1 or piece.after or piece.convolution:
        return "", 1
    outputs, inputs = dict(piece.split[0].tensors)["weight"]
    return f"Dense_{inputs}_{outputs}", piece.split[0].flops // (2 * inputs * outputs)


def _fill(layer: Fields, operator: str, times: int, setting: Setting, device: Device, measures: Measures) -> bool:
    ratio = None
    for strategy in layer["strategies"]:
        name = strategy["name"]
        # A table is whole on one server, for all samples, and its columns are shared by the GPUs.
        servers = 1 if name == "owner" or name.startswith("whole") else _data_servers(name, setting)
        if servers is None:
            continue
        is_table = operator.startswith("Embed")
        gpus = 1 if is_table else servers * setting.gpus_per_server
        parts = measures.samples * gpus / (setting.samples * (1 if is_table else GPUS_PER_PART))
        time_s = measures.time_s(operator, 2, parts, f"'{name}' of layer '{layer['name']}'")
        if time_s is None:
            return False
        strategy["measured_s"] = time_s * times / (setting.gpus_per_server if is_table else 1)
        if ratio is None:
            ratio = strategy["measured_s"] / _roofline_s(layer, strategy, device)
    assert ratio is not None, "every layer is data parallel or whole in one of its strategies"
    for strategy in layer["strategies"]:
        strategy.setdefault("measured_s", float(f"{ratio * _roofline_s(layer, strategy, device):.6g}"))
    return True


def _data_servers(name: str, setting: Setting) -> int | None:
    """On how many servers a data-parallel strategy runs."""
    if name == "data":
        return setting.servers
    return int(name.removeprefix("data-")) if name.startswith("data-") else None


def _roofline_s(layer: Fields, strategy: dict[str, Any], device: Device) -> float:
    rate: float = device.convolution_flops_per_s if layer.get("convolution") else device.flops_per_s
    time_s: float = max(strategy.get("flops", 0) / rate, strategy["moved_bytes"] / device.memory_bytes_per_s)
    return time_s
