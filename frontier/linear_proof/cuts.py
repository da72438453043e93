"""Cutting planes at the root, from rows of the simplex tableau; the checker's own arithmetic says what each one is.

R. Gomory's mixed-integer cuts: of a basic whole column that is none, the row of the basis' inverse gives multipliers,
and the limits at which rows and columns stand say from which side they count. Rounded multipliers give a cut that is
true all the same; how much it cuts off is looked at with the rounded ones.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from ddlopt.certificates.linear import ExactModel, program_of
from ddlopt.certificates.linear.check import Program, Row
from ddlopt.certificates.linear.cuts import Strengthened, row_of, sum_of, with_cuts
from ddlopt.models.errors import RefutedError

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    rounds: int = 20
    """Of cuts; later ones, made from many before, have long numbers and close little."""
    part: float = 0.15
    """Of the time, in which cuts are looked for."""
    candidates: int = 80
    """Columns that are looked at in a round, those nearest to a half first: the others give shallow cuts."""
    taken: int = 40
    """Cuts of a round, the deepest first: more make relaxations slow."""
    gain: float = 0.01
    """Part of what is missing to the claim by which some rounds have to raise the bound, or they are the last ones."""
    patience: int = 3
    """How many rounds these are: one may gain nothing where the next does."""
    worth: float = 0.1
    """Part of what was missing that all cuts together have to close, or the tree is searched without them."""
    from_half: float = 0.49
    """A fractional part nearer to 0 or 1 makes a cut of numbers that are far apart."""
    deep: float = 1e-4
    """Least distance that a cut is deep: shallower ones cost rows and raise nothing."""
    alike: float = 0.95
    """Cosine of the angle between two cuts of which one is enough: nearly parallel ones cut off the same."""
    divisors: int = 120
    """Multipliers are tried as fractions with a divisor up to this before powers of two: cuts of few digits."""
    near: float = 1e-7
    """Of a whole number: what the simplex method's rounding leaves of a multiplier's fraction."""
    bits: tuple[int, ...] = (16, 40)
    """Of multipliers that are no such fractions: the fewest that cut nearly as deep."""
    noise: float = 1e-9
    """What the simplex method leaves where there should be 0: such multipliers are left out. Only steers the search."""
    left_of_depth: float = 0.8
    """Part of the depth at 40 bits that fewer bits have to keep: shorter numbers make checking faster."""


_EFFORT = Effort()


@dataclass
class _Pool:
    """All cuts that were made, and which of them are rows of the relaxation, in its order."""

    program: Program
    cuts: list[list[Any]] = field(default_factory=list)
    active: list[int] = field(default_factory=list)

    @property
    def rows(self) -> Strengthened:
        assert isinstance(self.program.rows, Strengthened)
        return self.program.rows

    @property
    def stated(self) -> int:
        """Rows of the model."""
        return len(self.rows) - len(self.cuts)


@dataclass(frozen=True)
class _Standing:
    """Sides at which rows stand that are not basic (1 is the upper limit), columns at upper bounds, basic columns."""

    sides: dict[int, int]
    above: frozenset[int]
    basic: frozenset[int]


def strengthened(
    model: ExactModel, claim: Fraction, highs: Any, time_limit: float | None
) -> tuple[Program, list[list[Any]]] | None:
    """The program with cuts, which ``highs`` has got as rows in the same order; None if they are not worth it.

    Parameters
    ----------
    highs : highspy.Highs
        The relaxation; where None is returned it may have other rows behind those of the model, to be deleted.
    """
    pool = _Pool(with_cuts(program_of(model, claim, fine=True), []))
    end = None if time_limit is None else time.perf_counter() + _EFFORT.part * time_limit
    first = _bound(highs)
    if first is None:
        return None
    bounds = [first]
    while len(bounds) <= _EFFORT.rounds and bounds[-1] < float(claim) and (end is None or time.perf_counter() < end):
        if not _round(model, pool, highs):
            break
        found = _bound(highs)
        if found is None:
            return None
        bounds.append(found)
        _drop_slack(pool, highs)
        if len(bounds) > _EFFORT.patience and found - bounds[-1 - _EFFORT.patience] < _EFFORT.gain * (
            float(claim) - found
        ):
            break
    if bounds[-1] - first < _EFFORT.worth * max(float(claim) - first, 0.0) or bounds[-1] == first:
        return None
    cuts, kept = only_needed(pool.cuts, pool.stated, {pool.stated + place for place in pool.active})
    _in_order(pool, highs, kept)
    return with_cuts(program_of(model, claim, fine=True), cuts), cuts


def only_needed(cuts: Sequence[Sequence[Any]], stated: int, used: set[int]) -> tuple[list[list[Any]], dict[int, int]]:
    """Cuts that are among the rows ``used``, and those that they are derived from; and their new row numbers."""
    needed = set(used)
    for place in range(len(cuts) - 1, -1, -1):
        if stated + place in needed:
            needed.update(cuts[place][2])
    kept = [place for place in range(len(cuts)) if stated + place in needed]
    number = {stated + place: stated + new for new, place in enumerate(kept)}

    def renamed(rows: Sequence[int]) -> list[int]:
        return [number.get(row, row) for row in rows]

    found = [
        [kind, divisor, renamed(rows), multipliers, renamed(opposite), above]
        for kind, divisor, rows, multipliers, opposite, above in (cuts[place] for place in kept)
    ]
    return found, number


def _bound(highs: Any) -> float | None:
    highs.run()
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value) if optimal else None


def _round(model: ExactModel, pool: _Pool, highs: Any) -> bool:
    """Add the deepest cuts of a round to the relaxation; whether there are any."""
    point = np.array(highs.getSolution().col_value)
    found: list[tuple[float, list[Any], Row, dict[int, float]]] = []
    standing = _standing(highs)
    for multipliers, part in _tableau(model, highs, standing, point):
        deepest = _cut_of(model, pool, multipliers, standing, part, point)
        if deepest is not None:
            found.append(deepest)
    found.sort(key=lambda each: -each[0])
    chosen: list[dict[int, float]] = []
    for _, cut, row, direction in found:
        if len(chosen) == _EFFORT.taken:
            break
        if any(sum(v * other.get(c, 0.0) for c, v in direction.items()) > _EFFORT.alike for other in chosen):
            continue
        chosen.append(direction)
        pool.active.append(len(pool.cuts))
        pool.cuts.append(cut)
        pool.rows.cuts.append(row)
        _add(pool.program, highs, row)
    return bool(chosen)


def _add(program: Program, highs: Any, row: Row) -> None:
    low, terms, _ = row
    assert low is not None
    values = {column: value / program.unit for column, value in terms}
    values = {column: value for column, value in values.items() if abs(value) > _EFFORT.noise}
    columns = np.fromiter(values, dtype=np.int32, count=len(values))
    figures = np.fromiter(values.values(), dtype=np.float64, count=len(values))
    highs.addRow(low / program.unit, highspy.kHighsInf, len(values), columns, figures)


def _drop_slack(pool: _Pool, highs: Any) -> None:
    """Take cuts that are no limit any more out of the relaxation."""
    status = highs.getBasis().row_status
    slack = [
        place for place in range(len(pool.active)) if status[pool.stated + place] == highspy.HighsBasisStatus.kBasic
    ]
    if slack:
        highs.deleteRows(len(slack), np.array([pool.stated + place for place in slack], dtype=np.int32))
        out = set(slack)
        pool.active = [each for place, each in enumerate(pool.active) if place not in out]


def _in_order(pool: _Pool, highs: Any, kept: dict[int, int]) -> None:
    """Rows of the relaxation behind those of the model as the numbers in ``kept`` are."""
    count = len(pool.active)
    highs.deleteRows(count, np.arange(pool.stated, pool.stated + count, dtype=np.int32))
    for row in sorted(kept, key=lambda each: kept[each]):
        _add(pool.program, highs, pool.rows[row])


def _standing(highs: Any) -> _Standing:
    basis, status = highs.getBasis(), highspy.HighsBasisStatus
    columns = list(enumerate(basis.col_status))
    return _Standing(
        {row: int(each == status.kUpper) for row, each in enumerate(basis.row_status) if each != status.kBasic},
        frozenset(column for column, each in columns if each == status.kUpper),
        frozenset(column for column, each in columns if each == status.kBasic),
    )


def _tableau(model: ExactModel, highs: Any, standing: _Standing, point: Vector) -> Iterator[tuple[Vector, float]]:
    """Multipliers of the relaxation's rows, and the fractional part of the whole column that they are for."""
    candidates = []
    for place, column in enumerate(np.array(highs.getBasicVariables()[1]).tolist()):
        if column >= 0 and model.integer[column]:
            part = float(point[column] - np.floor(point[column]))
            if abs(part - 0.5) < _EFFORT.from_half:
                candidates.append((abs(part - 0.5), place, part))
    for _, place, part in sorted(candidates)[: _EFFORT.candidates]:
        multipliers = np.array(highs.getBasisInverseRow(place)[1])
        multipliers[[row for row in range(len(multipliers)) if row not in standing.sides]] = 0.0
        multipliers[np.abs(multipliers) < _EFFORT.noise * max(1.0, np.abs(multipliers).max(initial=0.0))] = 0.0
        yield multipliers, part


def _cut_of(
    model: ExactModel,
    pool: _Pool,
    multipliers: Vector,
    standing: _Standing,
    part: float,
    point: Vector,
) -> tuple[float, list[Any], Row, dict[int, float]] | None:
    """The cut that a row of the tableau gives, with its depth and direction; None if it is not deep."""
    numbers = {
        int(place): place if place < pool.stated else pool.stated + pool.active[place - pool.stated]
        for place in np.flatnonzero(multipliers).tolist()
    }
    wanted = {}
    for place, row in numbers.items():
        value, side = float(multipliers[place]), standing.sides[place]
        if row < pool.stated and _is_whole(model, row):
            # Slacks of such a row are whole, so that whole multiples of it change nothing but how they are rounded.
            slack = (value if side else -value) % 1.0
            slack = slack if slack <= part else slack - 1.0
            value = slack if side else -slack
        if abs(value) > _EFFORT.noise:
            wanted[row] = (value, side)
    best = None
    for divisor in _divisors([value for value, _ in wanted.values()]):
        found = _tried(pool, wanted, standing, divisor, point)
        if found is not None and (best is None or found[0] * _EFFORT.left_of_depth > best[0]):
            best = found
    return best


def _tried(
    pool: _Pool, wanted: dict[int, tuple[float, int]], standing: _Standing, divisor: int, point: Vector
) -> tuple[float, list[Any], Row, dict[int, float]] | None:
    program = pool.program
    rows, whole, opposite = [], [], []
    for row, (value, side) in sorted(wanted.items()):
        multiplier = round(value * divisor)
        low, _, high = program.rows[row]
        usual = int(multiplier < 0)
        is_opposite = usual != side and low != high and (high if side else low) is not None
        if not multiplier or (high if usual != is_opposite else low) is None:
            continue
        rows.append(row)
        whole.append(multiplier)
        if is_opposite:
            opposite.append(row)
    cut: list[Any] = ["mir", divisor, rows, whole, opposite, _from_above(program, rows, whole, standing)]
    try:
        added = sum_of(program, cut)
        made = row_of(program, "mir", added)
    except RefutedError:
        return None
    low, terms, _ = made
    assert low is not None
    figures = {column: value / program.unit for column, value in terms}
    norm = sum(value * value for value in figures.values()) ** 0.5
    if not norm:
        return None
    depth = (low / program.unit - sum(value * float(point[column]) for column, value in figures.items())) / norm
    if depth < _EFFORT.deep:
        return None
    try:
        if row_of(program, "cg", added) == made:
            cut[0] = "cg"
    except RefutedError:
        pass
    return depth, cut, made, {column: value / norm for column, value in figures.items()}


def _from_above(program: Program, rows: list[int], multipliers: list[int], standing: _Standing) -> list[int]:
    """Columns that count from above: where they stand, and what is basic so that it costs nothing."""
    parts: dict[int, int] = {}
    for row, multiplier in zip(rows, multipliers, strict=True):
        for column, value in program.rows[row][1]:
            parts[column] = parts.get(column, 0) + multiplier * value
    found = []
    for column, value in sorted(parts.items()):
        wanted = column in standing.above
        if column in standing.basic and not program.integer[column]:
            wanted = value > 0
        known = program.lower[column] is not None, program.upper[column] is not None
        if value and known[1] and (wanted or not known[0]):
            found.append(column)
    return found


def _divisors(values: list[float]) -> Iterator[int]:
    """Divisors by which multipliers are whole, nearly; then powers of two."""
    if not values:
        return
    array = np.array(values)
    for divisor in range(1, _EFFORT.divisors + 1):
        times = array * divisor
        if np.abs(times - np.round(times)).max() < _EFFORT.near * divisor:
            yield divisor
            return
    for bits in _EFFORT.bits:
        yield 1 << bits


def _is_whole(model: ExactModel, row: int) -> bool:
    low, terms, high = model.rows[row]
    limits = [limit for limit in (low, high) if limit is not None]
    return all(value.denominator == 1 and model.integer[column] for column, value in terms) and all(
        limit.denominator == 1 for limit in limits
    )
