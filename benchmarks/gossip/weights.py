"""The best weights on graphs: our interior-point method beside generic and published ones, and how it grows.

    python benchmarks/gossip_weights.py [solvers] [growth] [--time-limit 300]

``solvers`` runs ours, Clarabel through CVXPY and, where it is installed, the package ``mixingmatrix`` one after the
other on the same random graphs, one thread each; gaps are from the certificate that each has itself. ``growth`` is ours
alone. Times are processor seconds, kernels compiled before; values are recomputed by ``evaluate``.
"""

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec

import networkx as nx
import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.instances.generators import generate
from ddlopt.models.gossip import GossipWeights, WeightsInstance, evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.weights_convex import Semidefinite

SIZES = ((50, 200), (100, 400))
LARGER = (*SIZES, (200, 1000), (400, 2000), (1000, 5000))
PARTS = ("solvers", "growth")
NAMES = {"averaging": "fdla", "chain": "fmmc", "process": "fmmp", "pairwise": "fastest-pairwise"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each of the others")
    asked = parser.parse_args()
    asked.parts = asked.parts or list(PARTS)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}, only {', '.join(PARTS)}")
    for name in ("fdla", "semidefinite"):  # compiles and imports
        solved(name, graph(12, 24, "averaging"), 60)
    with threadpool_limits(1):
        if "solvers" in asked.parts:
            solvers(asked.time_limit)
        if "growth" in asked.parts:
            growth()


def graph(nodes: int, edges: int, goal: str) -> WeightsInstance:
    made = generate("gossip", "weights", seed=1, nodes=nodes, degree=2 * edges // nodes, goal=goal)
    assert isinstance(made, WeightsInstance)
    return made


def solved(name: str, instance: WeightsInstance, limit_s: float) -> tuple[float | None, float | None]:
    asked = Semidefinite(most_nodes=instance.network.nodes) if name == "semidefinite" else method(name, "gossip")
    found = asked.solve(instance, Limits(time_s=limit_s, gap=1e-8))
    return found.objective, found.gap


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


def timed(run: Callable[[], tuple[float | None, float | None]]) -> tuple[str, float]:
    started = time.process_time()
    value, gap = run()
    spent = time.process_time() - started
    shown = "–" if value is None else f"{value:.9f}"
    return f"{shown} | {'–' if gap is None else f'{gap:.0e}'} | {spent:.2f}", spent


def solvers(limit_s: float) -> None:
    there = find_spec("mixingmatrix") is not None
    print("| nodes, edges | goal | ours | gap | s | Clarabel | gap | s | times | mixingmatrix | its gap | s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for nodes, edges in SIZES:
        for goal in ("averaging", "chain"):
            instance = graph(nodes, edges, goal)
            ours, own_s = timed(lambda i=instance, g=goal: solved(NAMES[g], i, limit_s))
            generic, generic_s = timed(lambda i=instance: solved("semidefinite", i, limit_s))
            other = timed(lambda i=instance: published(i, limit_s))[0] if there else "– | – | –"
            print(f"| {nodes}, {edges} | {goal} | {ours} | {generic} | {generic_s / own_s:.0f} | {other} |", flush=True)


def growth() -> None:
    print("\n| nodes, edges | goal | value | gap | s |\n|---|---|---:|---:|---:|")
    for nodes, edges in LARGER:
        for goal in NAMES:
            instance = graph(nodes, edges, goal)
            print(f"| {nodes}, {edges} | {goal} | {timed(lambda i=instance, g=goal: solved(NAMES[g], i, 1e4))[0]} |")


if __name__ == "__main__":
    main()
