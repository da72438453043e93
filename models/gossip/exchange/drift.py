"""Where the staleness of segments satisfies the quadrangle inequality: models that drift away and do not come back."""

import numpy as np

from ddlopt.models.gossip.exchange.instance import Floats


def drifts_away(points: Floats) -> bool:
    r"""Whether it is certain that every model is at least as far from an older one as from a newer one.

    Let c(s, e) be the staleness of steps s…e−1 where the model is sent at s, and next at e. For s < s' ≤ e < e',

    .. math:: c(s, e) + c(s', e') \le c(s, e') + c(s', e)

    says that :math:`\sum_{t=e}^{e'-1} (\|x_t - x_{s'}\|^2 - \|x_t - x_s\|^2) \le 0`; with e' = e + 1 and e = t it says
    that of every single step, so that it holds if and only if :math:`\|x_t - x_{s'}\| \le \|x_t - x_s\|` for all
    s < s' ≤ t, with squared and with plain norms. For neighbours s and s + 1, from which the rest follows, that
    is

    .. math:: \delta_s^\top x_t \ge \tfrac 12 \delta_s^\top (x_s + x_{s+1}), \qquad \delta_s = x_{s+1} - x_s .

    Here the left side is bounded from below over the box that holds all later points, in the given coordinates and in
    the principal axes of the points, which takes O(T d) and O(T d² + d³). So True is a proof, False says nothing.
    """
    if len(points) < 3:
        return True
    centred = points - points.mean(axis=0)
    if _certain(centred):
        return True
    _, axes = np.linalg.eigh(centred.T @ centred)
    return _certain(centred @ axes)


def _certain(points: Floats) -> bool:
    later = points[:0:-1]
    low = np.minimum.accumulate(later)[::-1]
    high = np.maximum.accumulate(later)[::-1]
    step = np.diff(points, axis=0)
    least = np.minimum(step * low, step * high).sum(axis=1)
    return bool((least >= 0.5 * (step * (points[1:] + points[:-1])).sum(axis=1)).all())


def quadrangles_hold(points: Floats) -> bool:
    """The same decided from all pairs, in O(T² d)."""
    squares = ((points[:, np.newaxis] - points[np.newaxis]) ** 2).sum(axis=2)
    nearer = np.diff(squares, axis=1) <= 0
    return bool(nearer[np.tri(len(points), len(points) - 1, -1, dtype=bool)].all())
