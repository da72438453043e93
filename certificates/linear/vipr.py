"""A tree as a file of VIPR's format 1.0, for checkers that others have written.

K. Cheung, A. Gleixner, D. Steffy, "Verifying integer programming results", IPCO 2017. The problem in the file is the
program with the room that its rows have, in fractions, of which the minimum is to be at least the claim less the
offset. Where columns have bounds only because the objective is at most the claim, that is a row of the problem too, the
last one: what is left out by it is no better than the claim.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from ddlopt.certificates.linear.check import Program
from ddlopt.certificates.linear.cuts import Cut, Sum, rounded, sum_of
from ddlopt.certificates.linear.plain import plain_tree
from ddlopt.certificates.linear.program import claim_limit

Bound = tuple[int, int]
"""Side (0 from below) and column."""
_Part = tuple[int, Fraction, Mapping[int, Fraction]]
"""A constraint, how often it counts, and its terms."""


def vipr_text(
    program: Program, nodes: Sequence[Sequence[Any]], comments: Sequence[str] = (), cuts: Sequence[Cut] = ()
) -> str:
    """The file for a tree that :func:`~ddlopt.certificates.linear.check.check_tree` accepts.

    Parameters
    ----------
    program : Program
        With the rows of the cuts.
    comments : sequence of str
        Lines for people.
    cuts : sequence
        How they are derived: Chvátal–Gomory cuts by rounding, those of mixed-integer rounding from two cases.
    """
    return _Writer(program, [(cut, sum_of(program, cut)) for cut in cuts]).text(plain_tree(program, nodes), comments)


@dataclass
class _Open:
    """A branching whose cases are being written: what is assumed in the present one, and what the first one proved."""

    column: int
    split: int
    assumed: int
    before: tuple[Bound, tuple[int, int] | None]
    first: tuple[int, int] | None = None


@dataclass
class _Writer:
    program: Program
    cuts: list[tuple[Cut, Sum]]
    constraints: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    bounds: dict[Bound, int] = field(default_factory=dict)
    sides: dict[tuple[int, int], int] = field(default_factory=dict)
    """Constraint of a side of a row; row -1 is the claim."""
    path: dict[Bound, tuple[int, int]] = field(default_factory=dict)
    """Limit and constraint of what is assumed in the present case."""

    def text(self, nodes: Sequence[Sequence[Any]], comments: Sequence[str]) -> str:
        """All sections."""
        program, target = self.program, self.program.claim - self.program.offset
        whole = [column for column, integer in enumerate(program.integer) if integer]
        needed = self._needed(nodes)
        stated = self._state(any(row < 0 for bound, (row, _) in program.implied.items() if bound in needed))
        for bound in program.implied:
            if bound in needed:
                self._imply(*bound)
        first = len(program.rows) - len(self.cuts)
        for place, (cut, added) in enumerate(self.cuts):
            self.sides[first + place, 0] = self._cut(cut[0], added, first + place)
        for _ in self._tree(nodes, target):
            pass
        return "\n".join(
            [
                *(f"% {comment}" for comment in comments),
                "VER 1.0",
                f"VAR {len(program.integer)}",
                *(f"x{column}" for column in range(len(program.integer))),
                f"INT {len(whole)}",
                *map(str, whole),
                "OBJ min",
                _terms((column, Fraction(value, program.unit)) for column, value in program.cost.items()),
                f"CON {len(self.constraints)} {stated}",
                *self.constraints,
                f"RTP range {target} inf",
                "SOL 0",
                f"DER {len(self.derived)}",
                *self.derived,
                "",
            ]
        )

    def _needed(self, nodes: Sequence[Sequence[Any]]) -> set[Bound]:
        """Bounds that cuts and leaves may use, and those that implied ones among them follow from."""
        needed = {(int(column in added.above), column) for _, added in self.cuts for column in added.parts}
        for node in nodes:
            if node[0] != "branch":
                reduced = self._reduced(node)
                needed.update((int(value < 0), column) for column, value in reduced.items() if value)
        for bound, (row, side) in reversed(list(self.program.implied.items())):
            if bound in needed:
                needed.update(each for each, _ in self._others(row, side, bound[1]))
        return needed

    def _terms_of(self, row: int) -> Sequence[tuple[int, int]]:
        return list(self.program.cost.items()) if row < 0 else self.program.rows[row][1]

    def _others(self, row: int, side: int, column: int) -> Iterator[tuple[Bound, int]]:
        """Bounds of the other columns of a row that imply one of ``column``, with their coefficients."""
        for other, value in self._terms_of(row):
            if other != column:
                yield (int((value > 0) != (side == 1)), other), value

    def _reduced(self, leaf: Sequence[Any]) -> dict[int, int]:
        """Costs less multiplied rows, in units of ``1 / (2**exponent unit)``."""
        kind, exponent, rows, multipliers = leaf
        cost = {} if kind == "farkas" else self.program.cost
        reduced = {column: value << exponent for column, value in cost.items()}
        for row, multiplier in zip(rows, multipliers, strict=True):
            for column, value in self.program.rows[row][1] if multiplier else ():
                reduced[column] = reduced.get(column, 0) - multiplier * value
        return reduced

    def _state(self, with_claim: bool) -> int:
        """Bounds and rows of the problem; how many bounds."""
        program = self.program
        for side, limits in ((0, program.lower), (1, program.upper)):
            for column, limit in enumerate(limits):
                if limit is not None and (side, column) not in program.implied:
                    self.bounds[side, column] = self._constrain(
                        "GL"[side], Fraction(limit, program.grid), f"1 {column} 1"
                    )
        count = len(self.constraints)
        for row in range(len(program.rows) - len(self.cuts)):
            low, terms, high = program.rows[row]
            told = _terms((column, Fraction(value, program.unit)) for column, value in terms)
            for side, limit in ((0, low), (1, high)):
                if limit is not None and side and low == high:
                    self.sides[row, 1] = self.sides[row, 0]
                elif limit is not None:
                    kind = "E" if low == high else "GL"[side]
                    self.sides[row, side] = self._constrain(kind, Fraction(limit, program.unit), told)
        if with_claim:
            limit = claim_limit(program.cutoff, program.offset, program.lost, program.unit)
            self.sides[-1, 1] = self._constrain("L", Fraction(limit, program.unit), "OBJ")
        return count

    def _constrain(self, kind: str, limit: Fraction, terms: str) -> int:
        self.constraints.append(f"c{len(self.constraints)} {kind} {limit} {terms}")
        return len(self.constraints) - 1

    def _derive(self, kind: str, limit: Fraction | int, terms: str, reason: str) -> int:
        place = len(self.constraints) + len(self.derived)
        self.derived.append(f"d{place} {kind} {limit} {terms} {{ {reason} }} -1")
        return place

    def _imply(self, side: int, column: int) -> None:
        """A bound from a row, less the other columns at theirs."""
        row, of = self.program.implied[side, column]
        own = next(value for each, value in self._terms_of(row) if each == column)
        # A row counts in multiples of 1 / unit, and so does its limit.
        parts = [(self.sides[row, of], Fraction(self.program.unit, own))]
        parts += [(self.bounds[bound], Fraction(-value, own)) for bound, value in self._others(row, of, column)]
        limit = Fraction((self.program.upper if side else self.program.lower)[column] or 0, self.program.grid)
        name = "rnd" if self.program.integer[column] else "lin"
        self.bounds[side, column] = self._derive("GL"[side], limit, f"1 {column} 1", _reason(name, parts))

    def _cut(self, kind: str, added: Sum, number: int) -> int:
        """The row of a cut, derived."""
        program, cut = self.program, rounded(self.program, kind, added)
        low, terms, _ = program.rows[number]
        row = {column: Fraction(value, program.unit) for column, value in terms}
        told = Fraction(low or 0, program.unit), _terms(row.items())
        # The row has the formula so many times.
        times = Fraction(2) ** cut.shift / program.unit
        sums = [
            (self.sides[each, side], Fraction(multiplier * program.unit, added.bottom), self._row(each))
            for each, multiplier, side in added.usual
            if multiplier
        ]
        if kind == "cg":
            whole = {column: Fraction(_sign(added, column) * value) for column, value in cut.parts.items()}
            right = cut.whole + 1 + self._at_bounds(whole, added)
            place = self._derive("G", right, _terms(whole.items()), self._why("rnd", sums, whole, added))
            return self._derive("G", *told, self._why("lin", [(place, times, whole)], row, added))
        split = {}
        for column, value in added.parts.items():
            if program.integer[column]:
                floor, rest = divmod(value, added.bottom)
                split[column] = Fraction(_sign(added, column) * (floor + (rest * program.grid > cut.remainder)))
        right = cut.whole + self._at_bounds(split, added)
        ends = []
        for above in (False, True):
            assumed = self._derive("LG"[above], right + above, _terms(split.items()), "asm")
            parts: list[_Part] = [(assumed, times * (cut.remainder if above else cut.remainder - cut.scale), split)]
            if not above:
                parts += [(place, times * cut.scale * many, terms) for place, many, terms in sums]
            for each, multiplier, limit in added.opposite:
                if multiplier:
                    sign, size = (-1 if multiplier > 0 else 1), cut.times * abs(multiplier)
                    kept = cut.long(size) - (0 if above else times * program.unit * size)
                    side = int(program.rows[each][0] != limit)
                    parts.append((self.sides[each, side], sign * Fraction(kept), self._row(each)))
            ends.append((self._derive("G", *told, self._why("lin", parts, row, added)), assumed))
        (one, first), (other, second) = ends
        return self._derive("G", *told, f"uns {one} {first} {other} {second}")

    def _row(self, row: int) -> Mapping[int, Fraction]:
        return {column: Fraction(value, self.program.unit) for column, value in self.program.rows[row][1]}

    def _at_bounds(self, terms: Mapping[int, Fraction], added: Sum) -> Fraction:
        """What terms add up to where columns are at the bounds from which a sum counts them."""
        program, found = self.program, Fraction(0)
        for column, value in terms.items():
            bound = (program.upper if column in added.above else program.lower)[column]
            found += value * Fraction(bound or 0, program.grid)
        return found

    def _why(
        self, name: str, parts: Sequence[_Part], wanted: Mapping[int, Fraction], added: Sum
    ) -> str:  # fmt: skip
        """The reason of a row: the parts, and bounds for what is missing to its terms."""
        rest = dict(wanted)
        for _, times, terms in parts:
            for column, value in terms.items():
                rest[column] = rest.get(column, Fraction(0)) - times * value
        bounds = [(self.bounds[int(column in added.above), column], value) for column, value in rest.items() if value]
        return _reason(name, [*((place, times) for place, times, _ in parts if times), *bounds])

    def _tree(self, nodes: Sequence[Sequence[Any]], target: Fraction) -> Iterator[None]:
        """Write the tree case by case: what is assumed, what leaves prove, and that one of two cases holds."""
        waiting: list[_Open] = []
        for node in nodes:
            yield
            if node[0] == "branch":
                waiting.append(self._assume(node[1], node[2]))
                continue
            proven = self._leaf(node, target)
            while waiting:
                case = waiting[-1]
                self._forget(case)
                if case.first is None:
                    case.first = proven, case.assumed
                    again = self._assume(case.column, case.split, above=True)
                    case.assumed, case.before = again.assumed, again.before
                    break
                waiting.pop()
                one, first = case.first
                proven = self._derive("G", target, "OBJ", f"uns {one} {first} {proven} {case.assumed}")

    def _assume(self, column: int, split: int, above: bool = False) -> _Open:
        bound: Bound = (0 if above else 1, column)
        limit = split + 1 if above else split
        assumed = self._derive("GL"[bound[0]], limit, f"1 {column} 1", "asm")
        before = self.path.get(bound)
        tighter = before is None or (limit > before[0] if above else limit < before[0])
        if tighter:
            self.path[bound] = limit, assumed
        return _Open(column, split, assumed, (bound, before))

    def _forget(self, case: _Open) -> None:
        bound, before = case.before
        if before is None:
            del self.path[bound]
        else:
            self.path[bound] = before

    def _leaf(self, node: Sequence[Any], target: Fraction) -> int:
        program = self.program
        kind, exponent, rows, multipliers = node
        scale = Fraction(1, 1 << exponent)
        parts, proven = [], Fraction(0)
        for row, multiplier in zip(rows, multipliers, strict=True):
            if multiplier:
                side = int(multiplier < 0)
                parts.append((self.sides[row, side], multiplier * scale))
                proven += multiplier * scale * Fraction(program.rows[row][2 * side], program.unit)
        for column, value in self._reduced(node).items():
            if value:
                bound = int(value < 0), column
                times, place = value * scale / program.unit, self.path.get(bound, (0, 0))[1]
                limits = program.upper if bound[0] else program.lower
                limit = (
                    Fraction(self.path[bound][0]) if bound in self.path else Fraction(limits[column] or 0, program.grid)
                )
                parts.append((place if bound in self.path else self.bounds[bound], times))
                proven += times * limit
        if kind == "farkas" or proven >= target:
            return self._derive("G", target, "OBJ", _reason("lin", parts))
        assert program.step is not None
        step = program.step
        told = _terms((column, Fraction(value, program.unit) / step) for column, value in program.cost.items())
        found = self._derive("G", proven, "OBJ", _reason("lin", parts))
        up = self._derive("G", ceil(proven / step), told, _reason("rnd", [(found, 1 / step)]))
        return self._derive("G", target, "OBJ", _reason("lin", [(up, step)]))


def _sign(added: Sum, column: int) -> int:
    return -1 if column in added.above else 1


def _terms(terms: Iterable[tuple[int, Fraction]]) -> str:
    known = [f"{column} {value}" for column, value in terms]
    return " ".join([str(len(known)), *known])


def _reason(name: str, parts: Sequence[tuple[int, Fraction]]) -> str:
    return " ".join([name, str(len(parts)), *(f"{place} {times}" for place, times in parts)])
