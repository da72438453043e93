"""The bundled deployment instances: everything comes from the generators."""

from collections.abc import Iterator
from importlib import import_module

from ddlopt.models.deployment import DeploymentProblem

_PARTS = ("plan", "partition", "strategies")
"""Modules in this folder, each with its own ``instances()``."""


def instances() -> Iterator[DeploymentProblem]:
    """All bundled instances of the family."""
    for part in _PARTS:
        yield from import_module(f"ddlopt.instances.library.deployment.{part}").instances()
