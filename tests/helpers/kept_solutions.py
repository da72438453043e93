"""Whether the model of a formulation has a solution, or one that is at least as good: by its rows in rational numbers.

This is what a certificate takes for granted: a bound of the model is one of the instance as the model contains every
solution of it, or one that is no worse.
"""

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np
import pyomo.environ as pyo

from ddlopt.models.linear_proof import exact_model
from ddlopt.models.linear_proof.objective import bound_of
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.exact import build_model

ROOM = Fraction(1, 2**30)
"""Part of all that a row adds up by which it may be missed: HiGHS fills in what a start leaves open, to 1e-9 or so."""
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
    """The model of an instance, built once for many solutions."""

    def __init__(self, formulation, instance):
        self.formulation, self.instance = formulation, instance
        self.built = build_model(instance.family, formulation, instance)
        self.block = self.built.component(instance.family)
        self.exact = exact_model(self.built)
        columns = {}
        for component in self.built.component_objects(pyo.Var, active=True):
            columns.update((id(each), each) for each in component.values())
        self.columns = list(columns.values())
        self.lower = np.array([-np.inf if each is None else float(each) for each in self.exact.lower])
        self.upper = np.array([np.inf if each is None else float(each) for each in self.exact.upper])
        self.highs = _highs(self.exact, self.lower, self.upper)

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
        count = len(self.columns)
        self.highs.changeColsBounds(count, np.arange(count, dtype=np.int32), lower, upper)
        self.highs.clearSolver()
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return Kept(None)
        values = self.highs.getSolution().col_value
        point = [
            Fraction(round(value) if whole else value) for value, whole in zip(values, self.exact.integer, strict=True)
        ]
        return Kept(self._value(point), broken=self._broken(point))

    def _value(self, point):
        found = self.exact.offset + sum((value * point[j] for j, value in self.exact.cost), Fraction(0))
        return bound_of(self.formulation, self.instance, self.exact.maximised, found)

    def _broken(self, point):
        for number, (low, terms, high) in enumerate(self.exact.rows):
            parts = [value * point[j] for j, value in terms]
            total = sum(parts, Fraction(0))
            room = ROOM * (1 + sum(map(abs, parts)) + max(abs(low or 0), abs(high or 0)))
            if (low is not None and total < low - room) or (high is not None and total > high + room):
                return f"row {number}: {float(total)!r} is not in {low}..{high}"
        for number, (value, low, high) in enumerate(zip(point, self.exact.lower, self.exact.upper, strict=True)):
            room = ROOM * (1 + abs(value))
            if (low is not None and value < low - room) or (high is not None and value > high + room):
                return f"column {number}: {float(value)!r} is not in {low}..{high}"
        return ""


def at_least_as_good(value, objective, sense):
    """Whether the model's objective is no worse than the solution's."""
    sign = 1 if sense == "minimize" else -1
    return value is not None and sign * (value - objective) <= WORSE * (abs(objective) + Fraction(1, 10**6))


def _highs(model, lower, upper):
    highs = SilentHighs()
    for option, value in (("threads", 1), ("primal_feasibility_tolerance", 1e-9), ("dual_feasibility_tolerance", 1e-9),
                          ("mip_feasibility_tolerance", 1e-9), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):  # fmt: skip
        highs.setOptionValue(option, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.integer), len(model.rows)
    cost = np.zeros(lp.num_col_)
    for j, value in model.cost:
        cost[j] = float(value)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
    lp.row_lower_ = np.array([-np.inf if low is None else float(low) for low, _, _ in model.rows])
    lp.row_upper_ = np.array([np.inf if high is None else float(high) for _, _, high in model.rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for _, terms, _ in model.rows)])
    lp.a_matrix_.index_ = np.array([j for _, terms, _ in model.rows for j, _ in terms], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([float(value) for _, terms, _ in model.rows for _, value in terms])
    lp.integrality_ = [highspy.HighsVarType.kInteger if w else highspy.HighsVarType.kContinuous for w in model.integer]
    highs.passModel(lp)
    return highs
