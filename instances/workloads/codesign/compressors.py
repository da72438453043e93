r"""Strategies times compressors: gradients that a ring can add up in fewer bytes, with the time and what is lost.

A strategy that all-reduces P gradient numbers on a server, of a layer that has the part w of all the network's
parameters, has with a compressor

====================== ======================================= ===============================================
figure                 fp16                                    random_k, the part r is kept
====================== ======================================= ===============================================
bytes in place of b    2 b / (bytes of a gradient)             r b
error                  :math:`w \cdot 2^{-20} \ln 2 / 18`       w (1 - r)
====================== ======================================= ===============================================

The error is the part of the energy of all gradients that is lost, if it is spread evenly over the parameters; that of
rounding is the mean of numbers of any size (:mod:`ddlopt.instances.workloads.compression.compressors`). Encoding and
decoding take a GPU what :mod:`ddlopt.instances.workloads.compression.costs` has for so many numbers; the GPUs of a
server share them out. What is reduced of activations is never compressed, and neither are gradients of tables. Others
are not offered: sums of what they send are not what the sum would be sent as, or it depends on the shape of the tensor.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ddlopt.instances.workloads.codesign.graphs import Graph
from ddlopt.instances.workloads.codesign.strategies import GRADIENTS, Fields, Setting
from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.workloads.compression.costs import GPU_S
from ddlopt.models.errors import OptionError

OFFERED = ("fp16", "random_k")
"""Compressors of layers."""
_MEGA = 2**20
"""A megabyte, as the costs of compressors count it."""


def compressions(words: Iterable[str]) -> tuple[Compression, ...]:
    """The compressors that such words name, as ``fp16`` and ``random_k:0.01``.

    Raises
    ------
    OptionError
        If one is none, or none that rings add up whatever the tensor's shape.
    """
    found = []
    for each in words:
        made = Compression.from_words(each)
        if made.compressor not in OFFERED or made.scope is not None or made.device != "gpu":
            raise OptionError(f"compressors has '{each}'; rings of layers take: fp16, random_k:RATIO")
        found.append(made)
    return tuple(dict.fromkeys(found))


def add_compressed(
    layers: Sequence[Fields], graph: Graph, setting: Setting, menu: Sequence[Compression]
) -> list[Fields]:
    """The layers with a strategy more for every compressor of every strategy that reduces gradients."""
    parameters = {piece.name: sum(each.parameters for each in (*piece.split, *piece.after)) for piece in graph.pieces}
    total = sum(parameters.values()) + sum(table.parameters for table in graph.tables)
    made = []
    for layer in layers:
        part = parameters.get(layer["name"], 0) / total if total else 0.0
        strategies = list[Fields]()
        for plain in layer["strategies"]:
            count, fields = plain.get(GRADIENTS, 0), {name: each for name, each in plain.items() if name != GRADIENTS}
            smaller = [each for each in menu if count and _ratio(setting, each) < 1]
            strategies += [fields, *(_compressed(fields, count, setting, each, part) for each in smaller)]
        made.append(layer | {"strategies": strategies})
    return made


def _ratio(setting: Setting, compression: Compression) -> float:
    """Bytes by bytes of what is not compressed."""
    if compression.compressor == "fp16":
        return 2.0 / setting.precision.gradient_bytes
    return float(compression.parameter or 0.0)


def _compressed(plain: Fields, count: int, setting: Setting, compression: Compression, part: float) -> dict[str, Any]:
    """The strategy when its last ``count`` reductions are compressed."""
    ratio, reductions = _ratio(setting, compression), plain["reductions"]
    gradients = [each | {"bytes": ratio * each["bytes"]} for each in reductions[-count:]]
    numbers = sum(each["bytes"] for each in reductions[-count:]) / setting.precision.gradient_bytes
    coding_s = sum(GPU_S[compression.compressor]) * max(1.0, numbers / setting.gpus_per_server / _MEGA)
    parameter = "" if compression.parameter is None else f":{compression.parameter:g}"
    lost = 1 - ratio if compression.compressor == "random_k" else compression.relative_error((_MEGA,))
    return plain | {
        "name": f"{plain['name']}+{compression.compressor}{parameter}",
        "reductions": [*reductions[:-count], *gradients],
        "encoding_s": float(f"{coding_s:.6g}"),
        "error": float(f"{part * lost:.6g}"),
    }
