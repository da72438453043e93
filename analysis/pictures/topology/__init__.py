"""Pictures of topology designs."""

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import FancyArrowPatch

from ddlopt.models.tolerances import ZERO_TOL
from ddlopt.models.topology import TopologyDesign, TopologyInstance

FEW = 24
"""The most servers with which links get arrowheads and servers their numbers."""

_KINDS = LinearSegmentedColormap.from_list("kinds", ["#d95f02", "#8c4a9e", "#1f6fb4"])
_LOAD = LinearSegmentedColormap.from_list("load", ["#b9d3e8", "#3b83bd", "#0b2f57"])
_IDLE = "#c8c8c8"


def link_loads(instance: TopologyInstance, design: TopologyDesign) -> dict[tuple[int, int], npt.NDArray[np.float64]]:
    """Bytes on one link of every joined ordered pair: ``[all-reduce, model-parallel]``."""
    counts = design.link_counts(instance)
    carried: dict[tuple[int, int], npt.NDArray[np.float64]] = defaultdict(lambda: np.zeros(2))
    for ring in design.rings:
        for path in ring.paths:
            for hop in itertools.pairwise(path):
                carried[hop][0] += ring.share * instance.allreduce_groups[ring.group].hop_bytes
    for route in design.routes:
        for path, fraction in zip(route.paths, route.fractions, strict=True):
            for hop in itertools.pairwise(path):
                carried[hop][1] += fraction * instance.traffic_bytes[route.source, route.target]
    return {pair: carried[pair] / count for pair, count in counts.items()}


def draw(axes: Any, instance: TopologyInstance, design: TopologyDesign) -> None:
    """Draw servers on a circle and a line for every link, the wider the more it carries.

    Where the job has both kinds of traffic the colour tells them apart, otherwise it shows the load as well. Parallel
    links are bent differently; a duplex link is drawn once, with the larger load of its two directions.
    """
    n, duplex = instance.servers, instance.optics == "duplex"
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    loads = link_loads(instance, design)
    busiest = max((load.sum() for load in loads.values()), default=0.0) or 1.0
    both = bool(instance.allreduce_groups) and bool(instance.traffic_bytes.any())
    colours = _KINDS if both else _LOAD

    lines, paints, widths = [], [], []
    for (i, j), load in sorted(loads.items(), key=lambda item: item[1].sum()):
        if duplex and i > j:
            continue
        shown = max(load, loads[j, i], key=np.sum) if duplex else load
        total = float(shown.sum())
        paint = colours(shown[0] / total if both else total / busiest) if total > ZERO_TOL * busiest else _IDLE
        width = (0.4 if n > FEW else 0.7) + (1.2 if n > FEW else 2.6) * total / busiest
        for copy in range(design.link_counts(instance)[i, j]):
            bend = (0.0 if duplex else 0.09) + 0.13 * copy
            if n > FEW:
                lines.append(_arc(places[i], places[j], bend))
                paints.append(paint)
                widths.append(width)
            else:
                axes.add_patch(_arrow(places[i], places[j], bend, paint, width, duplex))
    axes.add_collection(LineCollection(lines, colors=paints, linewidths=widths, alpha=min(1.0, 250 / (len(lines) + 1))))

    size = 230 if n <= FEW else max(4.0, 2000 / n)
    axes.scatter(*places.T, s=size, color="white", edgecolor="#222222", linewidth=0.9, zorder=3)
    if n <= FEW:
        for server, (x, y) in enumerate(places):
            axes.text(x, y, str(server), ha="center", va="center", fontsize=8, zorder=4)
    axes.set(xlim=(-1.16, 1.16), ylim=(-1.16, 1.16), aspect="equal")
    axes.axis("off")
    _legend(axes, colours, both)


def _arrow(start: Any, end: Any, bend: float, paint: Any, width: float, duplex: bool) -> FancyArrowPatch:
    return FancyArrowPatch(
        start,
        end,
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-" if duplex else "-|>",
        mutation_scale=7 + 1.5 * width,
        shrinkA=8,
        shrinkB=8,
        linewidth=width,
        color=paint,
        zorder=2,
    )


def _arc(start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], bend: float) -> npt.NDArray[np.float64]:
    """(13, 2) points of a quadratic Bézier curve, bent as ``arc3`` bends."""
    along = end - start
    middle = (start + end) / 2 + bend * np.array([along[1], -along[0]])
    t = np.linspace(0, 1, 13)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def _legend(axes: Any, colours: LinearSegmentedColormap, both: bool) -> None:
    scale = axes.figure.colorbar(
        ScalarMappable(Normalize(0, 1), colours), ax=axes, orientation="horizontal", shrink=0.55, pad=0.02, aspect=30
    )
    scale.outline.set_visible(False)
    if both:
        scale.set_ticks([0, 0.5, 1], labels=["model-parallel", "both", "all-reduce"])
    else:
        scale.set_ticks([0, 0.5, 1], labels=["idle", "load of a link", "busiest"])
    scale.ax.tick_params(length=0, labelsize=7)
