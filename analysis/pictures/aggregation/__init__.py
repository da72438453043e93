"""Pictures of aggregation answers; those of each problem are in a module of its own."""

from importlib import import_module
from typing import Any


def draw(axes: Any, instance: Any, solution: Any) -> None:
    """Draw an answer to any problem of the family."""
    import_module(f"ddlopt.analysis.pictures.aggregation.{instance.problem}").draw(axes, instance, solution)
