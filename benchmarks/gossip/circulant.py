"""Spectral gap against degree: the best circulant graphs, and graphs that people take.

Run: ``python benchmarks/gossip_circulant.py [n ...]``; n is 16, 32 and 64 unless given. For each degree one row: the
largest gap λ₂ of a circulant graph with its generators, seconds of the enumeration, what no circulant graph is better
than without a search, powers, the best of 20 random regular graphs, and hypercube or torus of that degree; then the
factor ρ of averaging: the best circulant graph with one weight a generator (up to degree 6, or of the graph with the
largest gap beyond, which is marked), and the same others with the weights of FDLA.
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np

from ddlopt.models.gossip import CirculantInstance, Network, WeightsInstance
from ddlopt.models.gossip.bounds_circulant import circulant_bound
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.circulant_weights import best_weights

_DRAWS = 20
_WEIGHED = 6
_FACTORS_UP_TO = 8


def gap(graph):
    """The second smallest eigenvalue of the Laplacian."""
    return float(np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))[1])


def factor(graph):
    """The factor of a round with the weights of FDLA."""
    graph = nx.convert_node_labels_to_integers(graph)
    network = Network(nodes=len(graph), edges=tuple(graph.edges()))
    found = method("fdla", "gossip").solve(WeightsInstance(name="graph", network=network), Limits(gap=1e-6))
    return found.objective


def named(n, degree):
    """Hypercube or torus of that size and degree."""
    dimension = n.bit_length() - 1
    if 2**dimension == n and dimension == degree:
        yield "hypercube", nx.hypercube_graph(dimension)
    side = int(n**0.5)
    if degree == 4:
        sides = (side, side) if side * side == n else (n // 8, 8)
        yield f"torus {sides[0]}×{sides[1]}", nx.grid_2d_graph(*sides, periodic=True)


def circulant(n, degree):
    """The cells of the best circulant graphs: gap, seconds, bound, powers; factor."""
    asked = CirculantInstance(name="c", nodes=n, degree=degree)
    begun = time.perf_counter()
    found = method("circulant-enumeration", "gossip").solve(asked, Limits(time_s=60))
    took = time.perf_counter() - begun
    powers = method("powers", "gossip").solve(asked, Limits()).objective
    proven = "" if found.status == "optimal" else " (not proven)"
    cells = [f"{found.objective:.4f}{proven}", " ".join(map(str, found.solution.generators)), f"{took:.2f}"]
    cells += [f"{circulant_bound(asked):.4f}", f"{powers:.4f}"]
    if degree <= _WEIGHED:
        averaging = CirculantInstance(name="c", nodes=n, degree=degree, goal="averaging")
        weighted = method("circulant-enumeration", "gossip").solve(averaging, Limits(time_s=60)).objective
        return cells, f"{weighted:.4f}"
    characters = asked.characters[:, [g - 1 for g in found.solution.generators]]
    weights, _ = best_weights(characters)
    return cells, f"{np.abs(1 - characters @ weights).max():.4f}*"


def main():
    """Print the table."""
    method("powers", "gossip").solve(CirculantInstance(name="c", nodes=8, degree=6), Limits())
    method("circulant-enumeration", "gossip").solve(CirculantInstance(name="c", nodes=16, degree=6), Limits())
    print("| n | d | circulant λ₂ | generators | s | bound | powers | random regular | named | "
          "ρ circulant | ρ random regular | ρ named |")  # fmt: skip
    print("|" + "---|" * 12)
    for n in map(int, sys.argv[1:] or ("16", "32", "64")):
        for degree in [*range(2, 9), 10, 12, 16]:
            if degree >= n - 1:
                continue
            cells, weighted = circulant(n, degree)
            drawn = [nx.random_regular_graph(degree, n, seed=seed) for seed in range(_DRAWS)]
            drawn = [graph for graph in drawn if nx.is_connected(graph)]
            best = max(drawn, key=gap, default=None)
            others = list(named(n, degree))
            row = [str(n), str(degree), *cells, "" if best is None else f"{gap(best):.4f}"]
            row.append(", ".join(f"{name} {gap(graph):.4f}" for name, graph in others))
            row.append(weighted)
            weigh = degree <= _FACTORS_UP_TO
            row.append(f"{factor(best):.4f}" if weigh and best is not None else "")
            row.append(", ".join(f"{factor(graph):.4f}" for _, graph in others) if weigh else "")
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
