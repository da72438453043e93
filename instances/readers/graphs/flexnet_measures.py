"""Operator times as FlexNet's authors publish them beside TopoOpt: measured on one A100, by how the operator is cut.

A JSON object of ``batch_size`` (samples of all GPUs together), ``ngpus`` and ``measurements``, a list of objects of
``name`` (type and sizes: ``Dense_4096_1000``, ``Embed_10000000x256``), ``pc_str`` (number of dimensions, then into how
many parts each is cut, the batch last: ``2-1-16``), ``fw_time`` and ``bw_time`` in milliseconds, and ``mem_req`` in
bytes. They are no instance: the generator of co-design jobs takes them as ``measures=FILE``.

A part is a server of four GPUs, though the files call it one: memory is that of a quarter of the part's samples (a
dense layer of x inputs, y outputs and P parameters takes 8 (P + s (x + y)) bytes, with s = batch / parts / 4), and so
are times, which would otherwise be far beyond an A100's peak. A table is on one GPU, which looks up for all samples.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError

OPERATORS = (
    "Dense",
    "Embed",
    "Conv2D",
    "Pool2D",
    "MultiHeadAttention",
    "ElementBinary",
    "Concat",
    "Flat",
    "Softmax",
)
"""Types of operators in the published files."""
GPUS_PER_PART = 4
"""Of a dense layer, as the memory in the files shows."""
# Milliseconds in seconds.
_MS = 1e-3


@dataclass(frozen=True)
class Measures:
    """Times of operators on one GPU.

    Parameters
    ----------
    origin : str
        Name of the file.
    samples : int
        Of a batch before it is cut.
    seconds : mapping of (str, int) to mapping of int to float
        By name and number of dimensions: forward and backward time by the number of parts of the batch, where nothing
        else is cut.
    """

    origin: str
    samples: int
    seconds: Mapping[tuple[str, int], Mapping[int, float]]

    def time_s(self, name: str, dimensions: int, parts: float, wanted_by: str) -> float | None:
        """Forward and backward time of an operator with the batch in a number of parts; None if it is not in the file.

        Raises
        ------
        InstanceError
            If it is there, but not with this number of parts; ``wanted_by`` says in the message who asks for them.
        """
        known = self.seconds.get((name, dimensions))
        if known is None or parts in known:
            return None if known is None else known[int(parts)]
        there = ", ".join(f"{each}" for each in sorted(known))
        raise InstanceError(
            f"{self.origin}: '{name}' is not measured with its batch in {parts:g} parts, as {wanted_by} needs it; "
            f"it is in: {there}"
        )


def read_measures(path: str | Path) -> Measures:
    """Read operator times from a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    InstanceError
        If the file cannot be read or is something else: one line with the entry, its name and what is wrong.
    """
    path = Path(path)
    data = _read(path)
    samples = data.get("batch_size")
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise InstanceError(f"{path}: batch_size is {samples!r}; expected a whole number of at least 1")
    entries = data.get("measurements")
    if not isinstance(entries, list) or not entries:
        raise InstanceError(f"{path}: measurements must be a list of at least one measurement")
    seconds: dict[tuple[str, int], dict[int, float]] = {}
    for place, entry in enumerate(entries):
        name, cuts, time_s = _measurement(f"{path}: measurements[{place}]", entry)
        if any(parts > 1 for parts in cuts[:-1]):
            continue
        known = seconds.setdefault((name, len(cuts)), {})
        if cuts[-1] in known:
            raise InstanceError(f"{path}: measurements[{place}], '{name}': {entry['pc_str']} is there twice")
        known[cuts[-1]] = time_s
    return Measures(path.name, samples, seconds)


def _read(path: Path) -> Mapping[str, Any]:
    text = text_of(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InstanceError(f"{path}: not valid JSON: {problem}") from None
    if not isinstance(data, Mapping):
        raise InstanceError(f"{path}: expected an object of batch_size and measurements, got a {type(data).__name__}")
    return data


def _measurement(where: str, entry: Any) -> tuple[str, tuple[int, ...], float]:
    """Name, parts of every dimension, and seconds of one entry."""
    if not isinstance(entry, Mapping):
        raise InstanceError(f"{where} is {entry!r}; expected an object of name, pc_str, fw_time and bw_time")
    for field in ("name", "pc_str", "fw_time", "bw_time"):
        if field not in entry:
            raise InstanceError(f"{where}: {field} is missing")
    name = entry["name"]
    if not isinstance(name, str) or name.split("_")[0] not in OPERATORS:
        raise InstanceError(f"{where}: unknown operator {name!r}; known types: {', '.join(OPERATORS)}")
    where += f", '{name}'"
    total = 0.0
    for field in ("fw_time", "bw_time"):
        time = entry[field]
        if not isinstance(time, int | float) or isinstance(time, bool) or not 0 <= time < math.inf:
            raise InstanceError(f"{where}: {field} is {time!r}; expected milliseconds, at least 0")
        total += time
    return name, _cuts(where, entry["pc_str"]), total * _MS


def _cuts(where: str, text: Any) -> tuple[int, ...]:
    numbers = text.split("-") if isinstance(text, str) else []
    if not all(each.isdecimal() for each in numbers) or len(numbers) < 2 or len(numbers) != int(numbers[0]) + 1:
        raise InstanceError(
            f"{where}: pc_str is {text!r}; expected a number of dimensions and as many numbers of parts, like '2-1-16'"
        )
    cuts = tuple(int(each) for each in numbers[1:])
    if min(cuts) < 1:
        raise InstanceError(f"{where}: pc_str is {text!r}; every dimension has at least 1 part")
    return cuts
