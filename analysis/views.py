"""What tables and pictures must know of a family: which sizes to print, and how to draw a solution."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ddlopt.models.contracts import Instance


@dataclass(frozen=True)
class View:
    """``sizes``: attributes of an instance by column header; ``draw(axes, instance, solution)``: a picture, or None."""

    sizes: Mapping[str, str]
    draw: Callable[[Any, Any, Any], None] | None = None


def _draw_topology(axes: Any, instance: Any, solution: Any) -> None:
    from ddlopt.analysis.topology import draw

    draw(axes, instance, solution)


_VIEWS = {"topology": View({"n": "servers", "d": "degree"}, _draw_topology)}


def view(family: str) -> View:
    """The view of a family; one without sizes and pictures where none is given."""
    return _VIEWS.get(family, View({}))


def sizes(instance: Instance) -> dict[str, int]:
    """Sizes of an instance by column header."""
    return {header: getattr(instance, attribute) for header, attribute in view(instance.family).sizes.items()}
