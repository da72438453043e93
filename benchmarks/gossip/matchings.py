"""MATCHA's budgets on several graphs: is half of the communication free, and what do better weights bring?

    python benchmarks/gossip_matchings.py --released util.py

``util.py`` is the file of that name in JYWa/MATCHA, from which graphs 1 to 4 are read (not run); graphs 0 and 5 (a
ring) and some with a name are always there. A budget is given as a share of what all matchings take. Tables: ρ by
budget for graph 0; ρ at half the budget, and the least share of the budget with which MATCHA loses nothing against all
edges in every round (one weight for all); the expected time of consensus, (Y + Σp) / (−ln ρ), with Y the time of
computing in a round, at the best of ten budgets.
"""

import argparse
import ast
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx

from ddlopt.instances.generators.gossip_graphs import ABILENE
from ddlopt.instances.generators.gossip_matchings import MATCHA_8
from ddlopt.models.gossip import MatchingsInstance, Network
from ddlopt.solvers.contracts import Limits, Method
from ddlopt.solvers.gossip.decompositions import fewest_matchings
from ddlopt.solvers.gossip.matchings_exact import Matcha
from ddlopt.solvers.gossip.matchings_rules import Vanilla
from ddlopt.solvers.gossip.matchings_search import MatchingsSearch

Matchings = Sequence[Sequence[tuple[int, int]]]
SHARES = tuple(percent / 100 for percent in range(10, 101, 10))


def released(path: Path) -> Iterator[tuple[str, Matchings]]:
    """Graphs of the released code, by their matchings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "Graphs":
            for number, matchings in enumerate(ast.literal_eval(node.value)):
                yield f"graph {number}", matchings


def named() -> Iterator[tuple[str, Matchings]]:
    """Graphs with a name, in as few matchings as possible."""
    graphs = {
        "Abilene": nx.Graph(ABILENE),
        "Petersen": nx.petersen_graph(),
        "torus 4 × 4": nx.grid_2d_graph(4, 4, periodic=True),
        "hypercube 16": nx.hypercube_graph(4),
    }
    for name, graph in graphs.items():
        graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
        network = Network(nodes=len(graph), edges=tuple(graph.edges()))
        yield name, [[network.edges[edge] for edge in own] for own in fewest_matchings(network).matchings]


def instance(name: str, matchings: Matchings, share: float, free: bool = False) -> MatchingsInstance:
    """The graph that the matchings make, with a share of the budget that they take."""
    edges = [tuple(edge) for own in matchings for edge in own]
    starts = [sum(len(own) for own in matchings[:number]) for number in range(len(matchings))]
    groups = [tuple(range(start, start + len(own))) for start, own in zip(starts, matchings, strict=True)]
    network = Network(nodes=1 + max(max(edge) for edge in edges), edges=tuple((int(i), int(j)) for i, j in edges))
    budget = share * len(matchings)
    return MatchingsInstance(name=name, network=network, budget=budget, matchings=() if free else tuple(groups))


def factor(method: Method, asked: MatchingsInstance, time_s: float = 20.0) -> tuple[float, float, float]:
    """ρ, expected time of a round, and the bound."""
    found = method.solve(asked, Limits(time_s=time_s, gap=1e-6))
    assert found.objective is not None
    return found.objective, float(found.details["time"]), found.bound or 0.0


def least_share(name: str, matchings: Matchings, wanted: float) -> float:
    """The least share of the budget, to a thousandth, with which MATCHA's ρ is at most that wanted.

    ρ is not monotone in the budget, so shares are tried from below.
    """
    coarse = next(k for k in range(1, 101) if factor(Matcha(), instance(name, matchings, k / 100))[0] <= wanted + 1e-7)
    return next(
        k / 1000
        for k in range(10 * coarse - 9, 10 * coarse + 1)
        if factor(Matcha(), instance(name, matchings, k / 1000))[0] <= wanted + 1e-7
    )


def by_budget(name: str, matchings: Matchings) -> None:
    """ρ of one graph by budget."""
    everything = factor(Vanilla(), instance(name, matchings, 1.0))[0]
    print(
        f"{name}: ρ by budget\n{'budget':>6} {'periodic':>8} {'matcha':>8} {'edges':>8} {'search':>8} {'free':>8} bound"
    )
    for share in SHARES:
        asked = instance(name, matchings, share)
        one, edges, search = (factor(each, asked) for each in (Matcha(), Matcha(per_edge=True), MatchingsSearch()))
        free = factor(MatchingsSearch(), instance(name, matchings, share, free=True))
        periodic = 1.0 - share * (1.0 - everything)
        values = (periodic, one[0], edges[0], search[0], min(free[0], search[0]))
        print(f"{share:>6.1f} " + " ".join(f"{value:8.4f}" for value in values) + f" {search[2]:.4f}", flush=True)


def by_graph(graphs: Sequence[tuple[str, Matchings]]) -> None:
    """ρ at half the budget, and the share that is enough."""
    print(f"\n{'graph':<14} matchings  vanilla  matcha ½   edges ½  search ½  edges 1     bound  enough")
    for name, matchings in graphs:
        half, whole = (instance(name, matchings, share) for share in (0.5, 1.0))
        everything = factor(Vanilla(), whole)[0]
        best = factor(Matcha(per_edge=True), whole)
        halves = [factor(each, half)[0] for each in (Matcha(), Matcha(per_edge=True), MatchingsSearch())]
        values = (everything, *halves, best[0], best[2])
        enough = least_share(name, matchings, everything)
        shown = " ".join(f"{value:9.4f}" for value in values)
        print(f"{name:<14} {len(matchings):>9}{shown}  {enough:.3f}", flush=True)


def by_time(graphs: Sequence[tuple[str, Matchings]], computing: Sequence[float]) -> None:
    """The best budget for the time of consensus."""
    print(f"\n{'graph':<14} {'Y':>5} {'vanilla':>8} {'matcha':>15} {'edges':>15} {'search':>15}")
    for name, matchings in graphs:
        everything = factor(Vanilla(), instance(name, matchings, 1.0))
        found: dict[str, list[tuple[float, float, float]]] = {}
        for method in (Matcha(), Matcha(per_edge=True), MatchingsSearch()):
            found[method.name] = [(*factor(method, instance(name, matchings, share))[:2], share) for share in SHARES]
        for own in computing:
            cells = []
            for values in found.values():
                best = min(((own + spent) / -math.log(rho), share) for rho, spent, share in values)
                cells.append(f"{best[0]:9.2f} (.{round(10 * best[1])})".replace("(.10)", "(1.)"))
            vanilla = (own + everything[1]) / -math.log(everything[0])
            print(f"{name:<14} {own:>5g} {vanilla:8.2f} " + " ".join(f"{cell:>15}" for cell in cells), flush=True)


def main() -> None:
    """Command line: the file with the released graphs, and which tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--released", type=Path, help="util.py of JYWa/MATCHA")
    parser.add_argument("--tables", nargs="+", default=["budget", "graph", "time"], choices=["budget", "graph", "time"])
    options = parser.parse_args()
    ring = [[(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 7), (1, 2), (3, 4), (5, 6)]]
    graphs: list[tuple[str, Matchings]] = [("graph 0", MATCHA_8)]
    graphs += [] if options.released is None else list(released(options.released))[1:5]
    graphs += [("ring 8", ring), *named()]
    if "budget" in options.tables:
        by_budget(*graphs[0])
    if "graph" in options.tables:
        by_graph(graphs)
    if "time" in options.tables:
        by_time([each for each in graphs if each[0] in ("graph 0", "graph 4", "ring 8")], (0.1, 1.0, 10.0))


if __name__ == "__main__":
    main()
