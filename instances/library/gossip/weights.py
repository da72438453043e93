"""Bundled instances of the problem ``weights``: published graphs, graphs with closed forms, drawn ones."""

from collections.abc import Iterator

from ddlopt.instances.generators.gossip import generate
from ddlopt.instances.generators.gossip.graphs import ABILENE, CVX_EXAMPLE, NSFNET, ZOO
from ddlopt.models.gossip import GossipProblem, Network, WeightsInstance
from ddlopt.models.gossip.weights.instance import Goal

_BOYD = "Figure 1 of S. Boyd, P. Diaconis, L. Xiao, SIAM Review 46 (2004)"
# Graphs of the paper's examples, as lists of edges.
_PENDANT = ((0, 1), (1, 2), (1, 3), (2, 3))
# As above.
_K23 = ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4))
# As above.
_WHEEL = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (1, 4))
_CVX = "graph of the examples 'graph_laplacian' of CVX (M. Grant, S. Boyd)"


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the problem ``weights``."""
    yield from _of("cvx-n8", 8, CVX_EXAMPLE, _CVX, ("averaging", "chain", "process", "pairwise"))
    yield from _of("pendant-n4", 4, _PENDANT, _BOYD, ("averaging", "chain"))
    yield from _of("k23-n5", 5, _K23, _BOYD, ("chain",))
    yield from _of("wheel-n5", 5, _WHEEL, _BOYD, ("chain",))
    yield from _of("abilene-n11", 11, ABILENE, ZOO, ("averaging", "chain", "process", "pairwise"))
    yield from _of("nsfnet-n13", 13, NSFNET, ZOO, ("averaging", "chain", "process", "pairwise"))
    yield generate("weights", shape="path", nodes=8, goal="process", budget=1.0, name="path-n8-process")
    yield generate("weights", shape="hypercube", nodes=32, name="hypercube-n32-averaging")
    yield generate("weights", shape="torus", nodes=64, goal="chain", name="torus-n64-chain")
    for nodes, degree in ((50, 8), (100, 8)):
        for goal in ("averaging", "chain"):
            yield generate("weights", 1, nodes=nodes, degree=degree, goal=goal, name=f"random-n{nodes}-{goal}")
    yield generate("weights", 2, shape="geometric", nodes=60, degree=10, goal="pairwise", name="geometric-n60-pairwise")


def _of(
    name: str, nodes: int, edges: tuple[tuple[int, int], ...], source: str, goals: tuple[Goal, ...]
) -> Iterator[GossipProblem]:
    network = Network(nodes=nodes, edges=edges)
    for goal in goals:
        budget = float(nodes) if goal == "process" else None
        yield WeightsInstance(name=f"{name}-{goal}", source=source, network=network, goal=goal, budget=budget)
