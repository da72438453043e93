"""What tables and pictures show of an instance: its sizes, and an answer drawn."""

from collections.abc import Callable
from typing import Any

from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance

Draw = Callable[[Any, Any, Any], None]
"""Called with Matplotlib axes, an instance and a solution."""


def sizes(instance: Instance) -> dict[str, Any]:
    """Sizes of an instance by column header."""
    values = {header: getattr(instance, attribute) for header, attribute in problem_of(instance).columns.items()}
    return {header: len(value) if isinstance(value, tuple) else value for header, value in values.items()}


def size_of(instance: Instance) -> int:
    """How many of what its problem counts."""
    first = next(iter(sizes(instance).values()))
    return first if isinstance(first, int) else int(instance.size)  # type: ignore[attr-defined]


def picture_of(instance: Instance) -> Draw | None:
    """``draw`` of ``ddlopt.analysis.pictures.<path>``; None where answers to the problem are not drawn."""
    pictures = problem_of(instance).module("analysis.pictures")
    draw: Draw | None = getattr(pictures, "draw", None)
    return draw
