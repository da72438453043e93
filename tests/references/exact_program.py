"""Room for rounding and implied bounds of a program in fractions, row after row, as they are defined."""

from fractions import Fraction
from math import ceil, floor

ROUNDS = 20
"""Of looking for bounds of columns that have none."""


def loosened(model, claim):
    """Rows with room, bounds of columns with room and those that rows imply, and what costs may lose."""
    lower, upper = completed(model, model.rows, (model.lower, model.upper), claim, Fraction(0))
    largest = [max(abs(low or 0), abs(high or 0)) for low, high in zip(lower, upper, strict=True)]
    lost = room(model.cost, (model.offset,), largest)
    rows = []
    for low, terms, high in model.rows:
        more = room(terms, (low, high), largest)
        rows.append((None if low is None else low - more, terms, None if high is None else high + more))
    bounds = (
        [None if low is None else low - room((), (low,), largest) for low in model.lower],
        [None if high is None else high + room((), (high,), largest) for high in model.upper],
    )
    return rows, *completed(model, rows, bounds, claim, lost), lost


def room(terms, limits, largest):
    """2⁻⁴⁰ of all that a row adds up at most, rounded up at the sixtieth digit; 0 where all its numbers are whole."""
    known = [limit for limit in limits if limit is not None]
    if all(value.denominator == 1 for value in (*known, *(value for _, value in terms))):
        return Fraction(0)
    size = sum((abs(value) * largest[column] for column, value in terms), Fraction(0))
    size += max((abs(limit) for limit in known), default=Fraction(0))
    return Fraction(ceil(size * 2**60), 2**100)


def completed(model, rows, bounds, claim, lost):
    """Bounds of columns; where there are none, those that the rows and an objective up to ``claim`` imply."""
    lower, upper = list(bounds[0]), list(bounds[1])
    for column, whole in enumerate(model.integer):
        if whole and lower[column] is not None:
            lower[column] = Fraction(ceil(lower[column]))
        if whole and upper[column] is not None:
            upper[column] = Fraction(floor(upper[column]))
    rows = [(None, model.cost, claim - model.offset + lost), *rows]
    for _ in range(ROUNDS):
        changes = [_imply(row, lower, upper, model.integer) for row in rows]
        if not any(changes):
            break
    return lower, upper


def _imply(row, lower, upper, integer):
    low, terms, high = row
    changed = False
    for limit, sign in ((high, 1), (None if low is None else -low, -1)):
        for column, value in terms if limit is not None else ():
            times = sign * value
            bounds = upper if times > 0 else lower
            others = [
                sign * each * bound
                for other, each in terms
                if other != column and (bound := (lower if sign * each > 0 else upper)[other]) is not None
            ]
            if bounds[column] is not None or len(others) < len(terms) - 1:
                continue
            found = (limit - sum(others, Fraction(0))) / times
            if integer[column]:
                found = Fraction(floor(found) if times > 0 else ceil(found))
            scaled = found * 2**20
            bounds[column] = Fraction(ceil(scaled) if times > 0 else floor(scaled), 2**20)
            changed = True
    return changed
