"""Bounds for the problem ``matchings`` that need no solver."""

import math

from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.weights.bounds import weights_bound
from ddlopt.models.gossip.weights.instance import WeightsInstance


def matchings_bound(instance: MatchingsInstance) -> float:
    r"""The best of what the graph and the budget prove.

    *Graph*: :math:`\mathbb{E}[W^2] - J \succeq (\mathbb{E} W - J)^2` by Jensen's inequality, and
    :math:`\mathbb{E} W = I - L(p \circ w)` is one of the matrices of the problem ``weights`` with goal ``averaging``;
    so the square of its bound is one here.

    *Budget*: ρ is at least the trace of :math:`\mathbb{E}[W^2] - J` over n − 1. With :math:`y_e = p_e w_e` the trace is
    :math:`n - 1 - 4 \sum_e y_e + \operatorname{tr} L(y)^2 + 4 \sum_e (1/p_e - 1) y_e^2`, and
    :math:`\operatorname{tr} L(y)^2 \ge 2 \sum_e y_e^2`, as it is :math:`y^\top (4 I + B) y` with the adjacency matrix B
    of a line graph, which has no eigenvalue below −2. So edge e takes off at most :math:`2 p_e / (2 - p_e)`; a matching
    has at most :math:`\lfloor n/2 \rfloor` edges, and of convex functions the sum is largest where all
    probabilities but one are 0 or 1. Where a single matching is active, an edge takes off at most
    :math:`\max_w 4 p_e (w - w^2) = p_e`.
    """
    n = instance.size
    averaging = WeightsInstance(name=instance.name, network=instance.network)
    active = instance.budget / min(instance.edge_times)
    if instance.activation == "single":
        gained = min(1.0, active)
    else:
        whole = math.floor(active)
        part = active - whole
        gained = 2.0 * whole + 2.0 * part / (2.0 - part)
    by_budget = 1.0 - (n // 2) * gained / (n - 1)
    # Rounding of a few sums
    return max(0.0, weights_bound(averaging) ** 2, by_budget - 1e-15 * n)
