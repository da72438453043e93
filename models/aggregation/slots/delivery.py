r"""Packets that come late or are lost: how long a slot waits for the last of its workers.

A worker's packet is there :math:`X = D + R K` seconds after it would be with a network that is always on time: D from a
table of delays, and K, how often it was lost, with :math:`\Pr[K \ge k] = p^k`, a timeout R each. So

.. math::
    \Pr[X > t] = \sum_b f_b \, p^{\lfloor (t - d_b) / R \rfloor + 1} \ (t \ge d_b;\ f_b \text{ where } t < d_b), \qquad
    \mathbb{E} \max_{i \le n} X_i = \int_0^\infty 1 - (1 - \Pr[X > t])^n \, dt ,

whose integrand is constant between the values :math:`d_b + k R`. After any :math:`t \ge \max_b d_b` the rest is at most
:math:`n R \Pr[X > t] / (1 - p)`, since :math:`\Pr[X > t + R] = p \Pr[X > t]` and :math:`1 - (1 - x)^n \le n x`. Without
delays the expectation is R times :math:`\sum_{k \ge 1} 1 - (1 - p^k)^n`, timeouts of the slowest of n workers.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from ddlopt.models.contracts import Part
from ddlopt.models.tolerances import ROUNDING

_BITS = 192
"""Binary digits of a probability; what is rounded is far below what floats can tell."""
_REST = 2.0**-120
"""Chance that any packet is lost more often than is added up: times a timeout, far below a float's last digit."""
_LATEST = 1000
"""Timeouts within the longest delay: the sum has as many terms, and no worker would wait so patiently."""
_KNOWN = 8192
"""Expectations that are kept: each of a job, at a switch, rounded both ways."""


class Delivery(Part):
    """How packets of a job's workers come to its switches; each packet of each worker by itself.

    Parameters
    ----------
    workers : tuple of int
        For whose packets a slot waits, at the switches of the job: those of its rack, or of all racks below.
    delays_s : tuple of float
        By which a packet may be late.
    chances : tuple of float
        Of these delays; what they lack of 1 is that of none.
    loss : float
        Chance that a packet that is sent is lost, at most 0.5.
    timeout_s : float
        After which what was lost is sent again.
    """

    workers: tuple[int, ...]
    delays_s: tuple[float, ...] = ()
    chances: tuple[float, ...] = ()
    loss: float = Field(default=0.0, ge=0, le=0.5)
    timeout_s: float = Field(default=1e-3, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place, count in enumerate(self.workers):
            if count < 1:
                raise ValueError(f"workers[{place}] is {count}; a slot waits for 1 or more")
        if len(self.chances) != len(self.delays_s):
            raise ValueError(f"chances has {len(self.chances)} entries, but delays_s has {len(self.delays_s)}")
        for name, values in (("delays_s", self.delays_s), ("chances", self.chances)):
            for place, value in enumerate(values):
                if not value > 0:
                    raise ValueError(f"{name}[{place}] is {value:g}; expected more than 0")
        if self.loss and max(self.delays_s, default=0.0) > _LATEST * self.timeout_s:
            raise ValueError(f"delays_s has {max(self.delays_s):g}, more than {_LATEST} timeouts of {self.timeout_s:g}")
        if (total := math.fsum(self.chances)) > 1 + ROUNDING:
            raise ValueError(f"chances add up to {total:g}; expected at most 1")
        return self


@lru_cache(maxsize=_KNOWN)
def wait_s(delivery: Delivery, workers: int) -> float:
    """Expected seconds until the last packet of the given number of workers is there, in floating point."""
    rounds = np.arange(1 + _lost_most(delivery.loss, workers))
    on_time = max(0.0, 1.0 - math.fsum(delivery.chances))
    delays, chances = np.array([0.0, *delivery.delays_s]), np.array([on_time, *delivery.chances])
    times = (delays[:, None] + delivery.timeout_s * rounds).ravel()
    chance = (chances[:, None] * (1.0 - delivery.loss) * delivery.loss**rounds).ravel()
    # Of times that are the same any may be first: there is no time between them.
    order = np.argsort(times, kind="stable")
    # From the last to the first, so that small chances keep their digits.
    later = np.minimum(1.0, np.cumsum(chance[order][::-1])[::-1][1:])
    with np.errstate(divide="ignore"):
        waits = -np.expm1(workers * np.log1p(-later))
    return float(np.diff(times[order]) @ waits)


@lru_cache(maxsize=_KNOWN)
def wait_exact(delivery: Delivery, workers: int, up: bool) -> Fraction:
    """The same, rounded up or down in the 192nd binary digit of probabilities, and where the sum ends."""
    loss, timeout = Fraction(delivery.loss), Fraction(delivery.timeout_s)
    table = [(Fraction(0), max(Fraction(0), 1 - sum(map(Fraction, delivery.chances))))]
    table += [(Fraction(d), Fraction(f)) for d, f in zip(delivery.delays_s, delivery.chances, strict=True)]
    end = max(delay for delay, _ in table) + _lost_most(delivery.loss, workers) * timeout
    often = {d: int((end - d) / timeout) if loss else 0 for d, _ in table}
    times = sorted({d + k * timeout for d in often for k in range(often[d] + 1)} | {end})

    def later(time: Fraction) -> Fraction:
        """That the packet of one worker is not there yet."""
        lost = ((f, int((time - d) / timeout) + 1 if time >= d else 0) for d, f in table)
        return min(Fraction(1), sum((f * loss**times for f, times in lost), Fraction(0)))

    found = Fraction(0)
    for time, after in pairwise(times):
        found += (after - time) * _any(later(time), workers, up)
    return found + workers * timeout * later(end) / (1 - loss) if up else found


def _any(later: Fraction, workers: int, up: bool) -> Fraction:
    """That not all packets are there; the other way round than that each of them is."""
    one = 1 << _BITS
    there = (1 - later) * one
    power = math.floor(there) if up else math.ceil(there)

    def product(a: int, b: int) -> int:
        return a * b >> _BITS if up else -(-a * b >> _BITS)

    # By squares, each rounded the same way: the digits stay few, however many workers there are.
    every = one
    while workers:
        if workers & 1:
            every = product(every, power)
        power, workers = product(power, power), workers >> 1
    return Fraction(one - every, one)


def _lost_most(loss: float, workers: int) -> int:
    """How often a packet is lost at most, but for a chance that does not count."""
    return math.ceil(math.log(_REST / workers) / math.log(loss)) if loss else 0
