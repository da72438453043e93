"""The bundled compression instances: everything comes from the generators, measured gradients apart."""

from collections.abc import Iterator
from importlib import import_module

from ddlopt.models.compression import CompressionProblem

_PARTS = ("sfb", "timeline", "levels", "measured")
"""Modules in this folder, each with its own ``instances()``."""


def instances() -> Iterator[CompressionProblem]:
    """All bundled instances of the family."""
    for part in _PARTS:
        yield from import_module(f"ddlopt.instances.library.compression.{part}").instances()
