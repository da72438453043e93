"""Pictures of forward passes that wait: backward pass, wire and next forward pass, as ready and as planned."""

from typing import Any

from matplotlib import colormaps
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import Piece, plan, sent_by, shown
from ddlopt.models.compression.timeline.choices import plain_option

_LANES = ("forward", "wire", "backward")
"""Rows, from below."""


def draw(axes: Any, instance: ForwardInstance, solution: ForwardPlan) -> None:
    """Draw three lanes: above uncompressed gradients whole and as they are ready, below the plan.

    A gradient has the same colour in all of them, dark where the next forward pass needs it first.
    """
    colours = colormaps["viridis"].reversed()
    order = range(instance.size)
    first = plan(instance, _plain(instance), (1,) * instance.size, order)
    ends = []
    for floor, drawn, said in (
        (3.8, first, "uncompressed, as ready"),
        (0.0, solution, "as planned (dark: needed first)"),
    ):
        pieces, layers = shown(instance, drawn)
        lanes = {"forward": layers, "wire": pieces, "backward": _backward(instance, drawn)}
        ends.append(layers[0].end_s)
        for row, lane in enumerate(_LANES):
            bars = [
                Rectangle((1e3 * each.start_s, floor + row), 1e3 * (each.end_s - each.start_s), 0.8)
                for each in lanes[lane]
            ]
            paints = [colours(each.place / max(1, instance.size - 1)) for each in lanes[lane]]
            width = 0.2 if len(bars) <= 300 else 0.0
            axes.add_collection(PatchCollection(bars, facecolors=paints, edgecolors="white", linewidths=width))
        axes.plot([1e3 * ends[-1]] * 2, [floor - 0.1, floor + 2.9], color="black", linewidth=1)
        axes.text(0, floor + 2.9, f"{said}: {1e3 * ends[-1]:.4g} ms", va="bottom", fontsize=8)
    places = [floor + row + 0.4 for floor in (0.0, 3.8) for row in range(len(_LANES))]
    axes.set_yticks(places, _LANES * 2, fontsize=7)
    axes.set_xlim(0, 1.02e3 * max(ends))
    axes.set_ylim(-0.2, 7.3)
    axes.set_xlabel("time since the start of the backward pass [ms]", fontsize=8)
    axes.tick_params(labelsize=7)


def _plain(instance: ForwardInstance) -> tuple[int, ...]:
    menus = [instance.timeline.menus[gradient.menu] for gradient in instance.timeline.gradients]
    return tuple(plain_option(menu) or 0 for menu in menus)


def _backward(instance: ForwardInstance, solution: ForwardPlan) -> list[Piece]:
    """From one gradient to the next, with its encoding."""
    encoded = sent_by(instance, solution.choices).encoded_s
    return [Piece(i, start, end) for i, (start, end) in enumerate(zip((0.0, *encoded), encoded, strict=False))]
