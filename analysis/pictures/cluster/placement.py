"""Pictures of places: a row for each rack, a square for each host, in the colour of its gang."""

from itertools import pairwise
from typing import Any

from ddlopt.models.cluster import GangPlaces, PlacementInstance

_FREE = "#eeeeee"
_NAMED = 40
"""Racks up to which each is named, and squares have the number of the gang."""


def draw(axes: Any, instance: PlacementInstance, solution: GangPlaces) -> None:
    """Draw the hosts that were free; a line parts domains of the level around the racks."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colours = colormaps["tab20"]
    row_of = {leaf: row for row, leaf in enumerate(sorted(range(len(instance.leaves)), key=instance.path))}
    named = len(row_of) <= _NAMED
    for row, column, gang in squares(instance, solution, row_of):
        colour = _FREE if gang is None else colours(gang % 20)
        axes.add_patch(Rectangle((column, row), 0.9, 0.9, facecolor=colour, linewidth=0))
        if gang is not None and named:
            axes.text(column + 0.45, row + 0.5, str(gang), ha="center", va="center", fontsize=6)
    if len(instance.levels) > 1:
        order = sorted(row_of, key=row_of.__getitem__)
        for above, below in pairwise(order):
            if instance.path(above)[:-1] != instance.path(below)[:-1]:
                axes.axhline(row_of[below] - 0.05, color="black", linewidth=0.6)
    axes.set_xlim(0, max(1, *(leaf.hosts for leaf in instance.leaves)))
    axes.set_ylim(len(row_of), 0)
    if named:
        axes.set_yticks([row + 0.45 for row in row_of.values()], [instance.leaves[leaf].name for leaf in row_of])
    axes.set_xlabel("free hosts, with the number of their gang", fontsize=8)
    axes.set_ylabel(instance.levels[-1], fontsize=8)
    axes.tick_params(labelsize=7)


def squares(
    instance: PlacementInstance, solution: GangPlaces, row_of: dict[int, int]
) -> list[tuple[int, int, int | None]]:
    """Row, column and gang (or None) of each host that was free."""
    found: list[tuple[int, int, int | None]] = []
    filled = [0] * len(instance.leaves)
    for gang, runs in enumerate(solution.places):
        for leaf, count in runs:
            found += [(row_of[leaf], filled[leaf] + place, gang) for place in range(count)]
            filled[leaf] += count
    for leaf, own in enumerate(instance.leaves):
        found += [(row_of[leaf], column, None) for column in range(filled[leaf], own.hosts)]
    return found
