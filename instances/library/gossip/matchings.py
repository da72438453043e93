"""Bundled instances of the problem ``matchings``: MATCHA's graph of 8 nodes, graphs with a name, drawn ones."""

from collections.abc import Iterator

import networkx as nx

from ddlopt.instances.generators.gossip import generate
from ddlopt.instances.generators.gossip.graphs import ABILENE, ZOO
from ddlopt.instances.generators.gossip.matchings import MATCHA_8
from ddlopt.models.gossip import GossipProblem, MatchingsInstance, Network
from ddlopt.models.gossip.matchings.instance import Activation

_MATCHA = "Figure 1(a) of J. Wang et al., 'MATCHA', Indian Control Conference 2019"


def matcha_8(name: str, share: float, activation: Activation = "independent", free: bool = False) -> MatchingsInstance:
    """MATCHA's graph of 8 nodes with a share of the budget that all 5 matchings take."""
    edges = tuple(edge for matching in MATCHA_8 for edge in matching)
    place = {edge: number for number, edge in enumerate(edges)}
    return MatchingsInstance(
        name=name,
        source=_MATCHA,
        network=Network(nodes=8, edges=edges),
        budget=share * len(MATCHA_8),
        activation=activation,
        matchings=() if free else tuple(tuple(place[edge] for edge in matching) for matching in MATCHA_8),
    )


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the problem ``matchings``."""
    for percent in (20, 50, 60, 100):
        yield matcha_8(f"matcha-n8-{percent}", percent / 100)
    yield matcha_8("matcha-n8-50-free", 0.5, free=True)
    yield matcha_8("matcha-n8-single", 0.2, "single")
    abilene = Network(nodes=11, edges=ABILENE)
    yield MatchingsInstance(name="abilene-n11-half", source=ZOO, network=abilene, budget=1.5)
    yield MatchingsInstance(name="abilene-n11-single", source=ZOO, network=abilene, budget=1.0, activation="single")
    petersen = Network(nodes=10, edges=tuple(sorted(nx.petersen_graph().edges())))
    yield MatchingsInstance(
        name="petersen-n10-half",
        source="Petersen's graph, whose edges need four matchings; half of them on average",
        network=petersen,
        budget=2.0,
    )
    yield generate("matchings", shape="cycle", nodes=8, name="ring-n8-half")
    yield generate("matchings", shape="torus", nodes=16, name="torus-n16-half")
    yield generate("matchings", 1, nodes=16, degree=5, name="random-n16-half")
    yield generate("matchings", 2, nodes=16, degree=5, slowest=4.0, name="random-n16-times")
