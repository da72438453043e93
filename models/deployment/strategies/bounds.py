"""A bound for the problem ``strategies`` that needs no solver."""

import math

import numpy as np

from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.instance import StrategyInstance
from ddlopt.models.tolerances import ROUNDING


def cheapest_bound(instance: StrategyInstance) -> float:
    """The cheapest strategy of every node and the cheapest pair of every edge, whatever they fit with.

    Raises
    ------
    InfeasibleError
        If forbidden pairs, pins, or the least usages at some time, leave no choice.
    """
    core = core_of(instance)
    nodes = np.minimum.reduceat(core.cost, core.start[:-1])
    pairs = np.minimum.reduceat(core.table, core.table_start[:-1]) if len(core.edges) else np.zeros(0)
    least = math.fsum([*nodes.tolist(), *pairs.tolist()])
    return max(0.0, least - ROUNDING * abs(least))
