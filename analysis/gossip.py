"""Pictures of gossip answers; those of each problem are in a module of its own."""

from importlib import import_module
from typing import Any

_MODULES = {"exchange": "exchange_times"}
"""Of problems whose module has another name."""


def draw(axes: Any, instance: Any, solution: Any) -> None:
    """Draw an answer to any problem of the family."""
    module = _MODULES.get(instance.problem, instance.problem)
    import_module(f"ddlopt.analysis.gossip_{module}").draw(axes, instance, solution)
