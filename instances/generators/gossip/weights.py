"""Instances of the problem ``weights``."""

from typing import cast

import numpy as np

from ddlopt.instances.generators.gossip.graphs import SHAPES, network_of
from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.gossip.weights.instance import Goal, WeightsInstance

_GOALS = ("averaging", "chain", "process", "pairwise")


def weights(
    rng: np.random.Generator,
    shape: str = "random",
    nodes: int = 50,
    degree: int = 8,
    goal: str = "averaging",
    budget: float | None = None,
) -> WeightsInstance:
    """Weights for a graph that is drawn or has a name.

    Parameters
    ----------
    shape : str
        ``path``, ``cycle``, ``star``, ``complete``, ``bipartite``, ``grid``, ``torus``, ``hypercube``; drawn:
        ``regular``, ``random`` (a number of edges), ``geometric`` (points in a square that are near).
    nodes : int
    degree : int
        Of a drawn graph; the mean for the last two.
    goal : {"averaging", "chain", "process", "pairwise"}
    budget : float, optional
        For goal ``process``; the number of nodes where none is given.
    """
    one_of("shape", shape, tuple(SHAPES))
    one_of("goal", goal, _GOALS)
    at_least("nodes", nodes, 2)
    if budget is not None:
        positive("budget", budget)
    network = network_of(rng, shape, nodes, degree)
    spent = (float(nodes) if budget is None else budget) if goal == "process" else budget
    return WeightsInstance(name=f"{shape}-n{nodes}", network=network, goal=cast(Goal, goal), budget=spent)
