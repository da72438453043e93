"""A bound on what a hot set saves, without a solver."""

from ddlopt.models.aggregation.hot.instance import HotInstance
from ddlopt.models.aggregation.hot.prices import best_prices


def hot_bound(instance: HotInstance) -> float:
    """Numbers in a second that no hot set exceeds: Dantzig's bound for one switch, Lagrange's for several.

    See :mod:`ddlopt.models.aggregation.hot.prices`.
    """
    return best_prices(instance).bound
