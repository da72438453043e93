"""The bundled aggregation instances: everything comes from the generators."""

from collections.abc import Iterator
from importlib import import_module

from ddlopt.models.aggregation import AggregationProblem

_PARTS = ("hot", "registers", "tree", "graph", "slots", "table")
"""Modules ``<part>`` in this folder, each with its own ``instances()``."""


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the family."""
    for part in _PARTS:
        yield from import_module(f"ddlopt.instances.library.aggregation.{part}").instances()
