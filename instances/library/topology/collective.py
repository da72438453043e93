"""Bundled collectives: boxes, the graphs of the family's designs, and networks where rings or phases in turn lose."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.topology import generate
from ddlopt.models.topology import TopologyProblem

_INSTANCES: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("all-gather", "dgx-a100", 0, {"boxes": 2}),
    ("all-gather", "mi250", 0, {}),
    ("all-gather", "kautz", 0, {"accelerators": 12}),
    ("all-gather", "rails", 0, {"boxes": 4}),
    ("all-gather", "torus", 0, {"dimensions": "4x4x4"}),
    ("reduce-scatter", "unequal", 1, {"accelerators": 8, "degree": 3}),
    ("all-reduce", "dgx-h100", 0, {"boxes": 4}),
    ("all-reduce", "mi250", 0, {}),
    ("all-reduce", "de-bruijn", 0, {"accelerators": 8}),
    ("all-reduce", "path", 0, {"accelerators": 4}),
    ("all-reduce", "unequal", 2, {"accelerators": 8, "degree": 3}),
    ("broadcast", "dgx-a100", 0, {"boxes": 2}),
    ("broadcast", "unequal", 3, {"accelerators": 12, "degree": 3}),
    ("all-to-all", "dgx-a100", 0, {"boxes": 2}),
    ("all-to-all", "circulant", 0, {"accelerators": 8, "offsets": "1,3"}),
    ("all-to-all", "random", 4, {"accelerators": 12, "degree": 3}),
    ("all-to-all", "torus", 0, {"dimensions": "4x4"}),
)  # fmt: skip
"""Collective, network, seed and options."""


def instances() -> Iterator[TopologyProblem]:
    """All bundled instances of the problem ``collective``."""
    for name, network, seed, options in _INSTANCES:
        yield generate("collective", seed, network=network, collective=name, **options)
