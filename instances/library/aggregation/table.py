"""Bundled lookup tables: those of sums in switches, and of random functions, some small enough to enumerate."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import AggregationProblem

# A definition.
_KB = 1024
_INSTANCES: dict[str, tuple[int, dict[str, Any]]] = {
    "table-integers-b8": (0, {"bits": 8, "budget_bytes": 8 * _KB}),
    "table-integers-b12-max": (0, {"bits": 12, "budget_bytes": 64 * _KB, "goal": "max"}),
    "table-integers-b16-448kb": (0, {"bits": 16, "budget_bytes": 448 * _KB}),
    "table-prefixes-b14": (0, {"bits": 14, "budget_bytes": 128 * _KB, "entries": "prefixes"}),
    "table-bfloat16": (0, {"shape": "mantissas", "bits": 7, "signed": True, "budget_bytes": 8 * _KB}),
    "table-half": (0, {"shape": "mantissas", "bits": 10, "entries": "prefixes", "budget_bytes": 64 * _KB}),
    "table-random-b8": (1, {"shape": "random", "bits": 8, "tables": 4}),
    "table-tiny-n8": (20, {"shape": "random", "bits": 3, "tables": 2, "budget_bytes": 20}),
    "table-tiny-prefixes-n8": (
        2,
        {"shape": "random", "bits": 3, "tables": 2, "budget_bytes": 24, "entries": "prefixes"},
    ),
}
"""Seed and options of kind ``table`` by name."""


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``table``."""
    for name, (seed, options) in _INSTANCES.items():
        yield generate("table", seed, name=name, **options)
