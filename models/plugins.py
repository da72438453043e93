"""What packages announce under an entry point of ours; the frontier of ddlopt is found no other way."""

import os
from importlib.metadata import EntryPoint, entry_points

HIDDEN = "DDLOPT_NO_FRONTIER"
"""In the environment: set to anything but 0, ddlopt's own frontier is not there."""


def hidden() -> bool:
    """Whether the frontier is to be left out."""
    return os.environ.get(HIDDEN, "0") not in ("", "0")


def is_frontier(point: EntryPoint) -> bool:
    """Whether it is ddlopt's own, and no other package's."""
    return point.value.startswith("ddlopt.frontier.")


def announced(group: str) -> tuple[EntryPoint, ...]:
    """What is announced in a group, ddlopt's own frontier first."""
    points = [point for point in entry_points(group=group) if not (is_frontier(point) and hidden())]
    return tuple(sorted(points, key=lambda point: not is_frontier(point)))
