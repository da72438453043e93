"""What tables and pictures must know of a family: which sizes to print, and how to draw a solution."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ddlopt.models.contracts import Instance

Draw = Callable[[Any, Any, Any], None]
"""Called with Matplotlib axes, an instance and a solution."""


@dataclass(frozen=True)
class View:
    """``sizes``: attributes of an instance by column header, of a tuple its length; ``draw``: a picture, or None."""

    sizes: Mapping[str, str]
    draw: Draw | None = None


def _drawn_by(family: str) -> Draw:
    """``draw`` of ``ddlopt.analysis.<family>``, imported when something is drawn: Matplotlib takes its time."""

    def draw(axes: Any, instance: Any, solution: Any) -> None:
        import_module(f"ddlopt.analysis.{family}").draw(axes, instance, solution)

    return draw


_VIEWS = {
    "topology": View({"n": "servers", "d": "degree"}, _drawn_by("topology")),
    "scheduling": View({"jobs": "jobs", "servers": "server_count", "slots": "slots"}, _drawn_by("scheduling")),
    "codesign": View({"n": "servers", "d": "degree", "layers": "layers"}, _drawn_by("codesign")),
    "deployment": View({"problem": "problem", "size": "size"}, _drawn_by("deployment")),
    "aggregation": View({"problem": "problem", "size": "size"}, _drawn_by("aggregation")),
    "gossip": View({"problem": "problem", "size": "size"}, _drawn_by("gossip")),
    "compression": View({"problem": "problem", "size": "size"}, _drawn_by("compression")),
}


def view(family: str) -> View:
    """The view of a family; one without sizes and pictures where none is given."""
    return _VIEWS.get(family, View({}))


def sizes(instance: Instance) -> dict[str, Any]:
    """Sizes of an instance by column header."""
    values = {header: getattr(instance, attribute) for header, attribute in view(instance.family).sizes.items()}
    return {header: len(value) if isinstance(value, tuple) else value for header, value in values.items()}
