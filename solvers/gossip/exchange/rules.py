"""Rules that decide in every step whether to send, from what they have seen so far.

Each has a level. It is chosen in hindsight: by bisection, as the one with the most sends that the budget allows, or for
a price as the best of a grid. So rules are at their best, and what is left is what the future would be worth.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes, staleness
from ddlopt.solvers.gossip.exchange.kernels import rules as kernels
from ddlopt.solvers.gossip.exchange.kernels.dynamic_program import Ints
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

_STEPS = 60
"""Of the bisection."""
_GRID = 80
"""Levels that are tried for a price."""

Times = Callable[[float], Ints]
"""Times of sends for a level; the higher, the fewer."""


def _threshold(instance: ExchangeInstance, seed: int) -> Times:
    ones = np.ones(instance.size)
    return lambda level: kernels.by_distance(instance.points, level, ones, False)


def _relative(instance: ExchangeInstance, seed: int) -> Times:
    ones = np.ones(instance.size)
    return lambda level: kernels.by_distance(instance.points, level, ones, True)


def _scaled(instance: ExchangeInstance, seed: int) -> Times:
    rates = np.array(instance.rates)
    return lambda level: kernels.by_distance(instance.points, level, rates, False)


def _norms(instance: ExchangeInstance, seed: int) -> Times:
    tensors = np.array(instance.tensors)
    return lambda level: kernels.by_norms(instance.points, level, tensors)


def _speed(instance: ExchangeInstance, seed: int) -> Times:
    power = 1 / 2 if instance.plain else 1 / 3
    return lambda level: kernels.by_speed(instance.points, level, power)


def _sum(instance: ExchangeInstance, seed: int) -> Times:
    return lambda level: kernels.by_sum(instance.points, level, instance.plain)


def _random(instance: ExchangeInstance, seed: int) -> Times:
    drawn = np.random.default_rng(seed).random(instance.size - 1)
    return lambda level: 1 + np.flatnonzero(drawn * level < 1.0)


def _periodic(instance: ExchangeInstance, seed: int) -> Times:
    def times_at(level: float) -> Ints:
        period = max(level, 1.0)
        found: Ints = (np.arange(1, math.ceil(instance.size / period)) * period).astype(np.int64)
        return found

    return times_at


RuleName = Literal[
    "threshold", "relative-threshold", "rate-threshold", "norm-threshold", "speed-rule", "sum-rule", "random-times",
    "fixed-period",
]  # fmt: skip
_RULES: Mapping[RuleName, Callable[[ExchangeInstance, int], Times]] = {
    "threshold": _threshold,
    "relative-threshold": _relative,
    "rate-threshold": _scaled,
    "norm-threshold": _norms,
    "speed-rule": _speed,
    "sum-rule": _sum,
    "random-times": _random,
    "fixed-period": _periodic,
}


@dataclass(frozen=True)
class ExchangeRule(Heuristic, uses=("seed",)):
    r"""One of the rules, with its level :math:`\theta`; :math:`\hat x` is the model sent last.

    ``threshold``: :math:`\|x_t - \hat x\| > \theta`. ``relative-threshold``: :math:`> \theta \|\hat x\|`; of the rule
    "according to the change of the local model" this is our reconstruction, as the paper's text is not public.
    ``rate-threshold``: :math:`> \theta \eta_t` with the learning rate :math:`\eta_t`, as in SPARQ-SGD.

    ``norm-threshold``, after EventGraD: norms, and not distances, of each tensor are watched; send where the norm of
    one of them has changed by :math:`\theta` times the mean of its last two slopes. There every tensor is sent by
    itself, and its threshold decays by a constant factor in every step; here the whole model is sent, and
    :math:`\theta` is that factor's place.

    ``speed-rule``: :math:`> \theta \hat v^{1/3}` (plain norms: :math:`\hat v^{1/2}`) with the speed :math:`\hat v`
    since the last sends. ``sum-rule``: the staleness summed up since the last send exceeds :math:`\theta`. Both are
    what the continuous problem asks for. Where distance grows as :math:`v n^H` in n steps, with H = 1 for drift and H
    = 1/2 for a random walk, a segment of n steps has staleness :math:`c = v^2 n^{2H+1} / (2H+1)`. To minimise
    staleness and a price :math:`\lambda` a step, :math:`(c + \lambda) / n`, takes :math:`c = \lambda / 2H`: *the same
    for all segments*, whatever v is then. So distances at a send are proportional to :math:`v^{1/(2H+1)}`, sends to
    :math:`v^{2/(2H+1)}`.

    ``fixed-period``: every :math:`\theta` steps, rounded down. ``random-times``: with probability :math:`1/\theta` in
    every step, as in GoSGD.

    Parameters
    ----------
    rule : str
        One of those above.

    References
    ----------
    EventGraD from its released code (github.com/soumyadipghosh/eventgrad), SPARQ-SGD's trigger from the documentation
    of an implementation, GoSGD from that in github.com/uoguelph-mlrg/Theano-MPI. ``speed-rule``, ``sum-rule`` and how
    levels are chosen are ours.
    """

    rule: RuleName = "threshold"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.exchange.kernels.rules",)
    covers: ClassVar[type[Any]] = ExchangeInstance

    @property
    def name(self) -> str:
        """``exchange-rule``, with the rule."""
        return spelled("exchange-rule", self, "rule")

    def refuses(self, instance: Any) -> str | None:
        """Missing learning rates."""
        if self.rule == "rate-threshold" and not instance.rates:
            return "it needs the learning rates of the steps, and this instance has no rates"
        return None

    def uses_for(self, instance: Any) -> frozenset[str]:
        """A seed, where times are drawn."""
        return frozenset({"seed"} if self.rule == "random-times" else ())

    def answer(self, instance: ExchangeInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """Times of the best level; details have the level."""
        times_at = _RULES[self.rule](instance, seed)
        if instance.send_cost is None:
            level, times = _within(times_at, instance.most_sends, clock)
        else:
            level, times = _cheapest(times_at, instance, clock)
        return ExchangeTimes(instance=instance.name, times=tuple(int(t) for t in times)), {"level": level}


def _within(times_at: Times, sends: int, clock: Clock) -> tuple[float, Ints]:
    """The least level found that keeps the budget."""
    if not sends:
        return math.inf, np.empty(0, np.int64)
    low, high = 0.0, 1.0
    best = times_at(low)
    if len(best) <= sends:
        return low, best
    best = times_at(high)
    while len(best) > sends and math.isfinite(high):
        low, high = high, high * 4.0
        best = times_at(high)
    for _ in range(_STEPS):
        if clock.expired:
            break
        middle = 0.5 * (low + high) if low else high / 16.0
        if not low < middle < high:
            break
        found = times_at(middle)
        if len(found) > sends:
            low = middle
        else:
            high, best = middle, found
    return high, best


def _cheapest(times_at: Times, instance: ExchangeInstance, clock: Clock) -> tuple[float, Ints]:
    """The best of a grid of levels, from one send to many."""
    assert instance.send_cost is not None
    best = (math.inf, 0.0, np.empty(0, np.int64))
    for sends in np.unique(np.geomspace(1, max(1, instance.size - 1), _GRID).astype(int)).tolist():
        level, times = _within(times_at, sends, clock)
        total = math.fsum(staleness(instance.points, tuple(times.astype(int).tolist()), instance.plain).tolist())
        best = min(best, (total + instance.send_cost * len(times), level, times), key=lambda each: each[0])
        if clock.expired:
            break
    return best[1], best[2]
