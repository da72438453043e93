"""A timeline of lanes, and a claim, in whole numbers: times and errors rounded down, limits rounded up."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import let_pass

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Stages = Mapping[int, tuple[Fraction, Fraction]]
"""Of lanes that are passed: how long it is kept, and the launch, which fused gradients pay once."""
Option = tuple[str, Fraction, Stages, Fraction]
"""Label, encoding, stages, error."""

BITS = 32
"""Of what times and errors are compared with: sums of hundreds of figures are off by a ten-millionth of it."""
LARGEST = 2**34
"""No figure is kept larger, which is far beyond what is compared with: then no product overflows 64 bits."""


class Lanes(NamedTuple):
    """An instance and a claim in whole numbers.

    Parameters
    ----------
    ready : (n,) array
    encode, error : (n, m) arrays
        By gradient and place in its menu.
    busy, launch : (lanes, n, m) arrays
        0 where the lane is not passed.
    used : (lanes, n, m) array
        Whether it is.
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
    error: Ints
    busy: Ints
    launch: Ints
    used: Marks
    labels: Ints
    ends: Ints
    time_most: int
    error_most: int | None
    timed: bool
    time_exponent: int
    error_exponent: int


def lanes_of(
    ready_s: Sequence[Fraction],
    menus: Sequence[Sequence[Option]],
    ends: Sequence[int],
    time_most: Fraction,
    error_most: Fraction | None,
    timed: bool,
    lanes: int = 1,
) -> Lanes:
    """An instance in whole numbers.

    Parameters
    ----------
    ready_s : sequence of n Fraction
    menus : sequence of n menus
    ends : sequence of n int
    time_most, error_most : Fraction
        The claim, and what the check lets a budget be.
    lanes : int
        How many there are, in the order in which they are passed.
    """
    n, m = len(menus), max(map(len, menus))
    largest = max((option[3] for menu in menus for option in menu), default=Fraction(0))
    time_exponent, error_exponent = _exponent(time_most), _exponent(error_most or largest)
    encode, error = np.zeros((2, n, m), dtype=np.int64)
    busy, launch = np.zeros((2, lanes, n, m), dtype=np.int64)
    used, labels = np.zeros((lanes, n, m), dtype=np.bool_), np.full((n, m), -1)
    numbers: dict[str, int] = {}
    floor = cache(_floor)
    for place, menu in enumerate(menus):
        for choice, (label, encoding, stages, lost) in enumerate(menu):
            labels[place, choice] = numbers.setdefault(label, len(numbers))
            encode[place, choice], error[place, choice] = floor(encoding, time_exponent), floor(lost, error_exponent)
            for lane, figures in stages.items():
                used[lane, place, choice] = True
                for table, figure in zip((busy, launch), figures, strict=True):
                    table[lane, place, choice] = floor(figure, time_exponent)
    return Lanes(
        np.array([_floor(each, time_exponent) for each in ready_s]),
        encode,
        error,
        busy,
        launch,
        used,
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
    kept = None if budget is None else let_pass(Fraction(budget))
    if goal == "time":
        return claim, kept
    assert kept is not None
    return kept, claim


class Arcs(NamedTuple):
    """Messages from node to node; arrays over them in the last dimension, by tail; ``busy`` and ``used`` by lane."""

    tail: Ints
    head: Ints
    label: Ints
    ready: Ints
    encode: Ints
    error: Ints
    busy: Ints
    used: Marks

    def of(self, places: Ints | Marks) -> "Arcs":
        """Some of them."""
        return Arcs._make(each[..., places] for each in self)


def arcs_of(lanes: Lanes, allowed: Marks) -> Arcs:
    """The messages that there are with the options ``allowed`` (n, m)."""
    rows, places = np.nonzero(allowed & (lanes.labels >= 0))
    count, shape = len(lanes.busy), (len(lanes.ready), int(lanes.labels.max()) + 1)
    of_label = lanes.labels[rows, places]
    there = np.zeros(shape, dtype=np.bool_)
    there[rows, of_label] = True
    # Encoding, error, and of each lane how long it is kept, launches and uses; what adds up first.
    figures = np.concatenate((lanes.encode[None], lanes.error[None], lanes.busy, lanes.launch, lanes.used))
    by_label = np.zeros((len(figures), *shape), dtype=np.int64)
    by_label[:, rows, of_label] = figures[:, rows, places]
    added, largest = by_label[: 2 + count], by_label[2 + count :]
    found = []
    for first, end in enumerate(lanes.ends.tolist()):
        label = np.flatnonzero(there[first])
        last, at = np.nonzero(np.logical_and.accumulate(there[first:end, label], axis=0))
        sums = added[:, first:end, label].cumsum(axis=1)[:, last, at]
        most = np.maximum.accumulate(largest[:, first:end, label], axis=1)[:, last, at]
        sums[2:] += most[:count]
        columns = np.full_like(last, first), first + last + 1, label[at], lanes.ready[first + last]
        found.append(np.concatenate((np.stack(columns), np.minimum(sums, LARGEST), most[count:])))
    arcs = np.concatenate(found, axis=1)
    tail, head, label, ready, encode, error = arcs[:6]
    return Arcs(tail, head, label, ready, encode, error, arcs[6 : 6 + count], arcs[6 + count :] > 0)
