"""The bundled deployment instances: everything comes from the generators."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from ddlopt.models.deployment import DeploymentProblem

_PARTS = ("deployment_plan", "deployment_partition", "deployment_strategies")
"""Modules in this folder, each with its own ``instances()``."""


def instances() -> Iterator[DeploymentProblem]:
    """All bundled instances of the family."""
    for part in _PARTS:
        if find_spec(f"ddlopt.instances.library.{part}"):
            yield from import_module(f"ddlopt.instances.library.{part}").instances()
