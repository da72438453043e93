r"""How many batches must be sampled until the parameters touched most are known.

Of N sampled batches, each touches parameter i with probability :math:`p_i`, and :math:`\hat p_i` is the part of them
that does. The K parameters with the largest :math:`\hat p` are taken; batches are independent, parameters of a batch
need not be. With :math:`p_1 \ge p_2 \ge \dots`, and for parameters on either side of a threshold t,

.. math:: P(\hat p_i \le t) \le e^{-N D(t, p_i)} \quad (p_i > t), \qquad
    P(\hat p_j \ge t) \le e^{-N D(t, p_j)} \quad (p_j < t),

where :math:`D(t, p) = t \ln\frac{t}{p} + (1 - t) \ln\frac{1 - t}{1 - p}` (Chernoff) or, weaker,
:math:`D(t, p) = 2 (t - p)^2` (Hoeffding). Of rare events the first is about p, the second about p squared.

*The set is right* if all of the K hottest are above some t and all others below it: the probability that it is not
is at most the sum of the terms above. t is where both sides of the break decay equally fast.

*A share of the heat.* Let A be the hot parameters with :math:`p \ge (1 + \eta) p_K`, and C the others with
:math:`p \le p_{K+1} / (1 + \eta)`. If all K hottest are above a threshold and C is below it, nothing of C is taken;
if A is above another one and all that are not among the K hottest are below it, all of A is taken. Then only
parameters between can be mistaken for each other; the most that this costs is known, and :math:`\eta` is the largest
for which it is little enough.

*The share in the mean.* With :math:`A_\theta` the parameters above frequency :math:`\theta`, the heat lost is the
integral over :math:`\theta` of how many fewer of them are taken than could be. Let c be any count. As a hot parameter
that is missed and seen more than c times needs another parameter that is taken, not hot, and seen more than c times,
for :math:`\theta \ge p_K` the expected number of missed ones is at most

.. math:: \sum_{i \in A_\theta} P(N \hat p_i \le c) + \sum_{j > K} P(N \hat p_j > c) ,

and for smaller :math:`\theta` the expected number of those taken that are below it is at most

.. math:: \sum_{j \notin A_\theta} P(N \hat p_j > c) + \sum_{i \le K} P(N \hat p_i \le c) .

The best c for each :math:`\theta` gives the bound; counts are binomial.

The inequalities are those of W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal of
the American Statistical Association 58, 1963; the rest is ours.
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import bdtr, bdtrc

from ddlopt.models.aggregation.hot.instance import Reals
from ddlopt.models.errors import OptionError

Bound = Literal["chernoff", "hoeffding"]

_COUNTS = 64
"""Of which the best is taken."""
_WIDEST = 1e12
"""Of the bands around the break, relative."""


def samples_for_set(frequencies: Reals, size: int, delta: float, bound: Bound = "chernoff") -> float:
    """Batches after which the hottest parameters are known with probability at least ``1 - delta``.

    Parameters
    ----------
    frequencies : (P,) array
        Probability that a batch touches each parameter.
    size : int
        How many parameters are taken, K.
    delta : float
    bound : {"chernoff", "hoeffding"}

    Returns
    -------
    float
        A whole number; infinite where the K-th and the next are touched equally often.
    """
    ranked = _ranked(frequencies, size, delta)
    if size in (0, len(ranked)):
        return 0
    return _enough(_rates(ranked[:size], ranked[size:], bound), delta)


def samples_for_share(
    frequencies: Reals,
    size: int,
    share: float,
    delta: float,
    bound: Bound = "chernoff",
    value: Callable[[Reals], Reals] | None = None,
) -> float:
    """Batches after which what is taken is worth a share of the best choice with probability at least ``1 - delta``.

    Parameters
    ----------
    frequencies, size, delta, bound
        As for :func:`samples_for_set`.
    share : float
        Below 1.
    value : callable, optional
        Values of parameters by their frequencies, non-decreasing; without, the frequencies themselves (heat).

    Returns
    -------
    float
        A whole number.
    """
    if not 0 <= share < 1:
        raise OptionError(f"share is {share}; it must be at least 0 and below 1")
    ranked = _ranked(frequencies, size, delta)
    if size in (0, len(ranked)):
        return 0
    values = ranked if value is None else value(ranked)
    break_even = _Break(ranked, values, size)
    allowed = (1 - share) * float(values[:size].sum())
    # A factor this narrow loses nothing that floats could show.
    low, high = 1e-12, _WIDEST
    if break_even.loss(high) <= allowed:
        return 0
    if break_even.loss(low) > allowed:
        return samples_for_set(frequencies, size, delta, bound)
    # Six digits of the factor, of which the number of samples has fewer.
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if break_even.loss(middle) <= allowed else (low, middle)
    surely_in, surely_out = break_even.outside(low)
    rates = []
    if surely_out < len(ranked):
        rates.append(_rates(ranked[:size], ranked[surely_out:], bound))
    if surely_in:
        rates.append(_rates(ranked[:surely_in], ranked[size:], bound))
    return _enough(np.concatenate(rates), delta) if rates else 0


def expected_share(frequencies: Reals, size: int, samples: int) -> float:
    """At least this share of the heat of the hottest parameters is captured in the mean.

    Parameters
    ----------
    frequencies, size
        As for :func:`samples_for_set`.
    samples : int
        Batches, N.
    """
    if samples < 1:
        raise OptionError(f"samples is {samples}; it must be at least 1")
    ranked = _ranked(frequencies, size, 0.5)
    heat = float(ranked[:size].sum())
    if size in (0, len(ranked)) or heat == 0:
        return 1.0
    places = np.unique(np.geomspace(1, len(ranked), _COUNTS).astype(np.int64)) - 1
    missed, taken = np.full(size, np.inf), np.full(len(ranked) - size, np.inf)
    for count in np.unique(np.floor(samples * ranked[places])):
        low = np.cumsum(bdtr(count, samples, ranked[:size]))
        high = np.cumsum(bdtrc(count, samples, ranked[: size - 1 : -1]))[::-1]
        missed = np.minimum(missed, low + high[0])
        taken = np.minimum(taken, high + low[-1])
    # Between the m-th and the next frequency: of the first m those missed, or of those after the m-th those taken.
    steps = ranked - np.append(ranked[1:], 0.0)
    missed = np.minimum(missed, np.arange(1, size + 1))
    taken = np.minimum(taken, size)
    lost = float(steps[:size] @ missed) + float(steps[size:-1] @ taken[1:])
    return max(0.0, 1 - lost / heat)


class _Break:
    """Parameters near the break, and what mistaking them costs at most."""

    def __init__(self, ranked: Reals, values: Reals, size: int) -> None:
        self._ranked, self._size = ranked, size
        self._sums = np.concatenate([[0.0], np.cumsum(values)])

    def outside(self, eta: float) -> tuple[int, int]:
        """How many are surely taken, and the number of the first that surely is not."""
        rising = -self._ranked
        last, after = self._ranked[self._size - 1], self._ranked[self._size]
        surely_in = int(np.searchsorted(rising, -last * (1 + eta), side="right"))
        surely_out = int(np.searchsorted(rising, -after / (1 + eta), side="left"))
        return min(surely_in, self._size), max(surely_out, self._size)

    def loss(self, eta: float) -> float:
        """The most valuable between and hot, as many as can be, in exchange for the least valuable between and cold."""
        surely_in, surely_out = self.outside(eta)
        moved = min(self._size - surely_in, surely_out - self._size)
        sums = self._sums
        return float(sums[surely_in + moved] - sums[surely_in] - sums[surely_out] + sums[surely_out - moved])


def _ranked(frequencies: Reals, size: int, delta: float) -> Reals:
    if not 0 < delta < 1:
        raise OptionError(f"delta is {delta}; it must be between 0 and 1")
    if not 0 <= size <= len(frequencies):
        raise OptionError(f"size is {size}, but there are {len(frequencies)} parameters (0..{len(frequencies)})")
    return np.sort(frequencies)[::-1]


def _rates(above: Reals, below: Reals, bound: Bound) -> Reals:
    """Decay rates of the mistakes about parameters above and below a threshold between them."""
    least, most = float(above[-1]), float(below[0])
    if least <= most:
        return np.zeros(1)
    if bound == "hoeffding":
        threshold = (least + most) / 2
        return np.concatenate([2 * (above - threshold) ** 2, 2 * (below - threshold) ** 2])
    threshold = _between(least, most)
    # A parameter that is never touched is never mistaken.
    return np.concatenate([_divergence(threshold, above), _divergence(threshold, below[below > 0])])


def _between(high: float, low: float) -> float:
    """The t with D(t, high) = D(t, low)."""
    if low == 0:
        return 0.0
    if high == 1:
        return 1.0
    rise = math.log1p(-low) - math.log1p(-high)
    return rise / (rise + math.log(high / low))


def _divergence(t: float, p: Reals) -> Reals:
    with np.errstate(divide="ignore"):
        hit = t * (math.log(t) - np.log(p)) if t > 0 else np.zeros_like(p)
        miss = (1 - t) * (math.log1p(-t) - np.log1p(-p)) if t < 1 else np.zeros_like(p)
    return np.asarray(np.maximum(hit + miss, 0.0))


def _enough(rates: Reals, delta: float) -> float:
    """The least whole N with a sum of ``exp(-N rate)`` of at most ``delta``."""
    if rates.min() <= 0:
        return math.inf

    def suffices(samples: int) -> bool:
        return float(np.exp(-samples * rates).sum()) <= delta

    low, high = 0, 1
    while not suffices(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
