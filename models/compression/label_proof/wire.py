"""A timeline of one wire, and a claim, in whole numbers: times and errors rounded down, limits rounded up."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import FEASIBILITY_TOL

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Option = tuple[str, Fraction, Fraction, Fraction, Fraction]
"""Label, encoding, wire and decoding, launch, error."""

BITS = 32
"""Of what times and errors are compared with: sums of hundreds of figures are off by a ten-millionth of it."""
LARGEST = 2**34
"""No figure is kept larger, which is far beyond what is compared with: then no product overflows 64 bits."""


class Wire(NamedTuple):
    """An instance and a claim in whole numbers.

    Parameters
    ----------
    ready : (n,) array
    encode, wire, launch, error : (n, m) arrays
        By gradient and place in its menu.
    labels : (n, m) array
        Numbers of the labels, -1 where there is no option.
    ends : (n,) array
        One beyond the last gradient that a message from this one may have.
    time_most, error_most : int or None
        What a better plan stays below, or keeps where it is a budget; ``error_most`` is None without a budget.
    timed : bool
        Whether the time is the objective.
    time_exponent, error_exponent : int
        Of the units.
    """

    ready: Ints
    encode: Ints
    wire: Ints
    launch: Ints
    error: Ints
    labels: Ints
    ends: Ints
    time_most: int
    error_most: int | None
    timed: bool
    time_exponent: int
    error_exponent: int


def wire_of(
    ready_s: Sequence[Fraction],
    menus: Sequence[Sequence[Option]],
    ends: Sequence[int],
    time_most: Fraction,
    error_most: Fraction | None,
    timed: bool,
) -> Wire:
    """An instance in whole numbers.

    Parameters
    ----------
    ready_s : sequence of n Fraction
    menus : sequence of n menus
    ends : sequence of n int
    time_most, error_most : Fraction
        The claim, and what the check lets a budget be.
    """
    n, m = len(menus), max(map(len, menus))
    largest = max((option[4] for menu in menus for option in menu), default=Fraction(0))
    time_exponent, error_exponent = _exponent(time_most), _exponent(error_most or largest)
    tables = np.zeros((4, n, m), dtype=np.int64)
    labels = np.full((n, m), -1)
    numbers: dict[str, int] = {}
    exponents = (time_exponent, time_exponent, time_exponent, error_exponent)
    floors: dict[tuple[Fraction, int], int] = {}
    for place, menu in enumerate(menus):
        for choice, (label, *figures) in enumerate(menu):
            labels[place, choice] = numbers.setdefault(label, len(numbers))
            for table, figure, exponent in zip(tables, figures, exponents, strict=True):
                if (figure, exponent) not in floors:
                    floors[figure, exponent] = _floor(figure, exponent)
                table[place, choice] = floors[figure, exponent]
    encode, wire, launch, error = tables
    return Wire(
        np.array([_floor(each, time_exponent) for each in ready_s]),
        encode,
        wire,
        launch,
        error,
        labels,
        np.array(ends),
        -_floor(-time_most, time_exponent),
        None if error_most is None else -_floor(-error_most, error_exponent),
        timed,
        time_exponent,
        error_exponent,
    )


def _exponent(value: Fraction) -> int:
    """Of two, such that the value has :data:`BITS` bits."""
    return value.numerator.bit_length() - value.denominator.bit_length() - BITS if value > 0 else 0


def _floor(value: Fraction, exponent: int) -> int:
    found = (value / Fraction(2) ** exponent).__floor__()
    return min(found, LARGEST)


def most_of(
    goal: str, claim: Fraction, error_budget: float | None, time_budget_s: float | None
) -> tuple[Fraction, Fraction | None]:
    """Time and error of a better plan: below the claim, and within what the check lets a budget be."""
    budget = error_budget if goal == "time" else time_budget_s
    kept = None if budget is None else Fraction(budget) * (1 + Fraction(FEASIBILITY_TOL))
    if goal == "time":
        return claim, kept
    assert kept is not None
    return kept, claim


class Arcs(NamedTuple):
    """Messages from node to node; arrays over them, by tail."""

    tail: Ints
    head: Ints
    ready: Ints
    encode: Ints
    busy: Ints
    error: Ints


def arcs_of(wire: Wire, allowed: Marks) -> Arcs:
    """The messages that there are with the options ``allowed`` (n, m)."""
    rows, places = np.nonzero(allowed & (wire.labels >= 0))
    shape = len(wire.ready), int(wire.labels.max()) + 1
    there = np.zeros(shape, dtype=np.bool_)
    tables = np.zeros((4, *shape), dtype=np.int64)
    of_label = wire.labels[rows, places]
    there[rows, of_label] = True
    for table, figures in zip(tables, (wire.encode, wire.wire, wire.launch, wire.error), strict=True):
        table[rows, of_label] = figures[rows, places]
    found = []
    for first, end in enumerate(wire.ends.tolist()):
        label = np.flatnonzero(there[first])
        long = np.logical_and.accumulate(there[first:end, label], axis=0)
        encode, busy, error = (table[first:end, label].cumsum(axis=0) for table in (tables[0], tables[1], tables[3]))
        busy = busy + np.maximum.accumulate(tables[2][first:end, label], axis=0)
        last, at = np.nonzero(long)
        sums = [np.minimum(each[last, at], LARGEST) for each in (encode, busy, error)]
        found.append((np.full_like(last, first), first + last + 1, wire.ready[first + last], *sums))
    return Arcs(*(np.concatenate(column) for column in zip(*found, strict=True)))
