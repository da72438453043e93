"""The best weights on graphs: our interior-point method beside generic and published ones, and how it grows.

Gaps are from the certificate that each has itself. Times are processor seconds of one thread, kernels compiled before;
values are recomputed by ``evaluate``.
"""

from importlib.util import find_spec

import networkx as nx
import numpy as np

from benchmarks.harness import Benchmark, Option, clocked, shown, timed
from ddlopt.analysis.gossip_convex.weights import Semidefinite
from ddlopt.instances.generators import generate
from ddlopt.models.gossip import GossipWeights, WeightsInstance, evaluate
from ddlopt.solvers.contracts import Limits

SIZES = ((50, 200), (100, 400), (200, 1000), (400, 2000), (1000, 5000))
"""Nodes, edges."""
GOALS = ("averaging", "chain", "process", "pairwise")


def graph(nodes: int, edges: int, goal: str) -> WeightsInstance:
    return generate("gossip", "weights", seed=1, nodes=nodes, degree=2 * edges // nodes, goal=goal)


def cells(label: str, value: float | None, gap: float | None, seconds: float) -> dict[str, str | None]:
    return {label: shown(value, ".9f"), f"{label}: gap": shown(gap, ".0e"), f"{label}: s": f"{seconds:.2f}"}


def published(instance: WeightsInstance, limit_s: float) -> tuple[float | None, float | None]:
    """What ``mixingmatrix`` finds, its gap relative to its value."""
    import mixingmatrix

    host = nx.Graph(list(instance.network.edges))
    found = mixingmatrix.solve(host, allow_negative=instance.goal == "averaging", time_limit=limit_s)
    matrix = np.zeros((instance.size, instance.size))
    for (i, j), weight in found.to_dict().items():
        matrix[i, j] = matrix[j, i] = weight
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    value = evaluate(instance, GossipWeights(instance=instance.name, matrix=matrix)).objective
    return (None, None) if value is None else (float(value), float(found.certified_gap) / float(value))


def solvers(asked):
    """Ours, Clarabel through CVXPY and, where it is installed, the package ``mixingmatrix``, on the same graphs."""
    limits = Limits(asked.time_limit, gap=1e-8)
    clocked(Semidefinite(), graph(12, 24, "averaging"), limits)  # imports settle
    for nodes, edges in [size for size in SIZES if size[0] <= min(100, asked.largest)]:
        for goal in ("averaging", "chain"):
            instance = graph(nodes, edges, goal)
            row, seconds = {"nodes, edges": f"{nodes}, {edges}", "goal": goal}, []
            for label, method in {"ours": "fastest-weights", "Clarabel": Semidefinite(most_nodes=nodes)}.items():
                found, spent = clocked(method, instance, limits)
                row |= cells(label, found and found.objective, found and found.gap, spent.processor_s)
                seconds.append(spent.processor_s)
            row["times"] = f"{seconds[1] / seconds[0]:.0f}"
            if find_spec("mixingmatrix") is not None:
                found, spent = timed(published, instance, asked.time_limit)
                row |= cells("mixingmatrix", *found, spent.processor_s)
            yield row


def growth(asked):
    """Ours alone."""
    for nodes, edges in [size for size in SIZES if size[0] <= asked.largest]:
        for goal in GOALS:
            found, spent = clocked("fastest-weights", graph(nodes, edges, goal), Limits(1e4, gap=1e-8))
            yield {"nodes, edges": f"{nodes}, {edges}", "goal": goal,
                   **cells("ours", found.objective, found.gap, spent.processor_s)}  # fmt: skip


BENCH = Benchmark(
    solvers, growth,
    time_limit=Option(300.0, "seconds for each of the others", quick=20.0),
    largest=Option(1000, "most nodes", quick=50),
)  # fmt: skip
