"""Pictures of weights: the graph, with edges as wide as their weights."""

from typing import Any

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from ddlopt.models.gossip import Network, WeightsInstance, evaluate
from ddlopt.models.tolerances import TINY

_POSITIVE, _NEGATIVE, _NODE = "#1f6fb4", "#d95f02", "#333333"
# Points, narrower than a node.
_WIDEST = 5.0
# Nodes up to which numbers beside links do not overlap.
_LABELLED = 14


def places(network: Network) -> Any:
    """(n, 2) places of the nodes: a circle, or for larger graphs one where neighbours are near."""
    if network.nodes <= _LABELLED:
        found = nx.circular_layout(network.graph)
    else:
        found = nx.kamada_kawai_layout(network.graph) if network.nodes <= 200 else nx.spectral_layout(network.graph)
    return np.array([found[node] for node in range(network.nodes)])


def draw(axes: Any, instance: WeightsInstance, solution: Any) -> None:
    """Edges by sign and size of their weights, those of both directions together for pairwise gossip."""
    network = instance.network
    if solution.matrix is not None:
        weights = solution.matrix[tuple(network.ends.T)]
    else:
        weights = np.array(solution.weights)
        if instance.goal == "pairwise":
            weights = weights[0::2] + weights[1::2]
    at = places(network)
    widths = _WIDEST * np.abs(weights) / max(np.abs(weights).max(), TINY)
    colours = [_POSITIVE if weight >= 0 else _NEGATIVE for weight in weights]
    axes.add_collection(LineCollection(list(at[network.ends]), linewidths=np.maximum(widths, 0.2), colors=colours))
    axes.scatter(*at.T, s=60 if network.nodes <= _LABELLED else 14, color=_NODE, zorder=3)
    if network.nodes <= _LABELLED:
        _label(axes, network, at, weights)
    objective = evaluate(instance, solution).objective
    if objective is not None:
        axes.set_title(
            f"{'λ₂' if instance.goal in ('process', 'pairwise') else 'ρ'} = {float(objective):.5g}", fontsize=9
        )
    handles = [Line2D([], [], color=_POSITIVE, label="weight above 0")]
    if (weights < 0).any():
        handles.append(Line2D([], [], color=_NEGATIVE, label="below 0"))
    axes.legend(handles=handles, fontsize=7, frameon=False, loc="lower center", ncols=2, bbox_to_anchor=(0.5, -0.08))
    axes.set_aspect("equal")
    axes.margins(0.1)
    axes.axis("off")


def _label(axes: Any, network: Network, at: Any, weights: Any) -> None:
    for node, (x, y) in enumerate(at):
        name = network.names[node] if network.names else str(node)
        axes.text(1.12 * x, 1.12 * y, name, ha="center", va="center", fontsize=8)
    for (i, j), weight in zip(network.edges, weights, strict=True):
        x, y = 0.65 * at[i] + 0.35 * at[j]
        axes.text(x, y, f"{weight:.2g}", fontsize=6, ha="center", va="center",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8})  # fmt: skip
