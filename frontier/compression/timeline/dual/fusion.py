"""The dual bound of a timeline where gradients may be fused: a shortest path through gradients and labels.

See :mod:`ddlopt.frontier.compression.timeline.dual.bound`, which has the mathematics and is what to call.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.compression.timeline.dual.relaxation import (
    DualBound,
    affordable,
    allowed,
    error_bound,
    less_rounding,
    option_prices,
    time_bound,
)
from ddlopt.models.compression.family import Goal
from ddlopt.models.compression.timeline.choices import Choices, paths
from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAUNCH_PARTS = (0.0, 0.5)
"""Parts of its launch that a gradient pays where weights are looked for."""
_STEPS = 25
"""In the search for a price."""


class _Value(NamedTuple):
    """The bound at some multipliers, and whether what it counts on exceeds the budget."""

    bound: float
    exceeds: bool


def fused_bound(choices: Choices, wire: Floats, goal: Goal, budget: float | None) -> DualBound:
    """The better of the plain bound, with ``wire`` as occupation, and of that by shortest paths.

    The multipliers are the best found for shortest paths.
    """
    plain: DualBound | None = None
    found: DualBound | None = None
    for launch_part in _LAUNCH_PARTS:
        launch = np.where(np.isfinite(choices.launch_s), choices.launch_s, 0.0)
        paid = np.maximum(wire, choices.wire_s + launch_part * launch)
        guess = (
            time_bound(choices, paid, budget)
            if goal == "time" or budget is None
            else error_bound(choices, paid, budget)
        )
        plain = plain or guess
        tuned = _tuned(choices, goal, budget, guess)
        if found is None or tuned.value > found.value:
            found = tuned
    assert plain is not None
    assert found is not None
    return found._replace(value=max(plain.value, found.value), weights=plain.weights)


def _launch_prices(choices: Choices, upto: Floats) -> Floats:
    launches: Floats = upto[:, None] * np.where(np.isfinite(choices.launch_s), choices.launch_s, 0.0)
    return launches


def _tuned(choices: Choices, goal: Goal, budget: float | None, guess: DualBound) -> DualBound:
    """The guess with its best price of the error, or, with goal ``error``, of time."""
    if budget is None:
        return guess._replace(value=_value(choices, goal, budget, guess).bound)
    unit = guess.mu or (guess.value / budget if budget > 0 else 0.0)
    best, low, high, doubling = guess._replace(value=-np.inf), 0.0, 1.0, True
    for _ in range(_STEPS):
        factor = high if doubling else (low + high) / 2
        changed = {"mu": factor * unit} if goal == "time" else {"lambdas": factor * guess.lambdas}
        tried = guess._replace(**changed)
        found = _value(choices, goal, budget, tried)
        if found.bound > best.value:
            best = tried._replace(value=found.bound)
        if found.exceeds:
            low = factor
            high = 2 * high if doubling else high
        else:
            high, doubling = factor, False
    return best


def _value(choices: Choices, goal: Goal, budget: float | None, at: DualBound) -> _Value:
    """The bound by a shortest path."""
    upto = np.cumsum(at.lambdas)
    kept = affordable(choices, budget if goal == "time" else None)
    prices = np.where(kept, option_prices(choices, choices.wire_s, at.lambdas, at.mu), np.inf)
    launches = _launch_prices(choices, upto)
    after = _rests(prices, launches, choices.labels, int(choices.labels.max()) + 1)
    plus = float(after[0].min() + at.lambdas @ choices.ready_s)
    terms = 2 * len(upto)
    if budget is None:
        return _Value(less_rounding(plus, 0.0, terms) / float(upto[-1]), False)
    chosen, last = _path(prices, launches, choices.labels, after)
    picked = np.arange(len(chosen)), chosen
    if goal == "time":
        bound = less_rounding(plus, at.mu * allowed(budget), terms) / float(upto[-1])
        return _Value(bound, bool(choices.error[picked].sum() > budget))
    wire = choices.wire_s[picked] + np.where(last, choices.launch_s[picked], 0.0)
    ends = paths(choices.ready_s, choices.encode_s[picked], wire)
    bound = less_rounding(plus, float(upto[-1]) * allowed(budget), terms)
    return _Value(bound, bool(at.lambdas @ ends > upto[-1] * budget))


@kernel("(const(f8[:, ::1]), const(f8[:, ::1]), const(i8[:, ::1]), i8)")
def _rests(prices: Floats, launches: Floats, labels: Ints, count: int) -> Floats:
    """(n + 1, labels) what is left after the first k gradients costs at least, by the label of the k-th.

    That is the launch of the k-th one's bucket, unless that goes on, and all later gradients; infinite for labels that
    the k-th cannot have.

    Parameters
    ----------
    prices : (n, m) array
        Of options without launching, infinite where one is not to be chosen.
    launches, labels : (n, m) arrays
    count : int
        Labels.
    """
    n, m = prices.shape
    after = np.full((n + 1, count), np.inf)
    fresh = 0.0
    for k in range(n, -1, -1):
        if k < n:
            fresh = np.inf
            for o in range(m):
                if prices[k, o] < np.inf:
                    fresh = min(fresh, prices[k, o] + after[k + 1, labels[k, o]])
        if k == 0:
            after[0] = fresh
            break
        for o in range(m):
            if prices[k - 1, o] < np.inf:
                after[k, labels[k - 1, o]] = fresh + launches[k - 1, o]
        if k < n:
            for o in range(m):
                label = labels[k, o]
                if prices[k, o] < np.inf and after[k, label] < np.inf:
                    after[k, label] = min(after[k, label], prices[k, o] + after[k + 1, label])
    return after


@kernel("(const(f8[:, ::1]), const(f8[:, ::1]), const(i8[:, ::1]), f8[:, ::1])")
def _path(prices: Floats, launches: Floats, labels: Ints, after: Floats) -> tuple[Ints, Bools]:
    """Options of a shortest path, and which gradients are the last of a bucket."""
    n, m = prices.shape
    chosen, last = np.zeros(n, np.int64), np.ones(n, np.bool_)
    for k in range(n):
        least = np.inf
        for o in range(m):
            if prices[k, o] == np.inf:
                continue
            cost = prices[k, o] + after[k + 1, labels[k, o]]
            joins = k > 0 and labels[k, o] == labels[k - 1, chosen[k - 1]]
            if k > 0 and not joins:
                cost += launches[k - 1, chosen[k - 1]]
            if cost < least:
                least, chosen[k] = cost, o
                if k > 0:
                    last[k - 1] = not joins
    return chosen, last
