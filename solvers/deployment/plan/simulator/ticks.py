"""All durations that plans of an instance may have, as whole numbers of one unit: *ticks*.

Sums of ticks are kept modulo 2^128, in two words of 64 bits, beside sums of seconds in floating point. Where two sums
of seconds are far apart, floats say which is less; otherwise the difference of the words does, and exactly: floats err
by less than ``near_s``, and what is nearer than that differs by less than 2^127 ticks. So ends of tasks are in the
order of :func:`~ddlopt.models.deployment.plan.simulator.simulate.simulate`, which has fractions.

The unit is the largest of which all durations are multiples, if sums of it are small enough for that. Otherwise it is
larger, durations are rounded down, and sums count as the same where they may be, ``slack``: nearer than 1e-25 of a
step. Data would have to be made for that to hold of times that are not the same.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s, collective_bandwidth

Words = npt.NDArray[np.uint64]

_WORD = 2**64 - 1  # all bits of one
_NEAR_BITS = 125
"""Binary digits of the difference that words must tell, with room for what floats err."""
_MOST_BITS = 177
"""Of the product of a step in ticks and the number of its tasks: floats, of 53 digits, err by less then."""


class Ticks(NamedTuple):
    """Durations; the last axis has the upper and the lower word.

    Parameters
    ----------
    time : (operators, works, 2)
    reduce : (operators, device group choices, 2)
    moved : (tensors, rates, 2)
        Of a unit of the batch, without latency.
    sent : (operators, rates, 2)
        Of the gradient, with latency.
    latency : (2,)
    time_s, reduce_s : (operators, works), (operators, device group choices)
        The nearest floats.
    near_s : float
        Sums of seconds that differ by less are compared in words.
    slack : int
        Ticks by which sums that are the same may differ; 0 where durations are not rounded.
    """

    time: Words
    reduce: Words
    moved: Words
    sent: Words
    latency: Words
    time_s: npt.NDArray[np.float64]
    reduce_s: npt.NDArray[np.float64]
    near_s: float
    slack: np.uint64


def ticks_of(
    instance: DeploymentInstance,
    works: Sequence[tuple[str, int]],
    chosen: Sequence[tuple[int, ...]],
    rates: Sequence[float],
) -> Ticks:
    """Durations for device types and parts of the batch, choices of device groups, and bandwidths."""
    computing = [_lines(instance.shares, times) for operator in instance.operators for times in [operator.times_s]]
    latency = Fraction(instance.latency_s)
    per_byte = [1 / Fraction(rate) for rate in rates]
    moved = [[Fraction(tensor.size_bytes) / UNITS * each for each in per_byte] for tensor in instance.tensors]
    sent = [
        [Fraction(operator.gradient_bytes) * each + latency for each in per_byte] for operator in instance.operators
    ]
    reduce = _reduces(instance, chosen)
    used = [latency, *(each for rows in (moved, sent, reduce) for row in rows for each in row)]
    used += [each for lines in computing for own in lines.values() for line in own for each in line]
    per_s = math.lcm(*{each.denominator for each in used})

    def ticks(exact: Fraction) -> int:
        return exact.numerator * (per_s // exact.denominator)

    pieces = [_piece(instance.shares, units) for _, units in works]
    time = []
    for lines in computing:
        known = {kind: [(ticks(fixed), ticks(slope)) for fixed, slope in own] for kind, own in lines.items()}
        row = []
        for (kind, units), piece in zip(works, pieces, strict=True):
            fixed_ticks, slope_ticks = known[kind][piece]
            row.append(max(0, fixed_ticks + slope_ticks * units))
        time.append(row)
    reduces, moves, sends = ([[ticks(each) for each in row] for row in table] for table in (reduce, moved, sent))
    tasks, longest = _most(instance, time, reduces, moves, sends, ticks(latency))
    shift = max(0, (tasks * longest).bit_length() - _MOST_BITS)
    # Rounding that of a unit of the batch counts as often as there are units.
    slack = np.uint64(2 * tasks * UNITS if shift else 0)
    time_s, reduce_s = (
        np.array([[_quotient(each, per_s) for each in row] for row in table]) for table in (time, reduces)
    )
    return Ticks(
        _words(time, shift),
        _words(reduces, shift),
        _words(moves, shift),
        _words(sends, shift),
        _words([[ticks(latency)]], shift)[0, 0],
        time_s,
        reduce_s,
        _quotient(1 << (_NEAR_BITS + shift), per_s),
        slack,
    )


def _lines(
    shares: Sequence[float], times_s: dict[str, tuple[float, ...]]
) -> dict[str, list[tuple[Fraction, Fraction]]]:
    """By device type the straight lines of :func:`~.time_at`: seconds for no unit of the batch, and for each."""
    at = [Fraction(share) * UNITS for share in shares]
    found = {}
    for kind, times in times_s.items():
        exact = [Fraction(time) for time in times]
        if len(shares) == 1:
            found[kind] = [(Fraction(), exact[0] / UNITS)]
            continue
        slopes = [(high - low) / (above - below) for (high, low), (above, below) in zip(
            pairwise(exact), pairwise(at), strict=True)]  # fmt: skip
        found[kind] = [
            (low - slope * below, slope) for low, slope, below in zip(exact[1:], slopes, at[1:], strict=True)
        ]
    return found


def _piece(shares: Sequence[float], units: int) -> int:
    """Which of these lines is for a part of the batch."""
    share = Fraction(units, UNITS)
    return next((k for k, above in enumerate(shares[1:]) if share >= Fraction(above)), max(0, len(shares) - 2))


def _reduces(instance: DeploymentInstance, chosen: Sequence[tuple[int, ...]]) -> list[list[Fraction]]:
    known: dict[tuple[float, float], Fraction] = {}
    rates = [collective_bandwidth(instance, each) for each in chosen]
    rows = []
    for operator in instance.operators:
        row = []
        for rate, each in zip(rates, chosen, strict=True):
            key = operator.gradient_bytes, rate
            if key not in known:
                known[key] = Fraction(all_reduce_s(instance, each, Fraction(operator.gradient_bytes), Fraction))
            row.append(known[key])
        rows.append(row)
    return rows


def _most(
    instance: DeploymentInstance,
    time: list[list[int]],
    reduce: list[list[int]],
    moved: list[list[int]],
    sent: list[list[int]],
    latency: int,
) -> tuple[int, int]:
    """Of any plan: how many tasks there are at most, and ticks of all of them together."""
    devices = instance.devices
    tasks, ticks = 8, 0
    for place in range(len(instance.operators)):
        tasks += 3 * devices + 1
        ticks += devices * (max(time[place]) + 2 * max(sent[place])) + max(reduce[place])
    for tensor, row in zip(instance.tensors, moved, strict=True):
        tasks += 2 * devices * len(tensor.consumers)
        ticks += 2 * devices * len(tensor.consumers) * (max(row) * UNITS + latency)
    return tasks, ticks


def _words(table: Sequence[Sequence[int]], shift: int) -> Words:
    columns = len(table[0]) if table else 1
    found = np.zeros((len(table), columns, 2), np.uint64)
    for i, row in enumerate(table):
        for j, each in enumerate(row):
            ticks = each >> shift
            found[i, j] = (ticks >> 64) & _WORD, ticks & _WORD
    return found


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf
