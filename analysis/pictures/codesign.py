"""Pictures of co-design plans."""

from typing import Any

import matplotlib as mpl
import numpy as np

from ddlopt.analysis.pictures import topology
from ddlopt.models.codesign import CodesignInstance, CodesignPlan, job_of

_FEW = 40
"""Up to this number of layers each has its name."""


def draw(axes: Any, instance: CodesignInstance, plan: CodesignPlan) -> None:
    """Draw the strategy of every layer, as long as it computes, beside the links that carry what they send.

    Layers run from top to bottom; the colour is the strategy's. Where the strategies send nothing there are no links.
    """
    axes.axis("off")
    choices = plan.choices(instance)
    _draw_strategies(axes.inset_axes((0.0, 0.04, 0.3, 0.92)), instance, choices)
    job = job_of(instance, choices)
    if job is not None:
        topology.draw(axes.inset_axes((0.36, 0.0, 0.64, 1.0)), job, plan.design)


def _draw_strategies(axes: Any, instance: CodesignInstance, choices: tuple[int, ...]) -> None:
    order = instance.order
    times = np.array([instance.compute_s(layer, choices[layer]) for layer in order])
    names = [instance.layers[layer].strategies[choices[layer]].name for layer in order]
    kinds = sorted(set(names), key=lambda name: (-names.count(name), name))
    colours = mpl.colormaps["tab20"](np.arange(max(len(kinds), 1)) % 20)
    for kind, colour in zip(kinds, colours, strict=True):
        rows = [row for row, name in enumerate(names) if name == kind]
        axes.barh(rows, 1e3 * times[rows], height=0.9, color=colour, label=kind)
    axes.set(xlabel="compute, ms", ylim=(len(order) - 0.5, -0.5))
    shown = range(len(order)) if len(order) <= _FEW else ()
    axes.set_yticks(shown, [instance.layers[order[row]].name for row in shown], fontsize=5)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(kinds[:12], fontsize=6, frameon=False, loc="lower right", title="strategy", title_fontsize=6)
