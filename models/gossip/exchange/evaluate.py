"""The independent check of exchange times: staleness is added up from the definition."""

import math
from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes, last_sent, staleness

_BITS = 64
"""Binary places of a square root in exact mode; of one below 1 as many from its first digit on."""


def evaluate_exchange(instance: ExchangeInstance, solution: ExchangeTimes, exact: bool = False) -> Evaluation:
    r"""Staleness, and what sends cost.

    Exact squared norms are rational numbers. Plain norms are none: with ``exact`` each is a rational number that is
    proven to be no less, by at most a part of :math:`2^{-63}` of it.

    Details: ``sends``, ``staleness``, and ``largest`` of a step.
    """
    if solution.times and solution.times[-1] >= instance.size:
        place = next(place for place, time in enumerate(solution.times) if time >= instance.size)
        late = Violation("send after the last step", f"times[{place}]", solution.times[place], instance.size - 1)
        return Evaluation(None, (late,))
    sends = len(solution.times)
    violations: tuple[Violation, ...] = ()
    if instance.sends is not None and sends > instance.sends:
        violations = (Violation("number of sends", "all steps", sends, instance.sends),)
    parts: list[Number] = (
        list(_exact_parts(instance, solution))
        if exact
        else staleness(instance.points, solution.times, instance.plain).tolist()
    )
    total: Number = sum(parts, Fraction(0)) if exact else math.fsum(parts)
    cost = Fraction(instance.send_cost or 0) * sends
    objective = total + (cost if exact else float(cost))
    return Evaluation(objective, violations, {"sends": sends, "staleness": total, "largest": max(parts)})


def _exact_parts(instance: ExchangeInstance, solution: ExchangeTimes) -> Iterator[Fraction]:
    rows = instance.points.tolist()
    for t, s in enumerate(last_sent(instance.size, solution.times).tolist()):
        square = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(rows[t], rows[s], strict=True)), Fraction(0))
        yield _root(square) if instance.plain else square


def _root(square: Fraction) -> Fraction:
    places = _BITS + max(0, square.denominator.bit_length() - square.numerator.bit_length()) // 2
    scaled = square * 4**places
    whole = math.isqrt(math.ceil(scaled))
    return Fraction(whole if whole * whole >= scaled else whole + 1, 2**places)
