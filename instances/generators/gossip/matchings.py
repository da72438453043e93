"""Instances of the problem ``matchings``."""

from typing import cast

import numpy as np

from ddlopt.instances.generators.gossip.graphs import SHAPES, network_of
from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.gossip.matchings.instance import Activation, MatchingsInstance

MATCHA_8: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 5), (6, 7), (0, 4), (2, 3)),
    ((1, 7), (3, 6)),
    ((1, 0), (3, 7), (5, 6)),
    ((1, 2), (7, 0)),
    ((3, 1),),
)
"""Matchings of the graph in Figure 1(a) of the paper on MATCHA."""


def matchings(
    rng: np.random.Generator,
    shape: str = "random",
    nodes: int = 16,
    degree: int = 4,
    share: float = 0.5,
    activation: str = "independent",
    slowest: float = 1.0,
) -> MatchingsInstance:
    """A graph that is drawn or has a name, and a budget.

    Parameters
    ----------
    shape, nodes, degree
        As for kind ``weights``.
    share : float
        The budget, as a share of the largest degree: that many matchings, or one more, hold all edges.
    activation : {"independent", "single"}
    slowest : float
        Times of edges are drawn from 1 to this, evenly; none are given for 1.
    """
    one_of("shape", shape, tuple(SHAPES))
    one_of("activation", activation, ("independent", "single"))
    at_least("nodes", nodes, 2)
    positive("share", share)
    at_least("slowest", slowest, 1)
    network = network_of(rng, shape, nodes, degree)
    times = rng.uniform(1.0, slowest, len(network.edges)).round(3).tolist() if slowest > 1 else []
    return MatchingsInstance(
        name=f"{shape}-n{nodes}",
        network=network,
        budget=share * int(network.degrees.max()),
        times=tuple(times),
        activation=cast(Activation, activation),
    )
