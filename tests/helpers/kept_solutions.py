"""Whether the model of a formulation has a solution, or one that is at least as good: by its rows in rational numbers.

This is what a certificate takes for granted: a bound of the model is one of the instance as the model contains every
solution of it, or one that is no worse.
"""

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np
import pyomo.environ as pyo
from scipy.sparse import csr_array, eye_array

from ddlopt.certificates.linear import exact_model
from ddlopt.certificates.linear.objective import bound_of
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.exact import build_model

ROOM = Fraction(1, 2**29)
"""Part of one and all that a row adds up by which it may be missed.

A coefficient is rounded to 2^-53 of itself, those that are sums of thousands of figures to 2^-42, and what is
negligible is left out. Points are exact where they can be (:meth:`Model._exact`); HiGHS holds rows to half of this.
"""
_WHOLE, _REAL = (int(each) for each in (highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous))
WORSE = Fraction(1, 10**7)
"""By how much of itself the objective of the model may miss that of the solution: both are sums in floating point."""


@dataclass(frozen=True)
class Kept:
    """What the model makes of a solution.

    Parameters
    ----------
    value : Fraction or None
        The best objective, as the instance counts it, of a point of the model with the solution's decisions; None if
        the model has no such point.
    filled : bool
        Whether the start gave a value to every column, so that nothing was left to a solver.
    broken : str
        The worst row, for people, where there is a point and it misses a row by more than its room.
    """

    value: Fraction | None
    filled: bool = False
    broken: str = ""


class Model:
    """The model of an instance, built once for many solutions; ``room`` as :data:`ROOM`."""

    def __init__(self, formulation, instance, room=ROOM):
        self.formulation, self.instance, self.room = formulation, instance, room
        self.built = build_model(instance.family, formulation, instance)
        self.block = self.built.component(instance.family)
        self.exact = exact_model(self.built)
        columns = {}
        for component in self.built.component_objects(pyo.Var, active=True):
            columns.update((id(each), each) for each in component.values())
        self.columns = list(columns.values())
        self.lower = np.array([-np.inf if each is None else float(each) for each in self.exact.lower])
        self.upper = np.array([np.inf if each is None else float(each) for each in self.exact.upper])
        self.whole = np.array(self.exact.integer, dtype=bool)
        self.row_lower = np.array([-np.inf if low is None else float(low) for low, _, _ in self.exact.rows])
        self.row_upper = np.array([np.inf if high is None else float(high) for _, _, high in self.exact.rows])
        self.matrix = _matrix(self.exact)
        self.highs = _highs(self)

    def best(self):
        """The optimum of the whole model, as the instance counts it; None if it has no point."""
        return self._solved(self.lower, self.upper).value

    def of(self, solution):
        """What the model makes of a solution whose decisions its start sets."""
        for each in self.columns:
            if not each.fixed:
                each.set_value(None)
        self.formulation.start(self.block, self.instance, solution)
        lower, upper = self.lower.copy(), self.upper.copy()
        whole = True
        for j, each in enumerate(self.columns):
            if each.value is None:
                whole = False
            elif self.exact.integer[j]:
                value = round(each.value)
                assert abs(value - each.value) < 1e-6, f"the start gives {each.name} the value {each.value}"
                if not self.lower[j] <= value <= self.upper[j]:
                    return Kept(None)
                lower[j] = upper[j] = value
        if whole:
            point = [Fraction(each.value) for each in self.columns]
            if not self._broken(point):
                return Kept(self._value(point), filled=True)
        return self._solved(lower, upper)

    def _solved(self, lower, upper):
        if not self._run(lower, upper):
            return Kept(None)
        point = self._point()
        broken = self._broken(point)
        if broken:
            point, broken = self._exact(lower, upper, point, broken)
        return Kept(self._value(point), broken=broken)

    def _run(self, lower, upper, whole=True):
        """Whether HiGHS finds an optimum within these bounds; ``whole``: with whole columns."""
        columns = np.arange(len(self.columns), dtype=np.int32)
        self.highs.changeColsBounds(len(columns), columns, lower, upper)
        kinds = [_WHOLE if whole and each else _REAL for each in self.exact.integer]
        self.highs.changeColsIntegrality(len(columns), columns, np.array(kinds, dtype=np.uint8))
        # Where a variable is 1e8 or so no row holds to 1e-9: then what HiGHS finds to 1e-6 is made exact.
        for tolerance, presolve in ((1e-9, "choose"), (1e-6, "choose"), (1e-6, "off")):
            self.highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self.highs.setOptionValue("mip_feasibility_tolerance", tolerance)
            self.highs.setOptionValue("presolve", presolve)
            self.highs.clearSolver()
            self.highs.run()
            if self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                return True
        return False

    def _point(self):
        values = self.highs.getSolution().col_value
        return [
            Fraction(round(each) if whole else each) for each, whole in zip(values, self.exact.integer, strict=True)
        ]

    def _exact(self, lower, upper, point, broken):
        """The vertex beside a point that misses a row, in rational numbers; the point if that is no better."""
        lower, upper = lower.copy(), upper.copy()
        for j in np.flatnonzero(self.whole):
            lower[j] = upper[j] = float(point[j])
        if not self._run(lower, upper, whole=False):
            return point, broken
        exact = _basic_point(self.highs.getBasis(), self.exact, self._point())
        still = "no vertex" if exact is None else self._broken(exact)
        return (point, broken) if still else (exact, "")

    def _value(self, point):
        found = self.exact.offset + sum((value * point[j] for j, value in self.exact.cost), Fraction(0))
        return bound_of(self.formulation, self.instance, self.exact.maximised, found)

    def _broken(self, point):
        for number in self._doubtful(point, self.matrix, self.row_lower, self.row_upper):
            low, terms, high = self.exact.rows[number]
            parts = [value * point[j] for j, value in terms]
            total = sum(parts, Fraction(0))
            room = self.room * (1 + sum(map(abs, parts)) + max(abs(low or 0), abs(high or 0)))
            if (low is not None and total < low - room) or (high is not None and total > high + room):
                return f"row {number}: {float(total)!r} is not in {low}..{high}"
        for number in self._doubtful(point, eye_array(len(point)), self.lower, self.upper):
            value, low, high = point[number], self.exact.lower[number], self.exact.upper[number]
            room = self.room * (1 + abs(value))
            if (low is not None and value < low - room) or (high is not None and value > high + room):
                return f"column {number}: {float(value)!r} is not in {low}..{high}"
        return ""

    def _doubtful(self, point, matrix, lower, upper):
        """The rows that miss a side by more than half of their room in floats, which lose far less in a sum."""
        at = np.array([float(value) for value in point])
        room = float(self.room) / 2 * (1 + abs(matrix) @ abs(at))
        with np.errstate(all="ignore"):
            return np.flatnonzero(~((matrix @ at >= lower - room) & (matrix @ at <= upper + room)))


def _basic_point(basis, model, point):
    """The point of a basis in rational numbers; None if it is none.

    What is not basic has the bound that ``point`` has it at, rows that are not basic the side.
    """
    free = highspy.HighsBasisStatus.kBasic
    columns = [j for j, status in enumerate(basis.col_status) if status == free]
    known = list(point)
    for j, status in enumerate(basis.col_status):
        if status != free and not model.integer[j]:
            sides = [each for each in (model.lower[j], model.upper[j]) if each is not None]
            known[j] = min(sides, key=lambda each: abs(each - point[j])) if sides else point[j]
    unknown, system = set(columns), []
    for status, (low, terms, high) in zip(basis.row_status, model.rows, strict=True):
        if status == free:
            continue
        side = high if status == highspy.HighsBasisStatus.kUpper or low is None else low
        side -= sum((value * known[j] for j, value in terms if j not in unknown), Fraction(0))
        system.append(({j: value for j, value in terms if j in unknown}, side))
    solved = _eliminated(system, unknown)
    if solved is None:
        return None
    for j, value in solved.items():
        known[j] = value
    return known


def _eliminated(system, unknown):
    """What a square system of sparse rows with their sides makes of the unknown; None if it is singular."""
    done = []
    rows = [(dict(terms), side) for terms, side in system]
    while rows:
        rows.sort(key=lambda row: -len(row[0]))
        terms, side = rows.pop()
        terms = {j: value for j, value in terms.items() if value}
        if not terms:
            if side:
                return None
            continue
        pivot = max(terms, key=lambda j: abs(terms[j]))
        done.append((pivot, terms, side))
        for place, (other, its) in enumerate(rows):
            if other.get(pivot):
                factor = other[pivot] / terms[pivot]
                for j, value in terms.items():
                    other[j] = other.get(j, Fraction(0)) - factor * value
                del other[pivot]
                rows[place] = (other, its - factor * side)
    if {pivot for pivot, _, _ in done} != unknown:
        return None
    found = {}
    for pivot, terms, side in reversed(done):
        rest = sum((value * found[j] for j, value in terms.items() if j != pivot), Fraction(0))
        found[pivot] = (side - rest) / terms[pivot]
    return found


def at_least_as_good(value, objective, sense):
    """Whether the model's objective is no worse than the solution's."""
    sign = 1 if sense == "minimize" else -1
    return value is not None and sign * (value - objective) <= WORSE * (abs(objective) + Fraction(1, 10**6))


def _matrix(model):
    starts = np.cumsum([0, *(len(terms) for _, terms, _ in model.rows)])
    columns = np.array([j for _, terms, _ in model.rows for j, _ in terms], dtype=np.int32)
    values = np.array([float(value) for _, terms, _ in model.rows for _, value in terms])
    return csr_array((values, columns, starts), shape=(len(model.rows), len(model.integer)))


def _highs(made):
    highs, model = SilentHighs(), made.exact
    for option, value in (("threads", 1), ("primal_feasibility_tolerance", 1e-9), ("dual_feasibility_tolerance", 1e-9),
                          ("mip_feasibility_tolerance", 1e-9), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):  # fmt: skip
        highs.setOptionValue(option, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.integer), len(model.rows)
    cost = np.zeros(lp.num_col_)
    for j, value in model.cost:
        cost[j] = float(value)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, made.lower, made.upper
    lp.row_lower_, lp.row_upper_ = made.row_lower, made.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
        made.matrix.indptr,
        made.matrix.indices,
        made.matrix.data,
    )
    lp.integrality_ = [highspy.HighsVarType.kInteger if w else highspy.HighsVarType.kContinuous for w in model.integer]
    highs.passModel(lp)
    return highs
