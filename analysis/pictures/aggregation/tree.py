"""Pictures of aggregation in trees: which switches aggregate, and how many messages each link has."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from ddlopt.models.aggregation import AggregatingSwitches, TreeInstance
from ddlopt.models.aggregation.tree.evaluate import evaluate_tree, messages

_BLUE, _GREY, _EDGE = "#1f6fb4", "#a6a6a6", "#444444"
_LABELLED = 40
"""Switches up to which each has its number or name, and each link its messages."""
# Points: as wide as a node, and as thin as can still be seen.
_WIDEST, _THINNEST = 9.0, 0.3

Floats = npt.NDArray[np.float64]


def draw(axes: Any, instance: TreeInstance, solution: AggregatingSwitches) -> None:
    """The tree below the destination, a square.

    The width of a link is that of its messages, by size. Switches that aggregate for all jobs are blue, for some of
    them paler, for none white; those without memory are small and grey.
    """
    x, y = layout(instance)
    carried = np.array([messages(instance, job, chosen) for job, chosen in enumerate(solution.switches)])
    sizes = np.array([job.message_size for job in instance.jobs])
    busy = sizes @ carried
    top = [x[instance.order[0]], 1.0]
    above = [top if up is None else [x[up], y[up]] for up in instance.parents]
    ends = [[[x[v], y[v]], above[v]] for v in range(instance.size)]
    widest = _WIDEST if instance.size <= _LABELLED else 0.6 * _WIDEST
    widths = np.maximum(_THINNEST, widest * busy / busy.max())
    blue = np.array([sum(v in set(chosen) for chosen in solution.switches) for v in range(instance.size)])
    axes.add_collection(LineCollection(ends, linewidths=widths, colors=_GREY, capstyle="round", zorder=1))
    _switches(axes, instance, x, y, blue)
    axes.plot(*top, marker="s", color="black", markersize=7 if instance.size <= _LABELLED else 4)
    if instance.size <= _LABELLED:
        _labels(axes, instance, ends, carried, blue)
    span = max(1.0, float(x.max() - x.min()))
    axes.set_xlim(x.min() - 0.05 * span, x.max() + 0.05 * span)
    axes.set_ylim(y.min() - 0.06 * (1 - y.min()) - 0.1, 1.25)
    axes.axis("off")
    _legend(axes, instance, solution)


def layout(instance: TreeInstance) -> tuple[Floats, Floats]:
    """Place of each switch: leaves side by side, others over the middle of their children, levels from 0 down."""
    x, y = np.zeros(instance.size), np.zeros(instance.size)
    waiting, leaves = [instance.order[0]], 0
    while waiting:
        node = waiting.pop()
        if not instance.children[node]:
            x[node] = leaves
            leaves += 1
        for child in reversed(instance.children[node]):
            y[child] = y[node] - 1
            waiting.append(child)
    for node in reversed(instance.order):
        below = instance.children[node]
        if below:
            x[node] = (x[below[0]] + x[below[-1]]) / 2
    return x, y


def _switches(axes: Any, instance: TreeInstance, x: Floats, y: Floats, blue: npt.NDArray[np.int64]) -> None:
    size = float(np.clip(9000 / instance.size, 6, 420))
    able = np.array(
        [any(instance.may_aggregate(j, v) for j in range(len(instance.jobs))) for v in range(instance.size)]
    )
    plain, idle = ~able & (blue == 0), able & (blue == 0)
    axes.scatter(x[plain], y[plain], s=(0.3 if instance.size <= _LABELLED else 0.12) * size, c=_GREY, zorder=2)
    axes.scatter(
        x[idle],
        y[idle],
        s=(0.6 if instance.size <= _LABELLED else 0.25) * size,
        c="white",
        linewidths=0.4,
        edgecolors=_EDGE,
        zorder=2,
    )
    colours = _shaded(blue[blue > 0] / len(instance.jobs))
    axes.scatter(x[blue > 0], y[blue > 0], s=size, c=colours, linewidths=0.6, edgecolors=_EDGE, zorder=3)


def _shaded(share: Floats) -> Floats:
    """Blue, the paler the smaller the share."""
    blue = np.array([int(_BLUE[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    shades: Floats = 1 - (0.3 + 0.7 * share[:, None]) * (1 - blue)
    return shades


def _labels(
    axes: Any, instance: TreeInstance, ends: list[Any], carried: npt.NDArray[np.int64], blue: npt.NDArray[np.int64]
) -> None:
    """Numbers of switches, messages that enter at them, and messages on links, by job."""
    for node, ((x0, y0), (x1, y1)) in enumerate(ends):
        axes.text(
            x0, y0, str(node), ha="center", va="center", fontsize=6, zorder=4, color="white" if blue[node] else _EDGE
        )
        shown = " + ".join(map(str, carried[:, node]))
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.text((x0 + x1) / 2, (y0 + y1) / 2, shown, ha="center", va="center", fontsize=6, zorder=4, bbox=box)
        loads = [job.loads[node] for job in instance.jobs]
        if any(loads):
            label = " + ".join(map(str, loads))
            axes.annotate(label, (x0, y0), (0, -11), textcoords="offset points", ha="center", va="top", fontsize=6)


def _legend(axes: Any, instance: TreeInstance, solution: AggregatingSwitches) -> None:
    pairs, value = sum(map(len, solution.switches)), evaluate_tree(instance, solution).objective
    count = f"{pairs}" if instance.budget is None else f"{pairs} of at most {instance.budget}"
    what = "switches" if len(instance.jobs) == 1 else "pairs of job and switch"
    marks = [("o", _BLUE, f"aggregates: {count} {what}"), ("o", "white", "does not"), ("s", "black", "destination")]
    if instance.memory is not None and not all(instance.memory):
        marks.insert(2, (".", _GREY, "has no memory"))
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markeredgecolor=_EDGE, label=label)
        for marker, colour, label in marks
    ]
    handles.append(Line2D([], [], color=_GREY, linewidth=4, label="messages on a link"))
    axes.legend(
        handles=handles, fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False,
        title="" if value is None else f"{instance.goal} {float(value):.4g} s", title_fontsize=8,
    )  # fmt: skip
