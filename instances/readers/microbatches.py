"""Collections of orders of micro-batches in JSON: pipelines as lists of times, with exact fractions as text.

An object with a list ``instances``. One of these has ``name``, ``p`` devices, ``n`` micro-batches, ``c`` chunks in one
chain, ``device`` of each, ``tF``, ``tB``, ``tW``, ``fused``, ``transfer`` (one time, between devices), ``mF`` and
``dB`` (memory that F takes and B gives back; the rest is W's), ``memory`` of a device, ``objective``. Numbers may be
written as text, ``"5/2"``. Whatever else is there is left alone.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ddlopt.instances.options import checked
from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.errors import InstanceError

_LARGEST_SCALE = 10**9
"""Of denominators in common; memory is counted in such parts."""


@checked
def read_microbatches(path: str | Path, *, instance: str | None = None, name: str | None = None) -> MicroBatchInstance:
    """One pipeline of a collection.

    Memory is given in the largest part of which all figures are multiples, so that fractions such as 1/3 stay exact.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    instance : str, optional
        Its name in the file; needed where there are several.
    name : str, optional
        None: the same, in small letters.

    Raises
    ------
    InstanceError
        If the file cannot be read, is something else or has no such instance.
    """
    path = Path(path)
    data = object_of(path, "a JSON object with a list 'instances'")
    rows = data.get("instances", [data])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InstanceError(f"{path}: instances is no list of objects; expected one for each pipeline")
    known = [str(row.get("name", "")) for row in rows]
    if instance is None and len(rows) > 1:
        raise InstanceError(
            f"{path}: has {len(rows)} instances; name one by the option instance: {', '.join(known[:3])}…"
        )
    if instance is not None and instance not in known:
        raise InstanceError(f"{path}: has no instance '{instance}'; there are: {', '.join(known[:5])}…")
    row = _Row(path, rows[known.index(instance) if instance is not None else 0])
    return row.read(name)


class _Row:
    """A pipeline of the file, and where it is."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.data = data
        self.where = f"{path}: instance '{data.get('name', '')}'"

    def read(self, name: str | None) -> MicroBatchInstance:
        devices, n, chunks = (self._count(key) for key in ("p", "n", "c"))
        places = self._list("device", chunks)
        times = {key: self._numbers(key, chunks) for key in ("tF", "tB", "tW")}
        held, freed = self._numbers("mF", chunks), self._numbers("dB", chunks)
        memory, transfer = self._number("memory", self._get("memory")), self._number("transfer", self._get("transfer"))
        scale = math.lcm(*(each.denominator for each in (*held, *freed, memory)))
        if scale > _LARGEST_SCALE:
            raise InstanceError(f"{self.where}: memory is in parts of 1/{scale}; figures have no usual unit in common")
        fused = self._get("fused")
        if not isinstance(fused, bool):
            raise InstanceError(f"{self.where}: fused is {fused!r}; expected true or false")
        parts = [
            {
                "name": f"chunk.{place}",
                "device": places[place],
                "forward_s": float(times["tF"][place]),
                "backward_s": float(times["tB"][place] + (times["tW"][place] if fused else 0)),
                "weights_s": None if fused else float(times["tW"][place]),
                "held_bytes": float(held[place] * scale),
                "freed_bytes": float(freed[place] * scale),
            }
            for place in range(chunks)
        ]
        sent = [float(transfer) if places[place] != places[place + 1] else 0.0 for place in range(chunks - 1)]
        told = str(self.data.get("name", "")) or "microbatches"
        return MicroBatchInstance.from_data(
            {
                "name": name or told.lower().replace("_", "-"),
                "source": f"{told}; memory in 1/{scale} of the file's unit" if scale > 1 else told,
                "chunks": parts,
                "edges": [
                    {"maker": place, "user": place + 1, "forward_s": lag, "backward_s": lag}
                    for place, lag in enumerate(sent)
                ],
                "memory_bytes": (float(memory * scale),) * devices,
                "micro_batches": n,
                "objective": self._get("objective"),
            },
            self.where,
        )

    def _get(self, key: str) -> Any:
        if key not in self.data:
            raise InstanceError(f"{self.where}: has no '{key}'")
        return self.data[key]

    def _count(self, key: str) -> int:
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**6:
            raise InstanceError(f"{self.where}: {key} is {value!r}; expected a whole number from 1 on")
        return value

    def _list(self, key: str, count: int) -> list[Any]:
        value = self._get(key)
        if not isinstance(value, list) or len(value) != count:
            found = f"{len(value)} of them" if isinstance(value, list) else repr(value)
            raise InstanceError(f"{self.where}: {key} has {found}; expected a list of {count}, one a chunk")
        return value

    def _numbers(self, key: str, count: int) -> list[Fraction]:
        return [self._number(f"{key}[{place}]", value) for place, value in enumerate(self._list(key, count))]

    def _number(self, key: str, value: Any) -> Fraction:
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            found = Fraction(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise InstanceError(f"{self.where}: {key} is {value!r}; expected a number, or text such as '5/2'") from None
        if found < 0:
            raise InstanceError(f"{self.where}: {key} is {value}; it must be at least 0")
        return found
