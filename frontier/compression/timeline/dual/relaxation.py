"""The dual bound of a timeline where options add up, each by itself: the prices of the linear relaxation.

See :mod:`ddlopt.frontier.compression.timeline.dual.bound`, which has the mathematics and is what to call.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.compression.timeline.dual.kernels import Program, maximise
from ddlopt.models.compression.timeline.choices import Choices, paths
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import let_pass_at_most

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Relative gap of the cutting planes: finer than the check, so that it costs the bound nothing.
_TOLERANCE = 1e-10


class DualBound(NamedTuple):
    """A bound and its multipliers.

    Parameters
    ----------
    value : float
        In seconds for goal ``time``, an error for goal ``error``.
    lambdas : (n,) array
        Goal ``time``: of sum 1. Goal ``error``: error per second.
    mu : float
        Goal ``time``: seconds per error. Goal ``error``: 1.
    weights : (n, m) array
        How the linear relaxation mixes the options, nearly.
    """

    value: float
    lambdas: Floats
    mu: float
    weights: Floats


def option_prices(choices: Choices, wire: Floats, lambdas: Floats, mu: float) -> Floats:
    """(n, m) what options cost at the multipliers, in the goal's unit; infinite where there is none.

    ``wire``: see :func:`least_occupation_s`. A choice whose sum exceeds that of the cheapest options by x is no better
    than the bound plus x.
    """
    upto, since = np.cumsum(lambdas), np.cumsum(lambdas[::-1])[::-1]
    there = np.isfinite(choices.error)
    encode, wire, error = (np.where(there, each, 0.0) for each in (choices.encode_s, wire, choices.error))
    return np.where(there, since[:, None] * encode + upto[:, None] * wire + mu * error, np.inf)


def least_occupation_s(choices: Choices, fusion: bool, largest_bucket_bytes: float | None = None) -> Floats:
    """(n, m) seconds of the wire that an option adds to its message at least, as the module explains."""
    if not fusion:
        return choices.occupation_s
    alone = np.zeros(len(choices.ready_s), dtype=bool)
    limit = np.inf if largest_bucket_bytes is None else largest_bucket_bytes
    held, shared = np.inf, set[int]()
    for k in range(len(alone) - 1, -1, -1):
        own = set(choices.labels[k, : choices.counts[k]].tolist())
        held, shared = held + choices.bytes[k], shared & own
        if held > limit or not shared:
            alone[k], held, shared = True, choices.bytes[k], own
    launch = np.where(np.isfinite(choices.launch_s), choices.launch_s, 0.0)
    return choices.wire_s + np.where(alone[:, None], launch, 0.0)


def affordable(choices: Choices, budget: float | None) -> Bools:
    """(n, m) whether an option exists and leaves enough of an error budget for the others' least errors."""
    least = choices.error.min(axis=1)
    left = np.inf if budget is None else allowed(budget) + _rounding(len(least)) * least.sum() - least.sum()
    kept: Bools = np.isfinite(choices.error) & (choices.error - least[:, None] <= left)
    return kept


def time_bound(choices: Choices, wire: Floats, budget: float | None) -> DualBound:
    """For goal ``time``; ``wire``: see :func:`least_occupation_s`. Options of infinite error are left out."""
    least = choices.error.min(axis=1)
    kept = np.isfinite(choices.error)
    excess = choices.error - least[:, None]
    left = np.inf if budget is None else allowed(budget) - least.sum()
    if left < 0:
        raise InfeasibleError(
            f"no choice keeps the error budget of {budget:.12g}: all have at least {least.sum():.12g}"
        )
    kept &= excess <= left + _rounding(len(least)) * least.sum()
    most = np.where(kept, excess, 0.0).max(axis=1).sum()
    limited = 0 < left < most
    unit = _longest_path(choices.ready_s, _means(choices.encode_s, kept), _means(wire, kept)) or 1.0
    encode, busy = choices.encode_s / unit, wire / unit
    fixed = encode.copy()
    fixed[-1] += busy[-1]
    spent = excess / left if limited else np.zeros(kept.shape)
    program = _program(kept, choices.ready_s / unit, encode, busy, fixed, spent, -1.0, False, limited)
    lambdas, price, weights = _multipliers(program, kept)
    mu = price * unit / left if limited else 0.0
    lambdas /= lambdas.sum()
    prices = np.where(kept, option_prices(choices, wire, lambdas, mu), np.inf).min(axis=1)
    credit = mu * allowed(budget) if limited and budget is not None else 0.0
    total = less_rounding(lambdas @ choices.ready_s + prices.sum(), credit, len(lambdas))
    return DualBound(total / lambdas.sum(), lambdas, mu, weights)


def error_bound(choices: Choices, wire: Floats, budget: float) -> DualBound:
    """For goal ``error``, where it is not known whether anything keeps the budget."""
    least = choices.error.min(axis=1)
    kept = np.isfinite(choices.error)
    excess = choices.error - least[:, None]
    unit = np.where(kept, excess, 0.0).max(axis=1).sum() or 1.0
    encode, busy = choices.encode_s / budget, wire / budget
    spent = encode.copy()
    spent[-1] += busy[-1]
    ready = choices.ready_s / budget
    program = _program(kept, ready, encode, busy, excess / unit, spent, ready[-1] - 1.0, True, True)
    lambdas, _, weights = _multipliers(program, kept)
    lambdas *= unit / budget
    prices = option_prices(choices, wire, lambdas, 1.0).min(axis=1)
    credit = lambdas.sum() * allowed(budget)
    value = less_rounding(lambdas @ choices.ready_s + prices.sum(), credit, len(lambdas))
    free = less_rounding(least.sum(), 0.0, len(least))
    if value <= free:
        value, lambdas = free, np.zeros(len(least))
    return DualBound(value, lambdas, 1.0, weights)


def allowed(budget: float) -> float:
    """A budget as the bounds take it."""
    return let_pass_at_most(budget)


def _rounding(terms: int) -> float:
    """Relative error of sums of as many terms, of one sign, each a few operations from the data."""
    return (4 * terms + 16) * float(np.finfo(float).eps)


def less_rounding(plus: float, minus: float, terms: int) -> float:
    """A difference, less what rounding may have added to it."""
    return float(plus - minus - _rounding(terms) * (plus + minus))


def _means(figures: Floats, kept: Bools) -> Floats:
    """(n,) the mean of the options kept."""
    means: Floats = np.where(kept, figures, 0.0).sum(axis=1) / kept.sum(axis=1)
    return means


def _longest_path(ready: Floats, encode: Floats, wire: Floats) -> float:
    return float(paths(ready, encode, wire).max())


def _program(
    kept: Bools,
    ready: Floats,
    encode: Floats,
    wire: Floats,
    fixed: Floats,
    priced: Floats,
    gain: float,
    free_last: bool,
    has_price: bool,
) -> Program:
    """The options kept, one after the other."""
    firsts = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    wire = wire.copy()
    wire[-1] = 0.0
    return Program(firsts, encode[kept], wire[kept], fixed[kept], priced[kept], ready, gain, free_last, has_price)


def _multipliers(program: Program, kept: Bools) -> tuple[Floats, float, Floats]:
    """Weights of the gradients, the price p, and the options' weights."""
    prices, price, mixed = maximise(program, _TOLERANCE)
    weights = np.zeros(kept.shape)
    weights[kept] = mixed
    return np.maximum(0.0, np.diff(prices)), max(0.0, price), weights
