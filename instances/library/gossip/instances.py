"""The bundled gossip instances: published graphs, and what the generators make."""

from collections.abc import Iterator
from importlib import import_module

from ddlopt.models.gossip import GossipProblem

_PARTS = ("weights", "matchings", "period", "circulant", "exchange")
"""Modules in this folder, each with its own ``instances()``."""


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the family."""
    for part in _PARTS:
        yield from import_module(f"ddlopt.instances.library.gossip.{part}").instances()
