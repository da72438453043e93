"""Pictures of collectives: how busy each link is, and one tree on the network."""

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, busy_s

_TREE, _EDGE = "#c23b22", "#333333"
_LABELLED = 40
"""Nodes up to which each has its number."""


def draw(axes: Any, instance: CollectiveInstance, solution: CollectivePlan) -> None:
    """Accelerators on a circle, switches inside; links are the darker the busier, and the first tree is red."""
    at = _places(instance)
    busy = {link: float(each) for link, each in busy_s(instance, solution.trees).items()}
    most = max(busy.values())
    colours = colormaps["Blues"]
    for link in instance.bandwidth:
        share = busy.get(link, 0.0) / most
        _arrow(axes, at, link, colours(0.15 + 0.85 * share), 0.6 + 1.4 * share, 1)
    tree = max(solution.trees, key=lambda each: len(each.spread) + len(each.gather))
    paths = tree.spread or tree.gather
    for path in paths:
        for link in itertools.pairwise(path):
            _arrow(axes, at, link, _TREE, 1.6, 3)
    size = float(np.clip(4000 / instance.nodes, 8, 160))
    accelerators, switches = at[: instance.accelerators], at[instance.accelerators :]
    axes.scatter(*accelerators.T, s=size, color="white", edgecolors=_EDGE, zorder=4)
    axes.scatter(*switches.T, s=size, color="#dddddd", edgecolors=_EDGE, marker="s", zorder=4)
    axes.scatter(*at[tree.root], s=size, color=_TREE, edgecolors=_EDGE, zorder=5)
    if instance.nodes <= _LABELLED:
        for node, (x, y) in enumerate(at):
            colour = "white" if node == tree.root else _EDGE
            axes.text(x, y, str(node), ha="center", va="center", fontsize=6, color=colour, zorder=6)
    _explain(axes, instance, most, tree.share, bool(len(switches)))


def _places(instance: CollectiveInstance) -> Any:
    """Accelerators around a circle, switches at the mean of their neighbours, those that coincide apart."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(instance.accelerators) / instance.accelerators
    at = np.zeros((instance.nodes, 2))
    at[: instance.accelerators] = np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(20):  # switches of switches take their places after a few rounds
        for node in range(instance.accelerators, instance.nodes):
            around = [*instance.heads.get(node, ()), *instance.tails.get(node, ())]
            if around:
                at[node] = 0.75 * at[around].mean(axis=0)
    seen: dict[tuple[float, float], int] = defaultdict(int)
    for node in range(instance.accelerators, instance.nodes):
        key = (round(float(at[node, 0]), 2), round(float(at[node, 1]), 2))
        turn = 2.4 * seen[key]
        at[node] += 0.09 * np.sqrt(seen[key]) * np.array([np.cos(turn), np.sin(turn)])
        seen[key] += 1
    return at


def _arrow(axes: Any, at: Any, link: tuple[int, int], colour: Any, width: float, order: int) -> None:
    axes.add_patch(
        FancyArrowPatch(
            tuple(at[link[0]]), tuple(at[link[1]]), connectionstyle="arc3,rad=0.12", arrowstyle="-|>",
            mutation_scale=6, linewidth=width, color=colour, shrinkA=4, shrinkB=4, zorder=order,
        )
    )  # fmt: skip


def _explain(axes: Any, instance: CollectiveInstance, seconds: float, share: str, switches: bool) -> None:
    handles = [
        Line2D([], [], color=_TREE, label=f"one tree: {share} of the bytes"),
        Line2D([], [], linestyle="none", marker="o", color="white", markeredgecolor=_EDGE, label="accelerator"),
    ]
    if switches:
        mark = Line2D([], [], linestyle="none", marker="s", color="#dddddd", markeredgecolor=_EDGE, label="switch")
        handles.append(mark)
    axes.legend(handles=handles, fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    axes.figure.colorbar(
        ScalarMappable(Normalize(0, 100), "Blues"), ax=axes, label="link is busy, % of the time", shrink=0.7
    )
    rate = instance.collective_bytes / seconds / 1e9
    axes.set_title(f"{instance.collective}: {seconds:.4g} s, {rate:.4g} GB/s", fontsize=9)
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.axis("off")
