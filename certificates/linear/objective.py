"""What a bound of a model says of the instance, without rounding, and which bound of the model that takes."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ddlopt.models.contracts import Formulation, Instance
from ddlopt.models.errors import NotApplicableError

_ROUNDED = Fraction(1, 10**12)
"""By how much a figure is weakened that a formulation gives in floating point whatever it is asked."""


class _Rational(Fraction):
    """A fraction that stays one beside floating-point numbers, which are read as the fractions that they are."""

    __array_ufunc__ = None  # NumPy's numbers leave the arithmetic to this class

    def _with(self, other: Any, operation: Callable[[Fraction, Fraction], Fraction]) -> Any:
        try:
            return _Rational(operation(Fraction(self), Fraction(other)))
        except TypeError:
            return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: one + two)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: one - two)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: two - one)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: one * two)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: one / two)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: two / one)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "_Rational":
        return _Rational(-Fraction(self))


def bound_of(formulation: Formulation, instance: Instance, maximised: bool, claim: Fraction) -> Fraction:
    """The bound on the instance's objective that a claim of its model proves.

    Parameters
    ----------
    maximised : bool
        Whether the model's objective is; a claim is of the one with its sign changed then.

    Raises
    ------
    NotApplicableError
        If the claim says nothing of the instance.
    """
    try:
        found: Any = formulation.objective_value(instance, _Rational(-claim if maximised else claim))  # type: ignore[arg-type]
    except ZeroDivisionError:
        raise NotApplicableError("the claim says nothing of the instance") from None
    if isinstance(found, Fraction):
        return Fraction(found)
    if not math.isfinite(found):
        raise NotApplicableError(f"the claim says of the instance that its objective is {found}")
    slack = abs(Fraction(found)) * _ROUNDED
    return Fraction(found) - slack if instance.sense == "minimize" else Fraction(found) + slack


def claim_for(formulation: Formulation, instance: Instance, maximised: bool, target: Fraction) -> Fraction:
    """The least claim that proves the instance's bound ``target``, or more: a floating-point number."""

    def proves(claim: float) -> bool:
        try:
            found = bound_of(formulation, instance, maximised, Fraction(claim))
        except NotApplicableError:
            return claim >= 0  # of a throughput, from which no finite time follows
        return found >= target if instance.sense == "minimize" else found <= target

    low, high = _order(-1e200), _order(1e200)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(_number(middle)) else (middle, high)
    return Fraction(_number(high))


def _order(value: float) -> int:
    """Whole numbers in the order of the floating-point ones."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(int(bits) & (2**63 - 1))


def _number(order: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", abs(order)))
    return float(value) if order >= 0 else -float(value)
