"""A bound for the problem ``exchange`` that needs no solver."""

import numpy as np

from ddlopt.models.gossip.exchange.instance import ExchangeInstance, Floats
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING

# Four a decade of sixteen: neighbouring prices give bounds within some percent.
_MULTIPLIERS = 64


def exchange_bound(instance: ExchangeInstance) -> float:
    r"""What windows of :math:`2^j` steps prove.

    With a price :math:`\lambda` for each send, let L(W) be a bound on what staleness and sends within a window W cost,
    for whatever model others had before. Without a send within it (one in its first step counts as before), all its
    points are compared with the same model, which takes at least V(W) = the least staleness from any fixed vector; with
    one, at least :math:`\lambda`, and what its halves take:

    .. math:: L(W) = \min \{ V(W), \max \{ \lambda, L(W_1) + L(W_2) \} \} .

    V is the sum of squared distances from the mean; of plain norms it is the sum of :math:`\| x_t - x_{t + |W|/2} \|`
    over the first half, by the triangle inequality. For a price that is the bound; for a budget of m sends it is the
    largest :math:`L - \lambda m` over a range of prices. Where the model drifts at constant speed, windows of any
    length would give 1/27 of the optimum with a budget, and these give 2 to 3 %.
    """
    values = _window_values(instance.points, instance.plain)
    if instance.send_cost is not None:
        return max(0.0, _dyadic(values, instance.send_cost)) * (1 - BOUND_MARGIN)
    most = float(values[-1].sum())
    if not most > 0:
        return 0.0
    # Below 1e-16 of the largest value a price is lost in rounding.
    prices = most * np.geomspace(1e-16, 1.0, _MULTIPLIERS)
    m = instance.most_sends
    # Both parts may be far more than their difference, which then is of rounding.
    found = max(_dyadic(values, float(price)) * (1 - ROUNDING) - float(price) * m for price in prices)
    return max(0.0, found) * (1 - BOUND_MARGIN)


def _window_values(points: Floats, plain: bool) -> list[Floats]:
    """V of the windows of 1, 2, 4, … steps; the trajectory is filled up with copies of its last point."""
    steps, width = points.shape
    length = 1 << (steps - 1).bit_length()
    filled = np.concatenate((points, np.repeat(points[-1:], length - steps, axis=0)))
    # Steps that do not exist are compared with nothing.
    real = (np.arange(length) < steps).astype(float)
    values, size = [np.zeros(length)], 2
    while size <= length:
        windows = filled.reshape(-1, size, width)
        there = real.reshape(-1, size)
        if plain:
            apart = np.sqrt(((windows[:, : size // 2] - windows[:, size // 2 :]) ** 2).sum(axis=2))
            values.append((apart * there[:, size // 2 :]).sum(axis=1))
        else:
            # From their first point on: far from 0, what rounding does to a mean is more than all distances from it.
            windows = windows - windows[:, :1]
            count = np.maximum(there.sum(axis=1), 1.0)
            mean = (windows * there[:, :, np.newaxis]).sum(axis=1) / count[:, np.newaxis]
            squares = ((windows - mean[:, np.newaxis]) ** 2).sum(axis=2)
            values.append((squares * there).sum(axis=1))
        size *= 2
    return values


def _dyadic(values: list[Floats], price: float) -> float:
    found = values[0]
    for value in values[1:]:
        found = np.minimum(value, np.maximum(price, found[0::2] + found[1::2]))
    return float(found[0])
