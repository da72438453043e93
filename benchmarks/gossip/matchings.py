"""MATCHA's budgets on several graphs: is half of the communication free, and what do better weights bring?

Graphs 1 to 4 are read (not run) from ``--released util.py``, the file of that name in JYWa/MATCHA; graphs 0 and 5 (a
ring) and some with a name are always there. A budget is given as a share of what all matchings take.
"""

import ast
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx

from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.gossip.graphs import ABILENE
from ddlopt.instances.generators.gossip.matchings import MATCHA_8
from ddlopt.models.gossip import MatchingsInstance, Network
from ddlopt.solvers.contracts import Limits, Method
from ddlopt.solvers.gossip.matchings.decompositions import fewest_matchings
from ddlopt.solvers.gossip.matchings.exact import Matcha
from ddlopt.solvers.gossip.matchings.rules import Vanilla
from ddlopt.solvers.gossip.matchings.search import MatchingsSearch

Matchings = Sequence[Sequence[tuple[int, int]]]
RING = [[(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 7), (1, 2), (3, 4), (5, 6)]]
METHODS = {"matcha": Matcha(), "edges": Matcha(per_edge=True), "search": MatchingsSearch()}
TIMED = ("graph 0", "graph 4", "ring 8")


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


def graphs(asked) -> list[tuple[str, Matchings]]:
    more = [] if asked.released is None else list(released(asked.released))[1:5]
    return [("graph 0", MATCHA_8), *more, ("ring 8", RING), *named()][: asked.graphs]


def instance(name: str, matchings: Matchings, share: float, free: bool = False) -> MatchingsInstance:
    """The graph that the matchings make, with a share of the budget that they take."""
    edges = [tuple(edge) for own in matchings for edge in own]
    starts = [sum(len(own) for own in matchings[:number]) for number in range(len(matchings))]
    groups = [tuple(range(start, start + len(own))) for start, own in zip(starts, matchings, strict=True)]
    network = Network(nodes=1 + max(max(edge) for edge in edges), edges=tuple((int(i), int(j)) for i, j in edges))
    budget = share * len(matchings)
    return MatchingsInstance(name=name, network=network, budget=budget, matchings=() if free else tuple(groups))


def factor(method: Method, asked: MatchingsInstance) -> tuple[float, float, float]:
    """ρ, expected time of a round, and the bound."""
    found = method.solve(asked, Limits(time_s=20.0, gap=1e-6))
    return found.objective, float(found.details["time"]), found.bound or 0.0


def least_share(name: str, matchings: Matchings, wanted: float) -> float:
    """The least share of the budget, to a thousandth, with which MATCHA's ρ is at most that wanted.

    ρ is not monotone in the budget, so shares are tried from below.
    """

    def first(shares: range, parts: int) -> int:
        return next(k for k in shares if factor(Matcha(), instance(name, matchings, k / parts))[0] <= wanted + 1e-7)

    coarse = first(range(1, 101), 100)
    return first(range(10 * coarse - 9, 10 * coarse + 1), 1000) / 1000


def budget(asked):
    """ρ of graph 0 by budget; periodic: all edges at times."""
    everything = factor(Vanilla(), instance("graph 0", MATCHA_8, 1.0))[0]
    for share in asked.shares:
        found = {label: factor(method, instance("graph 0", MATCHA_8, share)) for label, method in METHODS.items()}
        values = {"periodic": 1.0 - share * (1.0 - everything), **{label: own[0] for label, own in found.items()}}
        free = factor(MatchingsSearch(), instance("graph 0", MATCHA_8, share, free=True))[0]
        values |= {"free": min(free, values["search"]), "bound": found["search"][2]}
        yield {"budget": f"{share:.1f}", **{label: f"{value:.4f}" for label, value in values.items()}}


def graph(asked):
    """ρ at half the budget, and the share with which MATCHA loses nothing against all edges in every round."""
    for name, matchings in graphs(asked):
        half, whole = (instance(name, matchings, share) for share in (0.5, 1.0))
        everything = factor(Vanilla(), whole)[0]
        best = factor(Matcha(per_edge=True), whole)
        values = {"vanilla": everything, **{f"{label} ½": factor(each, half)[0] for label, each in METHODS.items()}}
        values |= {"edges 1": best[0], "bound": best[2]}
        row = {"graph": name, "matchings": len(matchings)} | {label: f"{v:.4f}" for label, v in values.items()}
        yield row | {"enough": f"{least_share(name, matchings, everything):.3f}"}


def time(asked):
    """Expected time of consensus, (Y + Σp) / (−ln ρ), Y the time of computing in a round, at the best budget."""
    for name, matchings in [each for each in graphs(asked) if each[0] in TIMED]:
        everything = factor(Vanilla(), instance(name, matchings, 1.0))
        found = {label: [(*factor(method, instance(name, matchings, share))[:2], share) for share in asked.shares]
                 for label, method in METHODS.items()}  # fmt: skip
        for computing in (0.1, 1.0, 10.0):
            row = {"graph": name, "Y": computing}
            row["vanilla"] = f"{(computing + everything[1]) / -math.log(everything[0]):.2f}"
            for label, values in found.items():
                best, share = min(((computing + spent) / -math.log(rho), share) for rho, spent, share in values)
                row[label] = f"{best:.2f} ({share:.1f})"
            yield row


BENCH = Benchmark(
    budget, graph, time,
    released=Option(None, "util.py of JYWa/MATCHA", type=Path),
    shares=Option([percent / 100 for percent in range(10, 101, 10)], "budgets", quick=[0.5, 1.0]),
    graphs=Option(100, "how many graphs", quick=1),
)  # fmt: skip
