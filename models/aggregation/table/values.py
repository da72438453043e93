"""The functions behind lookup tables, in floating point and to many digits, and the best value of an entry.

On every machine the digits are the same: ``decimal`` rounds each step correctly. Values have 40 digits or more that are
those of the function, from 1e-100 on; smaller ones have no relative errors.
"""

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Literal

import numpy as np
import numpy.typing as npt

Name = Literal["log2", "log2-sum", "log2-difference", "exp2"]
Floats = npt.NDArray[np.float64]

DIGITS = decimal.Context(prec=60)
"""In which values of functions are calculated with."""
_CERTAIN = 40
"""Of these."""
_LN2 = Decimal(2).ln(DIGITS)
_LOG10_2 = Decimal("0.30103")
_FARTHEST = Decimal(400)
"""From here on 2^-u is below 1e-120."""
_NEAR_ONE = 2.0**-10
"""Distance from 1 within which a logarithm would lose digits as the difference of two."""


def float_values(name: Name, low: int, high: int, fraction_bits: int) -> Floats:
    """Values at the operands ``low`` to ``high``, each divided by ``2 ** fraction_bits``; shape (high - low + 1,)."""
    operand = np.arange(low, high + 1, dtype=np.float64)
    argument = np.ldexp(operand, -fraction_bits)
    match name:
        case "log2":
            above_one = np.arange(low - 2**fraction_bits, high + 1 - 2**fraction_bits, dtype=np.float64)
            above_one = np.ldexp(above_one, -fraction_bits)
            near = np.log1p(np.clip(above_one, -_NEAR_ONE, _NEAR_ONE)) / np.log(2.0)
            return np.asarray(np.where(np.abs(above_one) < _NEAR_ONE, near, np.log2(operand) - fraction_bits))
        case "log2-sum":
            return np.asarray(np.log1p(np.exp2(-argument)) / np.log(2.0))
        case "log2-difference":
            # Each form is accurate where the other one cancels.
            near = np.log(-np.expm1(-np.minimum(argument, 1.0) * np.log(2.0)))
            far = np.log1p(-np.exp2(-np.maximum(argument, 1.0)))
            return np.asarray(np.where(argument < 1.0, near, far) / np.log(2.0))
        case "exp2":
            return np.asarray(np.exp2(argument))


def exact_value(name: Name, operand: int, fraction_bits: int) -> Decimal:
    """The value at one operand, to 40 digits or more; for a context with :data:`DIGITS`."""
    argument = Decimal(operand) / 2**fraction_bits
    lost = _lost_beside_one(argument) if name in ("log2-sum", "log2-difference") else 0
    if lost <= DIGITS.prec - _CERTAIN:
        return _EXACT[name](argument)
    with decimal.localcontext(prec=DIGITS.prec + lost):
        value = _EXACT[name](argument)
    return +value


def _lost_beside_one(argument: Decimal) -> int:
    """Digits that 2^-u has behind the point before it has any, and that are lost where 1 is added to it."""
    return int(min(argument, _FARTHEST) * _LOG10_2)


def _log2(value: Decimal) -> Decimal:
    return value.ln() / _LN2


def _exp2(value: Decimal) -> Decimal:
    return (value * _LN2).exp()


_EXACT: dict[Name, Callable[[Decimal], Decimal]] = {
    "log2": _log2,
    "log2-sum": lambda u: _log2(1 + _exp2(-u)),
    "log2-difference": lambda u: _log2(1 - _exp2(-u)),
    "exp2": _exp2,
}


def best_values(least: Floats, most: Floats, relative: bool, step: float | None) -> tuple[Floats, Floats]:
    """For entries whose function values lie between ``least`` and ``most``: the best values, and their errors.

    The middle halves the largest absolute error, the harmonic mean the largest relative one; where values are multiples
    of ``step``, the better of the two beside it.
    """
    middle = least + 0.5 * (most - least)
    if relative:
        middle = 2.0 * least * (most / (least + most))
    if step is None:
        return middle, errors_of(middle, least, most, relative)
    below = np.floor(middle / step) * step
    error, error_above = (errors_of(each, least, most, relative) for each in (below, below + step))
    return np.where(error <= error_above, below, below + step), np.minimum(error, error_above)


def errors_of(value: Floats, least: Floats, most: Floats, relative: bool) -> Floats:
    """The largest error of each value over function values between ``least`` and ``most``, which are reached."""
    if relative:
        return np.maximum(np.abs(value - least) / np.abs(least), np.abs(most - value) / np.abs(most))
    return np.maximum(np.abs(value - least), np.abs(most - value))
