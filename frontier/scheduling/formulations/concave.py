"""Concave utilities in CVXPY, and bounds on concave functions that trust nothing but tangents."""

import math
from collections import defaultdict
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.utility import Fair, Logarithmic, LossCurve, Utility

Floats = npt.NDArray[np.float64]


def sum_of_utilities(utilities: Sequence[Utility], parts: cp.Expression) -> cp.Expression:
    """Concave expression of the sum of utilities at ``parts`` (I,); ``all_or_nothing`` as its concave envelope, v p."""
    groups: dict[tuple[str, float], list[int]] = defaultdict(list)
    for place, one in enumerate(utilities):
        groups[one.kind, one.alpha if isinstance(one, Fair) else 0.0].append(place)
    if not groups:
        return cp.Constant(0.0)
    return cp.sum([_group([utilities[place] for place in places], parts[places]) for places in groups.values()])


def _group(utilities: Sequence[Utility], parts: cp.Expression) -> cp.Expression:
    """The same of utilities of one kind and, for fairness, one alpha."""
    value = np.array([one.value for one in utilities])
    match utilities[0]:
        case Logarithmic():
            curvature = np.array([getattr(one, "curvature", 0.0) for one in utilities])
            return (value / np.log1p(curvature)) @ cp.log1p(cp.multiply(curvature, parts))
        case LossCurve():
            rate = np.array([getattr(one, "rate", 0.0) for one in utilities])
            return value @ (1 - cp.inv_pos(1 + cp.multiply(rate, parts)))
        case Fair(alpha=alpha) if alpha > 0:
            epsilon = np.array([getattr(one, "epsilon", 0.0) for one in utilities])
            relative = cp.multiply(1 / epsilon, parts)
            if alpha == 1:
                return value @ cp.log1p(relative)
            scale = value * epsilon ** (1 - alpha) / (1 - alpha)
            return scale @ (cp.power(1 + relative, 1 - alpha) - 1)
    return value @ parts


def largest_less_price(utility: Utility, price: float) -> float:
    """Upper bound on ``u(p) - price p`` over 0 <= p <= 1, sharp up to rounding; ``all_or_nothing`` as v p.

    The tangent at any p lies above a concave function, so that errors in the p chosen cannot make the bound too low.
    """
    if not utility.concave:
        return max(0.0, utility.value - price)
    part = _where_slope_is(utility, price)
    rest = utility.slope(part) - price
    rise = rest * (1 - part) if rest > 0 else -rest * part
    return float(utility.of(part)) - price * part + rise


def _where_slope_is(utility: Utility, price: float) -> float:
    """The p in [0, 1] with the slope ``price``, or the end that comes closest."""
    if price <= utility.slope(1.0):
        return 1.0
    if price >= utility.slope(0.0):
        return 0.0
    value = utility.value
    match utility:
        case Logarithmic(curvature=curvature):
            part = value / math.log1p(curvature) / price - 1 / curvature
        case LossCurve(rate=rate):
            part = (math.sqrt(value * rate / price) - 1) / rate
        case Fair(alpha=alpha, epsilon=epsilon):
            part = float((value / price) ** (1 / alpha)) - epsilon
        case _:
            part = 1.0
    return min(1.0, max(0.0, part))
