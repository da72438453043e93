r"""Workers of different speeds that are slow now and then: how long the last of them takes for some steps.

After :math:`\tau` steps worker i is done at :math:`S_i = Y f_i (\tau + (s - 1) B_i)` with independent binomial
:math:`B_i \sim \mathrm{Bin}(\tau, p)`, and :math:`M(\tau) = \mathbb{E} \max_i S_i` is a finite sum over the values
that the :math:`S_i` take. Seconds a step, :math:`M(\tau) / \tau`, fall with :math:`\tau`: given how often each worker
is slow in :math:`\tau + 1` steps, any of them may be the one left out, so
:math:`\mathbb{E}[S_i(\tau)/\tau \mid S(\tau + 1)] = S_i(\tau + 1)/(\tau + 1)`, and the maximum is convex. They fall
towards :math:`Y (1 + (s - 1) p) \max_i f_i`.
"""

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np
from pydantic import Field, field_validator
from scipy.special import bdtr

from ddlopt.models.contracts import Part

MOST_STEPS = 4096
"""In a period, where steps may be slow: the sum has as many terms for each worker, in numbers of as many words."""
_BITS = 192
"""Binary digits of a probability; what is rounded is far below what floats can tell."""
_KNOWN = 8192
"""Maxima that are kept: all periods there are, rounded both ways."""


class Stragglers(Part):
    """How long each worker computes; a round waits for all of them.

    Parameters
    ----------
    factors : tuple of float
        f: a step of each worker over compute_s, when it is not slow.
    chance : float
        p: with which a step of a worker is slow, each by itself.
    slowdown : float
        s: how many times as long a slow step takes.
    """

    factors: tuple[float, ...] = Field(min_length=1)
    chance: float = Field(default=0.0, ge=0, lt=1)
    slowdown: float = Field(default=1.0, ge=1)

    @field_validator("factors")
    @classmethod
    def _check(cls, factors: tuple[float, ...]) -> tuple[float, ...]:
        for place, factor in enumerate(factors):
            if not factor > 0:
                raise ValueError(f"factors[{place}] is {factor:g}; a step takes more than 0 times compute_s")
        return factors

    @property
    def random(self) -> bool:
        """Whether any step may be slow."""
        return self.chance > 0 and self.slowdown > 1

    @property
    def limit(self) -> Fraction:
        """Seconds a step over Y in periods without end; those of shorter ones are more."""
        slow = Fraction(self.chance) * (Fraction(self.slowdown) - 1) if self.random else Fraction(0)
        return Fraction(max(self.factors)) * (1 + slow)


@lru_cache(maxsize=_KNOWN)
def slowest(stragglers: Stragglers, steps: int) -> float:
    """M / Y of a number of steps, in floating point."""
    if not stragglers.random:
        return max(stragglers.factors) * steps
    counts = Counter(stragglers.factors)
    slow = np.arange(steps + 1)
    times = np.array([factor * (steps + (stragglers.slowdown - 1.0) * slow) for factor in counts])
    reached = np.append(0.0, bdtr(slow, steps, stragglers.chance))
    # Of values that are the same, up to rounding, any may be first: there is next to nothing between them.
    values = np.sort(times, axis=None)
    done = np.ones(len(values))
    for own, count in zip(times, counts.values(), strict=True):
        done *= reached[np.searchsorted(own, values, side="right")] ** count
    return float(values[0] + np.diff(values) @ (1.0 - done[:-1]))


@lru_cache(maxsize=_KNOWN)
def slowest_exact(stragglers: Stragglers, steps: int, up: bool) -> Fraction:
    """M / Y of a number of steps, rounded up or down in the 192nd binary digit of probabilities."""
    if not stragglers.random:
        return Fraction(max(stragglers.factors)) * steps
    longer, reached = Fraction(stragglers.slowdown) - 1, _cumulative(stragglers.chance, steps, up)
    counts = list(Counter(stragglers.factors).items())
    events = sorted(
        (Fraction(factor) * (steps + longer * slow), group, slow)
        for group, (factor, _) in enumerate(counts)
        for slow in range(steps + 1)
    )
    levels, before, found = [0] * len(counts), Fraction(0), Fraction(0)
    for value, group, slow in events:
        if value > before:
            found += (value - before) * _left(levels, [count for _, count in counts], up)
        before, levels[group] = value, reached[slow]
    return found / (1 << _BITS)


def _left(levels: list[int], counts: list[int], up: bool) -> int:
    """The probability that not all are done, in units of 2^-_BITS; the other way round than that all are."""
    if 0 in levels:
        return 1 << _BITS
    product: int = 1
    for level, count in zip(levels, counts, strict=True):
        product *= level**count
    return (1 << _BITS) - _shifted(product, _BITS * (sum(counts) - 1), up)


def _cumulative(chance: float, steps: int, low: bool) -> list[int]:
    """For k = 0..steps the probability of at most k slow steps, in units of 2^-_BITS, rounded down if ``low``."""
    slow, whole = Fraction(chance).as_integer_ratio()  # of a float, so that the second is a power of 2
    digits = (whole.bit_length() - 1) * steps
    term = (whole - slow) ** steps
    found, total = [], 0
    for k in range(steps + 1):
        total += term
        found.append(_shifted(total << _BITS, digits, low))
        term = term * (steps - k) * slow // ((k + 1) * (whole - slow))
    return found


def _shifted(value: int, digits: int, low: bool) -> int:
    """Over 2^digits, rounded down if ``low``, else up."""
    return value >> digits if low else -(-value >> digits)
