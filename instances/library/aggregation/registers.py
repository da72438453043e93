"""The bundled placements in register arrays: all generated, see each instance's ``source``."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import AggregationProblem

_INSTANCES: dict[str, tuple[int, dict[str, Any]]] = {
    "registers-tiny-n8-r3": (1, {"parameters": 8, "arrays": 3, "batches": 8, "held_out": 8, "rows": 1}),
    "registers-tiny-collisions-n8-r3": (
        2, {"parameters": 8, "arrays": 3, "batches": 8, "held_out": 8, "rows": 1, "goal": "collisions"},
    ),
    "registers-n24-r8": (3, {}),
    "registers-n40-r8-rows1": (4, {"parameters": 40, "rows": 1}),
    "registers-n60-r16-rows2": (5, {"parameters": 60, "arrays": 16, "rows": 2}),
    "registers-n40-r8-collisions": (6, {"parameters": 40, "rows": 1, "goal": "collisions"}),
    "registers-n24-r8-collisions": (7, {"rows": 2, "goal": "collisions"}),
    "registers-n200-r16-half": (
        8, {"parameters": 200, "arrays": 16, "entries": 8, "batches": 100, "held_out": 50},
    ),
    "registers-n200-r16-full": (9, {"parameters": 200, "arrays": 16, "batches": 100, "held_out": 50}),
}  # fmt: skip
"""Seed and options of kind ``registers-zipf`` by name."""


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``registers``."""
    for name, (seed, options) in _INSTANCES.items():
        yield generate("registers-zipf", seed, name=name, **options)
