"""Spectral gap against degree: the best circulant graphs, and graphs that people take.

For each degree one row: the largest gap λ₂ of a circulant graph with its generators, seconds of the enumeration, what
no circulant graph is better than without a search, powers, the best of 20 random regular graphs, and hypercube or torus
of that degree; then the factor ρ of averaging: the best circulant graph with one weight a generator (up to degree 6, or
of the graph with the largest gap beyond, which is marked), and the same others with the weights of FDLA.
"""

import networkx as nx
import numpy as np

from benchmarks.harness import Benchmark, Option, clocked, solved
from ddlopt.models.gossip import CirculantInstance, Network, WeightsInstance
from ddlopt.models.gossip.circulant.bounds import circulant_bound
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.circulant.weights import best_weights

DEGREES = (*range(2, 9), 10, 12, 16)
WEIGHED_UP_TO = 6
"""Degree of circulant graphs whose generators are chosen for ρ."""
FACTORS_UP_TO = 8
"""Degree of other graphs whose weights are found."""


def gap(graph):
    """The second smallest eigenvalue of the Laplacian."""
    return float(np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))[1])


def factor(graph):
    """The factor of a round with the weights of FDLA."""
    graph = nx.convert_node_labels_to_integers(graph)
    network = Network(nodes=len(graph), edges=tuple(graph.edges()))
    return solved("fastest-weights", WeightsInstance(name="graph", network=network), Limits(gap=1e-6)).objective


def named(n, degree):
    """Hypercube or torus of that size and degree."""
    dimension = n.bit_length() - 1
    if 2**dimension == n and dimension == degree:
        yield "hypercube", nx.hypercube_graph(dimension)
    side = int(n**0.5)
    if degree == 4:
        sides = (side, side) if side * side == n else (n // 8, 8)
        yield f"torus {sides[0]}×{sides[1]}", nx.grid_2d_graph(*sides, periodic=True)


def circulant(n, degree, limits):
    """Cells of the best circulant graphs; and their factor."""
    asked = CirculantInstance(name="c", nodes=n, degree=degree)
    found, spent = clocked("circulant-enumeration", asked, limits)
    proven = "" if found.status == "optimal" else " (not proven)"
    cells = {
        "circulant λ₂": f"{found.objective:.4f}{proven}", "generators": " ".join(map(str, found.solution.generators)),
        "s": f"{spent.wall_s:.2f}", "bound": f"{circulant_bound(asked):.4f}",
        "powers": f"{solved('powers', asked, Limits()).objective:.4f}",
    }  # fmt: skip
    if degree <= WEIGHED_UP_TO:
        averaging = CirculantInstance(name="c", nodes=n, degree=degree, goal="averaging")
        return cells, f"{solved('circulant-enumeration', averaging, limits).objective:.4f}"
    characters = asked.characters[:, [g - 1 for g in found.solution.generators]]
    weights, _ = best_weights(characters)
    return cells, f"{np.abs(1 - characters @ weights).max():.4f}*"


def gaps(asked):
    """A row for each degree."""
    for n in asked.sizes:
        for degree in [each for each in asked.degrees if each < n - 1]:
            cells, weighted = circulant(n, degree, asked.limits)
            drawn = [nx.random_regular_graph(degree, n, seed=seed) for seed in range(asked.seeds)]
            best = max(filter(nx.is_connected, drawn), key=gap, default=None)
            others = list(named(n, degree))
            weigh = degree <= FACTORS_UP_TO
            yield {
                "n": n, "d": degree, **cells, "random regular": "" if best is None else f"{gap(best):.4f}",
                "named": ", ".join(f"{name} {gap(graph):.4f}" for name, graph in others), "ρ circulant": weighted,
                "ρ random regular": f"{factor(best):.4f}" if weigh and best is not None else "",
                "ρ named": ", ".join(f"{factor(graph):.4f}" for _, graph in others) if weigh else "",
            }  # fmt: skip


BENCH = Benchmark(
    gaps,
    sizes=Option([16, 32, 64], "nodes", quick=[16]),
    degrees=Option(list(DEGREES), "of a node", quick=[2, 3, 4]),
    seeds=Option(20, "random regular graphs", quick=3),
    time_limit=Option(60.0, "seconds for each enumeration"),
)
