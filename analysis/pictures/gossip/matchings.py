"""Pictures of matchings: the graph, with a colour for each matching and lines as wide as they are active."""

from typing import Any

from matplotlib import colormaps
from matplotlib.collections import LineCollection

from ddlopt.analysis.pictures.gossip.weights import places
from ddlopt.models.gossip import MatchingPlan, MatchingsInstance, evaluate

# Dark grey; points of width as for weights; numbers as long as they fit into their circles.
_NODE, _WIDEST, _LABELLED = "#333333", 5.0, 24


def draw(axes: Any, instance: MatchingsInstance, solution: MatchingPlan) -> None:
    """Edges by matching; those of matchings that are hardly ever active are dotted."""
    network = instance.network
    at, colours = places(network), colormaps["tab20"]
    order = sorted(range(len(solution.matchings)), key=lambda j: -solution.probabilities[j])
    for rank, number in enumerate(order):
        chance, own = solution.probabilities[number], list(solution.matchings[number])
        never = chance < 1e-3
        lines = LineCollection(
            list(at[network.ends[own]]),
            linewidths=0.8 if never else max(0.8, _WIDEST * chance),
            linestyles="dotted" if never else "solid",
            colors=[colours((2 * rank) % 20 + (2 * rank) // 20 % 2)],
            label=f"{chance:.2f}",
        )
        axes.add_collection(lines)
    axes.scatter(*at.T, s=60 if network.nodes <= _LABELLED else 14, color=_NODE, zorder=3)
    for node, (x, y) in enumerate(at if network.nodes <= _LABELLED else ()):
        name = network.names[node] if network.names else str(node)
        axes.annotate(name, (x, y), color="white", ha="center", va="center", fontsize=6, zorder=4)
    found = evaluate(instance, solution)
    if found.objective is not None:
        axes.set_title(f"ρ = {float(found.objective):.5g}, time {float(found.details['time']):.4g} a round", fontsize=9)
    axes.legend(title="probability", fontsize=7, title_fontsize=7, frameon=False, loc="center left",
                bbox_to_anchor=(1.0, 0.5))  # fmt: skip
    axes.set_aspect("equal")
    axes.margins(0.1)
    axes.axis("off")
