"""Lower bounds on the time of every selection, without a solver."""

import numpy as np

from ddlopt.models.compression.sfb.cut_network import CutNetwork
from ddlopt.models.compression.sfb.instance import SfbInstance

_MOST_FLOW = 5_000
"""Operators up to which a maximum flow takes less than a second, whatever the graph."""


def sfb_bound(instance: SfbInstance) -> float:
    """Value of a maximum flow, which is the optimum without budgets; of large graphs :func:`sfb_closed_form`."""
    return CutNetwork(instance).cut().bound_s if instance.size <= _MOST_FLOW else sfb_closed_form(instance)


def sfb_closed_form(instance: SfbInstance) -> float:
    """Every gradient costs its all-reduce or the duplication of its operator, whichever is less."""
    duplicated = np.where(instance.eligible, instance.extra_s + instance.duplication_penalty_s, np.inf)
    return float(np.minimum(instance.sync_s, duplicated).sum())
