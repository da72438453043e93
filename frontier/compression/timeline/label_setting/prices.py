"""Good prices for the bounds of label setting: of the whole timeline, and of what is left from a label on."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ddlopt.frontier.compression.timeline.dual.bound import DualBound, dual_bound
from ddlopt.frontier.compression.timeline.label_setting.kernels import Floats, Marks
from ddlopt.frontier.compression.timeline.label_setting.search import Pass, Prices
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.units import excess_room, may_pass
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING

_HAIR = 10 * ROUNDING
"""Added to the weight of every option, so that none has no weight at all."""
_STEEPER = (0.0, 0.5, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Other prices of the error that are tried with the best weights of the times."""


class Split(NamedTuple):
    """Two parts of a ``gradient``'s options, ``low`` (m,) and the others."""

    gradient: int
    low: Marks


@dataclass
class Pricing:
    """Where prices come from.

    Parameters
    ----------
    instance : CompressionInstance
    allowed : (n, m) array of bool, optional
        The options that there are; by default all.
    """

    instance: CompressionInstance
    allowed: Marks | None = None

    @cached_property
    def choices(self) -> Choices:
        """The options allowed; errors are what exceeds the least of the gradient."""
        choices = choices_of(self.instance)
        excess = choices.error - choices.error.min(axis=1, keepdims=True)
        choices = choices._replace(error=excess)
        if self.allowed is None:
            return choices
        times = choices.encode_s, choices.wire_s, choices.launch_s, choices.error
        encode, wire, launch, excess = (np.where(self.allowed, each, np.inf) for each in times)
        return choices._replace(encode_s=encode, wire_s=wire, launch_s=launch, error=excess)

    @property
    def timed(self) -> bool:
        """Whether the time is the objective."""
        return bool(self.instance.goal == "time")

    @cached_property
    def room(self) -> float | None:
        """The most excess; None where no choice can have more, or the excess is the objective."""
        room = excess_room(self.instance)
        if not self.timed or room is None:
            return None
        error = self.choices.error
        return room if np.where(np.isfinite(error), error, 0.0).max(axis=1).sum() > room else None

    @property
    def flat(self) -> bool:
        """Whether errors do not matter."""
        return self.timed and self.room is None

    @cached_property
    def time_limit_s(self) -> float:
        """The time budget, with what the check lets pass."""
        budget = self.instance.time_budget_s
        return np.inf if budget is None else may_pass(budget)

    @cached_property
    def relaxed(self) -> DualBound:
        """The best bound in prices, and what the linear relaxation mixes.

        Raises
        ------
        InfeasibleError
            If nothing keeps the budget.
        """
        return self._dual(self.choices)

    def first(self, others: bool) -> list[Prices]:
        """Prices for the whole timeline, the best bound first; ``others``: with some that are good for other labels.

        Raises
        ------
        InfeasibleError
            If nothing keeps the budget.
        """
        best = self._priced(self.relaxed)
        if not self.timed:
            return [best, self._in_time(self.choices)]
        factors = _STEEPER if others and self.room is not None else ()
        return [best, *(self._priced(self.relaxed._replace(mu=factor * self.relaxed.mu)) for factor in factors)]

    @cached_property
    def split(self) -> Split | None:
        """The gradient whose options the relaxation mixes most unlike.

        None if every gradient has one option.
        """
        allowed = np.isfinite(self.choices.error)
        several = allowed.sum(axis=1) > 1
        if not several.any():
            return None
        weights = self.relaxed.weights + _HAIR * allowed
        weights /= weights.sum(axis=1, keepdims=True)
        later = np.cumsum(self.relaxed.lambdas[::-1])[::-1]
        prices = self.relaxed.mu, later[:, None]
        means, spreads, worths = [], [], []
        for price, figures in zip(prices, (self.choices.error, self.choices.encode_s), strict=True):
            worth = np.where(allowed, price * np.where(allowed, figures, 0.0), 0.0)
            mean = (weights * worth).sum(axis=1)
            differ = np.where(allowed, worth, -np.inf).max(axis=1) > np.where(allowed, worth, np.inf).min(axis=1)
            spreads.append(np.where(differ, (weights * np.abs(worth - mean[:, None])).sum(axis=1), -1.0))
            means.append(mean)
            worths.append(worth)
        kind, gradient = np.unravel_index(np.argmax(spreads), (2, len(allowed)))
        if spreads[kind][gradient] >= 0:
            low = worths[kind][gradient] <= means[kind][gradient]
            if (allowed[gradient] & low).any() and (allowed[gradient] & ~low).any():
                return Split(int(gradient), low)
        gradient = np.argmax(several)
        return Split(int(gradient), np.arange(allowed.shape[1]) == np.argmax(allowed[gradient]))

    def at(self, found: Pass, label: int, node: int) -> Prices:
        """The best prices for what is left from a label on."""
        encode, finish, excess = (float(each[label]) for each in found.labels[:3])
        choices = _left(self.choices, node, encode, finish, excess)
        try:
            prices = self._priced(self._dual(choices))
        except InfeasibleError:
            prices = self._in_time(choices)
        lambdas = np.zeros(self.instance.size)
        lambdas[node:], lambdas[0] = prices.lambdas[1:], lambdas[0] + prices.lambdas[0]
        return prices._replace(lambdas=lambdas)

    def _dual(self, choices: Choices) -> DualBound:
        budget = self.room if self.timed else self.instance.time_budget_s
        limits = self.instance.fusion, self.instance.largest_bucket_bytes
        return dual_bound(choices, self.instance.goal, budget, *limits)

    def _priced(self, dual: DualBound) -> Prices:
        lambdas = _weights(dual.lambdas) if self.timed else np.maximum(0.0, dual.lambdas)
        credit = dual.mu * (self.room or 0.0) if self.timed else float(lambdas.sum()) * self.time_limit_s
        return Prices(lambdas, max(0.0, dual.mu), credit)

    def in_time(self) -> Prices:
        """Prices of the time alone."""
        return self._in_time(self.choices)

    def _in_time(self, choices: Choices) -> Prices:
        limits = self.instance.fusion, self.instance.largest_bucket_bytes
        return Prices(_weights(dual_bound(choices, "time", None, *limits).lambdas), 0.0, goal=False)


def _weights(lambdas: Floats) -> Floats:
    """Of sum 1, on which the bounds rest."""
    weights: Floats = np.maximum(0.0, lambdas)
    weights /= weights.sum()
    return weights


def _left(choices: Choices, node: int, encode: float, finish: float, excess: float) -> Choices:
    """The gradients from a node on, and before them one that has a label's figures as its only option."""
    none = np.full(choices.labels.shape[1] - 1, np.inf)

    def behind(figure: float, figures: Floats) -> Floats:
        return np.vstack((np.concatenate(([figure], none)), figures[node:]))

    alone = np.full(choices.labels.shape[1], -1)
    alone[0] = choices.labels.max() + 1
    return Choices(
        np.concatenate(([0.0], choices.ready_s[node:] + encode)),
        behind(0.0, choices.encode_s),
        behind(finish, choices.wire_s),
        behind(0.0, choices.launch_s),
        behind(excess, choices.error),
        np.concatenate(([1], choices.counts[node:])),
        np.vstack((alone, choices.labels[node:])),
        np.concatenate(([0.0], choices.bytes[node:])),
    )
