"""All durations that plans of an instance may have, as whole numbers of one unit: *ticks*.

A tick is a power of two of seconds, so short that all that any plan does takes nearly 2^126 of them, and ticks have two
words of 64 bits. Durations are rounded down, and sums count as the same where they may be, ``slack``: nearer than some
1e-30 of all that a plan does. So ends of tasks are in the order of
:func:`~ddlopt.models.deployment.plan.simulator.simulate.simulate`, which has fractions: data would have to be made for
times to be so near and not the same.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, time_at
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s, collective_bandwidth

Words = npt.NDArray[np.uint64]
Rows = list[list[Fraction]]

FINER = 34
"""Binary digits that ticks of a unit of the batch have beyond those of others: there are not many more units."""
_BITS = 126
"""Of all ticks together: differences have a sign besides, and ends are up to twice as large as rounded powers say."""
_WORD = 2**64 - 1  # all bits of one


class Ticks(NamedTuple):
    """Durations; the last axis has the upper and the lower word.

    Parameters
    ----------
    time : (operators, works, 2)
    reduce : (operators, device group choices, 2)
    moved : (tensors, rates, 2)
        Of a unit of the batch, without latency, times 2^``FINER``.
    sent : (operators, rates, 2)
        Of the gradient, with latency.
    latency : (2,)
    scale_s : float
        Seconds of 2^64 ticks.
    slack : int
        Ticks by which sums that are the same may differ.
    """

    time: Words
    reduce: Words
    moved: Words
    sent: Words
    latency: Words
    scale_s: float
    slack: np.uint64


def ticks_of(
    instance: DeploymentInstance,
    works: Sequence[tuple[str, int]],
    chosen: Sequence[tuple[int, ...]],
    rates: Sequence[float],
) -> Ticks:
    """Durations for device types and parts of the batch, choices of device groups, and bandwidths."""
    latency, per_byte = Fraction(instance.latency_s), [1 / Fraction(rate) for rate in rates]
    time = [
        [Fraction(time_at(instance.shares, each.times_s[kind], units, Fraction)) for kind, units in works]
        for each in instance.operators
    ]
    whole = [[Fraction(tensor.size_bytes) * each for each in per_byte] for tensor in instance.tensors]
    sent = [[Fraction(own.gradient_bytes) * each + latency for each in per_byte] for own in instance.operators]
    reduce = _reduces(instance, chosen)
    tasks, all_s = _most(instance, time, reduce, whole, sent, latency)
    exponent = _exponent(all_s) - _BITS
    moved = [[each / UNITS for each in row] for row in whole]
    return Ticks(
        _words(time, exponent),
        _words(reduce, exponent),
        _words(moved, exponent - FINER),
        _words(sent, exponent),
        _words([[latency]], exponent)[0, 0],
        math.ldexp(1.0, max(-1074, min(exponent + 64, 1023))),
        np.uint64(3 * tasks),
    )


def _reduces(instance: DeploymentInstance, chosen: Sequence[tuple[int, ...]]) -> Rows:
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


def _exponent(value: Fraction) -> int:
    """That of a power of two above a number."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def _most(
    instance: DeploymentInstance, time: Rows, reduce: Rows, whole: Rows, sent: Rows, latency: Fraction
) -> tuple[int, Fraction]:
    """Of any plan: how many tasks there are at most, and more than all of them together take."""
    devices = instance.devices

    def above(row: list[Fraction]) -> Fraction:
        # Powers of two, as sums of other fractions take long.
        most = max(row)
        return Fraction(2) ** _exponent(most) if most else most

    tasks, all_s = 8, Fraction(1, 2**1000)
    for place in range(len(instance.operators)):
        tasks += 3 * devices + 1
        all_s += devices * (above(time[place]) + 2 * above(sent[place])) + above(reduce[place])
    for tensor, row in zip(instance.tensors, whole, strict=True):
        transfers = 2 * devices * len(tensor.consumers)
        tasks += transfers
        all_s += transfers * (above(row) + above([latency]))
    return tasks, all_s


def _words(table: Rows, exponent: int) -> Words:
    """Ticks of 2^``exponent`` seconds, rounded down."""
    found = np.zeros((len(table), len(table[0]) if table else 1, 2), np.uint64)
    for i, row in enumerate(table):
        for j, each in enumerate(row):
            ticks = (each.numerator << max(0, -exponent)) // (each.denominator << max(0, exponent))
            found[i, j] = (ticks >> 64) & _WORD, ticks & _WORD
    return found
