r"""The time to a target as a function of the period: best steps, closed forms, bounds on intervals.

With :math:`A = L\sigma^2/m`, :math:`Q = L^2\sigma^2` and the *spread* :math:`c = \varphi\tau - 1` the time is
:math:`T = 2\Delta (Y + C/\tau) / (\eta s)` with :math:`\eta s = \varepsilon\eta - A\eta^2 - Q c\,\eta^3`. Let

.. math:: p(c) = \max_\eta\; \varepsilon\eta - A\eta^2 - Qc\,\eta^3
          \quad\text{at}\quad \eta = \frac{\varepsilon}{A + \sqrt{A^2 + 3 Q c\, \varepsilon}},

or the value at the step that is given. Then :math:`\min_\eta T = 2\Delta (Y + C/\tau) / p(\varphi\tau - 1)`. As a
maximum of functions that are linear in c, p is convex, so on an interval of periods it is at most its chord
:math:`\alpha - \beta\tau`, and :math:`(Y + C/\tau)/(\alpha - \beta\tau)`, whose derivative has the sign of
:math:`\beta Y \tau^2 + 2\beta C \tau - \alpha C`, is least at

.. math:: \tau = \frac{C}{Y} \left( \sqrt{1 + \frac{Y\alpha}{\beta C}} - 1 \right)

or the end of the interval that is nearest. With a given step p is its own chord, and this is the best period of all.
With a free step T need not be unimodal in the period: with :math:`\varphi = 1` communication in each step costs no
accuracy at all, and there can be a second valley far from it.
"""

from dataclasses import dataclass
from math import ceil, inf, sqrt

from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.stragglers import MOST_STEPS, Stragglers, slowest

_ROUNDING = 1e-13
"""Relative; more than what some twenty operations can lose."""
_OF_SUMS = 1e-11
"""The same of an expected maximum, which is a sum of thousands of terms that are at least 0."""


@dataclass(frozen=True)
class TimeToTarget:
    r"""The constants of an instance; see the module.

    Parameters
    ----------
    initial_gap, noise, drift, target, compute_s : float
        Δ, A, Q, ε, Y.
    credit : int
        1, or 0 for the posynomial form, where c is φτ.
    step_size : float or None
        η, where it is given.
    stragglers : Stragglers or None
        Where workers are not all as fast, and a step takes :math:`M(\tau)/\tau` in place of Y.
    """

    initial_gap: float
    noise: float
    drift: float
    target: float
    compute_s: float
    credit: int
    step_size: float | None
    stragglers: Stragglers | None = None

    @classmethod
    def of(cls, instance: PeriodInstance) -> "TimeToTarget":
        """Those of an instance."""
        noise = instance.smoothness * instance.variance
        return cls(
            instance.initial_gap,
            noise / instance.workers,
            noise * instance.smoothness,
            instance.target,
            instance.compute_s,
            instance.credit,
            instance.step_size,
            instance.stragglers,
        )

    @property
    def most(self) -> float:
        """Steps that a period has at most."""
        return MOST_STEPS if self.stragglers is not None and self.stragglers.random else inf

    def computing(self, period: float) -> float:
        """Seconds of a step until the last worker is done; where steps may be slow for the next whole period."""
        if self.stragglers is None:
            return self.compute_s
        steps = min(MOST_STEPS, max(1, ceil(period))) if self.stragglers.random else 1
        return self.compute_s * slowest(self.stragglers, steps) / steps

    def _least_computing(self, period: float) -> float:
        """What a step takes at least in all periods that are no longer."""
        random = self.stragglers is not None and self.stragglers.random
        return self.computing(period) * (1.0 - _OF_SUMS) if random else self.computing(period)

    def step(self, period: float, mixing: float) -> float:
        """The best step size."""
        if self.step_size is not None:
            return self.step_size
        spread = self._spread(period, mixing)
        return self.target / (self.noise + sqrt(self.noise**2 + 3.0 * self.drift * spread * self.target))

    def progress(self, period: float, mixing: float) -> float:
        """p; at most 0 where the target is out of reach."""
        step = self.step(period, mixing)
        spread = self._spread(period, mixing)
        return step * (self.target - step * (self.noise + step * self.drift * spread))

    def seconds(self, period: float, communication_s: float, mixing: float) -> float:
        """T with the best step; infinite where the target is out of reach, or rounding hides whether it is."""
        progress = self.progress(period, mixing)
        if progress <= _ROUNDING * self._terms(period, mixing):
            return inf
        return 2.0 * self.initial_gap * (self.computing(period) + communication_s / period) / progress

    def alone(self, mixing: float) -> float:
        """What no period is faster than, by computing alone, with all progress that rounding may hide; or infinite."""
        most = self.progress(1.0, mixing) + _ROUNDING * self._terms(1.0, mixing)
        return 2.0 * self.initial_gap * self._computing_alone * (1.0 - _ROUNDING) / most if most > 0 else inf

    @property
    def _computing_alone(self) -> float:
        return self.compute_s if self.stragglers is None else self.compute_s * float(self.stragglers.limit)

    def last(self, seconds: float, mixing: float) -> float:
        """A period, 2 or a power of it, that no better one than ``seconds`` is beyond: computing alone takes longer."""
        alone, high = self._computing_alone, 2.0
        while high < self.most:
            progress = self.progress(high, mixing)
            if progress <= 0 or 2.0 * self.initial_gap * alone / progress >= seconds:
                break
            high *= 2.0
        return high

    def bound(self, low: float, high: float, communication_s: float, mixing: float) -> tuple[float, float]:
        """What no period in ``low``..``high`` is faster than, and the period where the bound is attained."""
        first, last = self.progress(low, mixing), self.progress(high, mixing)
        if first <= -_ROUNDING * self._terms(low, mixing):
            return inf, low
        compute_s, period = self._least_computing(high), low
        slope = (first - last) / (high - low) if high > low else 0.0
        at_zero = first + slope * low
        if slope > 0 and communication_s > 0:
            ratio = communication_s / compute_s
            period = ratio * (sqrt(max(0.0, 1.0 + at_zero / (slope * ratio))) - 1.0)
            period = min(max(period, low), high)
        chord = at_zero - slope * period
        largest = max(self._terms(low, mixing), self._terms(high, mixing))
        most = chord + _ROUNDING * largest
        if most <= 0:
            return inf, low
        value = 2.0 * self.initial_gap * (compute_s + communication_s / period)
        return value * (1.0 - _ROUNDING) / most, period

    def _terms(self, period: float, mixing: float) -> float:
        """What the terms of p add up to without their signs; rounding counts relative to it."""
        step = self.step(period, mixing)
        return step * (self.target + step * (self.noise + step * self.drift * self._spread(period, mixing)))

    def _spread(self, period: float, mixing: float) -> float:
        return (1.0 + mixing) / (1.0 - mixing) * period - self.credit
