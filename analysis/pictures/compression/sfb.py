"""Pictures of selections: which gradients travel as factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Patch

from ddlopt.analysis.pictures.compression.colours import WIRE
from ddlopt.models.compression import SfbInstance, SfbSelection

MOST_BARS = 40
"""Gradients that a picture names; the smallest are left out."""


def draw(axes: Any, instance: SfbInstance, selection: SfbSelection) -> None:
    """Draw the all-reduce time of every gradient, and which are spared."""
    chosen = set(selection.duplicated)
    order: Sequence[int] = np.argsort(-instance.sync_s, kind="stable")[:MOST_BARS].tolist()
    shown = [node for node in order if instance.sync_s[node] > 0]
    places = np.arange(len(shown))[::-1]
    paints = [WIRE["sfb"] if node in chosen else WIRE["none"] for node in shown]
    axes.barh(places, 1e3 * instance.sync_s[shown], color=paints, height=0.8)
    axes.set_yticks(places, [instance.operators[node].name for node in shown], fontsize=6)
    axes.set_xlabel("all-reduce of the gradient [ms]", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    handles = [
        Patch(color=WIRE["none"], label="all-reduced"),
        Patch(color=WIRE["sfb"], label="spared: computed from factors on every device"),
    ]
    axes.legend(handles=handles, fontsize=7, loc="lower right")
