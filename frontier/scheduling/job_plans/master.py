"""The programs over plans of jobs: the linear one, kept in HiGHS from round to round, and the one in whole plans."""

from collections.abc import Sequence
from typing import NamedTuple

import highspy
import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

_OPTIONS = {"threads": 1, "presolve": "off", "solver": "simplex"}


class Plan(NamedTuple):
    """What one job does in all slots: (T,) choices, what it uses of (rows,) capacities and then cuts, and its worth."""

    job: int
    choices: Ints
    uses: Floats
    worth: float


class Optimum(NamedTuple):
    """Of the linear program: its value, (rows,) prices of capacities and then cuts, and the part taken of each plan."""

    value: float
    prices: Floats
    shares: Floats


class PlanMaster:
    """The largest worth of at most one plan for every job, plans taken in parts, within (rows,) ``capacities``."""

    def __init__(self, capacities: Floats, jobs: int) -> None:
        self.plans: list[Plan] = []
        self._capacities, self._jobs = capacities, jobs
        self._highs = SilentHighs()
        for name, value in _OPTIONS.items():
            self._highs.setOptionValue(name, value)
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        for limit in [*capacities.tolist(), *[1.0] * jobs]:
            self._highs.addRow(-highspy.kHighsInf, limit, 0, *nothing)

    def add(self, plan: Plan) -> None:
        """Add a plan; the program minimises the negative worth."""
        used, mine = np.flatnonzero(plan.uses), len(self._capacities)
        # Rows of jobs stand between those of capacities and those of cuts.
        rows = np.append(np.where(used < mine, used, used + self._jobs), mine + plan.job).astype(np.int32)
        values = np.append(plan.uses[plan.uses != 0], 1.0)
        status = self._highs.addCol(-plan.worth, 0.0, highspy.kHighsInf, len(rows), rows, values)
        if status != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS does not take a plan of job {plan.job} ({status.name})")
        self.plans.append(plan)

    def cut(self, uses: Floats, limit: float) -> None:
        """Add a cut, of which the plans so far use (plans,) ``uses``; plans that come later have it among theirs."""
        here = np.flatnonzero(uses)
        self._highs.addRow(-highspy.kHighsInf, limit, len(here), here.astype(np.int32), uses[here])

    def solve(self) -> Optimum:
        """The optimum over the plans so far.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        if not self.plans:  # no job is worth anything; HiGHS takes no program without columns
            return Optimum(0.0, np.zeros(len(self._capacities)), np.zeros(0))
        self._highs.run()
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"the program over {len(self.plans)} plans ended with {status.name}")
        solution = self._highs.getSolution()
        rows, mine = np.asarray(solution.row_dual), len(self._capacities)
        prices = np.maximum(0.0, -np.concatenate((rows[:mine], rows[mine + self._jobs :])))
        value = -float(self._highs.getInfo().objective_function_value)
        return Optimum(value, prices, np.asarray(solution.col_value))

    def whole_plans(self, start: Sequence[int], limits: Limits, seed: int) -> tuple[list[Plan], Outcome]:
        """The best choice of whole plans that is found, from the places of those in ``start``."""
        model = pyo.ConcreteModel()
        model.taken = pyo.Var(range(len(self.plans)), domain=pyo.Binary)
        taken = list(model.taken.values())
        for variable in taken:
            variable.set_value(0)
        for place in start:
            taken[place].set_value(1)
        model.rows = pyo.ConstraintList()
        uses = np.array([plan.uses for plan in self.plans])
        for row, limit in enumerate(self._capacities.tolist()):
            places = np.flatnonzero(uses[:, row]).tolist()
            if places:
                model.rows.add(_sum(uses[places, row].tolist(), [taken[place] for place in places]) <= limit)
        by_job: list[list[int]] = [[] for _ in range(self._jobs)]
        for place, plan in enumerate(self.plans):
            by_job[plan.job].append(place)
        for places in by_job:
            if places:
                model.rows.add(_sum([1.0] * len(places), [taken[place] for place in places]) <= 1)
        worths = [plan.worth for plan in self.plans]
        model.objective = pyo.Objective(expr=_sum(worths, taken), sense=pyo.maximize)
        outcome = Highs().solve(model, limits, seed, warm=True)
        if outcome.objective is None:
            return [], outcome
        return [plan for plan, variable in zip(self.plans, taken, strict=True) if variable.value > 0.5], outcome

    def close(self) -> None:
        """Give HiGHS' memory back."""
        self._highs.clear()


def _sum(coefficients: list[float], variables: list[pyo.Var]) -> LinearExpression:
    return LinearExpression(constant=0, linear_coefs=coefficients, linear_vars=variables)
