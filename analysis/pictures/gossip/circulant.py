"""Pictures of circulant graphs: workers on a circle, links coloured by generator."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from ddlopt.models.gossip import evaluate
from ddlopt.models.gossip.circulant.instance import CirculantInstance

_NODE = "#333333"
# With more nodes links of one colour would fill an area, so that only those of some nodes are drawn.
_ALL_LINKS = 128
# Colours of the palette ``tab10``.
_NAMED = 10


def draw(axes: Any, instance: CirculantInstance, solution: Any) -> None:
    """All links, or beyond 128 workers those of the first worker; the first worker's links are strong."""
    n = instance.nodes
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    at = np.column_stack([np.cos(angles), np.sin(angles)])
    handles = []
    weights = solution.weights or (None,) * len(solution.generators)
    for place, (generator, weight) in enumerate(zip(solution.generators, weights, strict=True)):
        colour = colormaps["tab10"](place % _NAMED)
        everywhere = [(at[x], at[(x + generator) % n]) for x in range(n)]
        own = [(at[0], at[generator]), (at[0], at[-generator])]
        if n <= _ALL_LINKS:
            axes.add_collection(LineCollection(everywhere, colors=[colour], linewidths=0.6, alpha=0.45))
        axes.add_collection(LineCollection(own, colors=[colour], linewidths=2.0, zorder=2))
        label = f"±{generator}" if weight is None else f"±{generator}: {weight:.3g}"
        handles.append(Line2D([], [], color=colour, label=label))
    axes.scatter(*at.T, s=max(2.0, 600.0 / n), color=_NODE, zorder=3)
    objective = evaluate(instance, solution).objective
    if objective is not None:
        axes.set_title(f"{'λ₂' if instance.goal == 'gap' else 'ρ'} = {float(objective):.5g}", fontsize=9)
    axes.legend(handles=handles[:_NAMED], fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_aspect("equal")
    axes.margins(0.05)
    axes.axis("off")
