"""Picture of aggregation trees in a network: links by how long they are busy, switches that aggregate, servers."""

from collections import Counter, deque
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize

from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance

_IDLE, _NODE, _MARK = "#d8d8d8", "#ffffff", "#d95f02"
_COLOURS = "viridis_r"
_NAMED = 60
"""Nodes up to which all are named."""


def draw(axes: Any, instance: GraphInstance, solution: AggregationTrees) -> None:
    """Draw the network, each link coloured by the seconds for which its busier direction is busy.

    Hosts are below, switches above by their distance from hosts; where all switches have hosts, springs place them.
    Discs are switches, dots hosts, triangles servers; a filled disc aggregates for as many jobs as stands in it.
    """
    places = positions(instance)
    busy = busy_s(instance, solution)
    jobs = Counter(
        node
        for job, tree in zip(instance.jobs, solution.trees, strict=True)
        for node in {route[-1] for route in tree} - {job.server}
    )
    scale = Normalize(0, max(busy) or 1.0)
    colours = [_IDLE if time == 0 else colormaps[_COLOURS](scale(time)) for time in busy]
    lines = [[places[one], places[other]] for one, other in (link.ends for link in instance.links)]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=[1.0 if not t else 2.0 for t in busy]))
    servers = {job.server for job in instance.jobs}
    hosts = [v for v, node in enumerate(instance.nodes) if not node.forwards and v not in servers]
    plain = [v for v, node in enumerate(instance.nodes) if node.forwards and v not in jobs and v not in servers]
    # Nodes above lines, and names above both.
    for nodes, style in (
        (hosts, {"marker": "o", "s": 14, "color": "#555555", "label": "host"}),
        (plain, {"marker": "o", "s": 60, "facecolor": _NODE, "edgecolor": "#555555", "label": "switch"}),
        (list(jobs), {"marker": "o", "s": 130, "color": _MARK, "label": "aggregates, for a number of jobs"}),
        (sorted(servers), {"marker": "^", "s": 45, "color": "#111111", "label": "server of a job"}),
    ):
        if nodes:
            axes.scatter(*np.array([places[v] for v in nodes]).T, zorder=3, **style)
    for node, number in jobs.items():
        axes.annotate(str(number), places[node], ha="center", va="center", fontsize=7, color="white", zorder=4)
    if len(instance.nodes) <= _NAMED:
        _name(axes, instance, places)
    axes.figure.colorbar(ScalarMappable(scale, _COLOURS), ax=axes, shrink=0.7, label="link is busy [s]")
    axes.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)
    axes.margins(0.05)
    axes.set_axis_off()


def busy_s(instance: GraphInstance, solution: AggregationTrees) -> list[float]:
    """Seconds for which the busier direction of each link is busy."""
    load = [0.0] * len(instance.arcs)
    for job, tree in zip(instance.jobs, solution.trees, strict=True):
        for route in tree:
            for arc in pairwise(route):
                load[instance.arc_of[arc]] += job.gradient_bytes
    return [max(load[2 * k : 2 * k + 2]) / link.bandwidth_bytes_per_s for k, link in enumerate(instance.links)]


def positions(instance: GraphInstance) -> dict[int, tuple[float, float]]:
    """Where each node is drawn: in layers, or by springs where layers say nothing."""
    near: list[list[int]] = [[] for _ in instance.nodes]
    for one, other in instance.arcs:
        near[one].append(other)
    level = {v: 0 for v, node in enumerate(instance.nodes) if not node.forwards}
    waiting = deque(level)
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in level:
                level[other] = level[node] + 1
                waiting.append(other)
    if len(set(level.values())) > 2 and len(level) == len(instance.nodes):
        return _layers(level)
    graph = nx.Graph([link.ends for link in instance.links])
    found = nx.kamada_kawai_layout(graph) if len(graph) <= 200 else nx.spring_layout(graph, seed=0)
    return {node: (float(x), float(y)) for node, (x, y) in found.items()}


def _layers(level: dict[int, int]) -> dict[int, tuple[float, float]]:
    """Each layer spread over the whole width, in the order of its nodes."""
    rows: dict[int, list[int]] = {}
    for node in sorted(level):
        rows.setdefault(level[node], []).append(node)
    return {
        node: ((place + 0.5) / len(row), float(height))
        for height, row in rows.items()
        for place, node in enumerate(row)
    }


def _name(axes: Any, instance: GraphInstance, places: dict[int, tuple[float, float]]) -> None:
    """Names of all nodes; in layers those of hosts stand upright below them."""
    lowest = min(y for _, y in places.values())
    layered = len({round(y, 6) for _, y in places.values()}) <= 6
    for node, (x, y) in places.items():
        below = layered and y == lowest
        axes.annotate(
            instance.nodes[node].name,
            (x, y),
            xytext=(0, -6) if below else (0, 9),
            textcoords="offset points",
            rotation=90 if below else 0,
            ha="center",
            va="top" if below else "bottom",
            fontsize=5.5,
            color="#333333",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )
