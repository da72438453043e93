"""Good prices for the bounds of label setting: of the whole timeline, and of what is left from a label on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ddlopt.models.compression.choices import Choices, choices_of
from ddlopt.models.compression.timeline import CompressionInstance
from ddlopt.models.compression.timeline_dual import dual_bound
from ddlopt.models.compression.timeline_units import excess_room
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.compression.label_kernels import Floats
from ddlopt.solvers.compression.label_search import Pass, Prices

_HAIR = 1e-11
"""Relative room in the time budget for sums that differ in their last digits."""
_STEEPER = (0.0, 0.5, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Other prices of the error that are tried with the best weights of the times."""


@dataclass(frozen=True)
class Pricing:
    """Where prices come from.

    Parameters
    ----------
    instance : CompressionInstance
    """

    instance: CompressionInstance

    @cached_property
    def choices(self) -> Choices:
        """The options; errors are what exceeds the least of the gradient."""
        choices = choices_of(self.instance)
        return choices._replace(error=choices.error - choices.error.min(axis=1, keepdims=True))

    @property
    def timed(self) -> bool:
        """Whether the time is the objective."""
        return self.instance.goal == "time"

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
        """The time budget, with room for rounding."""
        budget = self.instance.time_budget_s
        return np.inf if budget is None else budget * (1 + _HAIR)

    def first(self) -> list[Prices]:
        """Prices for the whole timeline, the best bound first.

        Raises
        ------
        InfeasibleError
            If nothing keeps the time budget.
        """
        best = self._dual(self.choices, self.room)
        if self.timed:
            others = () if self.room is None else _STEEPER
            return [best, *(self._priced(best.lambdas, factor * best.mu) for factor in others)]
        return [best, self._in_time(self.choices)]

    def at(self, found: Pass, label: int, node: int) -> Prices:
        """The best prices for what is left from a label on."""
        encode, finish, excess = (float(each[label]) for each in found.labels[:3])
        choices = _left(self.choices, node, encode, finish, excess)
        try:
            prices = self._dual(choices, self.room)
        except InfeasibleError:
            prices = self._in_time(choices)
        lambdas = np.zeros(self.instance.size)
        lambdas[node:], lambdas[0] = prices.lambdas[1:], lambdas[0] + prices.lambdas[0]
        return prices._replace(lambdas=lambdas)

    def _dual(self, choices: Choices, room: float | None) -> Prices:
        budget = room if self.timed else self.instance.time_budget_s
        limits = self.instance.fusion, self.instance.largest_bucket_bytes
        dual = dual_bound(choices, self.instance.goal, budget, *limits)
        return self._priced(dual.lambdas, dual.mu)

    def _priced(self, lambdas: Floats, mu: float) -> Prices:
        credit = mu * (self.room or 0.0) if self.timed else float(lambdas.sum()) * self.time_limit_s
        return Prices(lambdas, mu, credit)

    def _in_time(self, choices: Choices) -> Prices:
        limits = self.instance.fusion, self.instance.largest_bucket_bytes
        return Prices(dual_bound(choices, "time", None, *limits).lambdas, 0.0, goal=False)


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
