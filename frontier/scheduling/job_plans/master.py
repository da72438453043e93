"""The programs over plans of jobs: the linear one, kept in HiGHS from round to round, and the one in whole plans."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.models.units import unless_ordinary
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


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
        self._program = RestrictedMaster("plans")
        self._unit = 0.0
        """Of worths: 1 where they are ordinary numbers, else near the first one, as solvers drop costs below 1e-9."""
        for limit in [*capacities.tolist(), *[1.0] * jobs]:
            self._program.add_row(-INF, limit)

    def add(self, plan: Plan) -> None:
        """Add a plan; the program minimises the negative worth."""
        used, mine = np.flatnonzero(plan.uses), len(self._capacities)
        # Rows of jobs stand between those of capacities and those of cuts.
        rows = np.append(np.where(used < mine, used, used + self._jobs), mine + plan.job)
        if plan.worth and not self._unit:
            self._unit = unless_ordinary(abs(plan.worth))
        self._program.add(-plan.worth / (self._unit or 1.0), rows, np.append(plan.uses[plan.uses != 0], 1.0))
        self.plans.append(plan)

    def cut(self, uses: Floats, limit: float) -> None:
        """Add a cut, of which the plans so far use (plans,) ``uses``; plans that come later have it among theirs."""
        here = np.flatnonzero(uses)
        self._program.add_row(-INF, limit, here, uses[here])

    def solve(self) -> Optimum:
        """The optimum over the plans so far.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        if not self.plans:  # no job is worth anything; HiGHS takes no program without columns
            return Optimum(0.0, np.zeros(len(self._capacities)), np.zeros(0))
        found, mine = self._program.solve(), len(self._capacities)
        prices = np.maximum(0.0, -np.concatenate((found.duals[:mine], found.duals[mine + self._jobs :])))
        unit = self._unit or 1.0
        return Optimum(-found.value * unit, prices * unit, found.values)

    def whole_plans(self, start: Sequence[int], limits: Limits, seed: int) -> tuple[list[Plan], Outcome]:
        """The best choice of whole plans that is found, from the places of those in ``start``."""
        if not self.plans:  # as in :meth:`solve`
            return [], Outcome(Status.OPTIMAL, 0.0, 0.0)
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
        unit = self._unit or 1.0
        worths = [plan.worth / unit for plan in self.plans]
        model.objective = pyo.Objective(expr=_sum(worths, taken), sense=pyo.maximize)
        outcome = Highs().solve(model, limits, seed, warm=True).in_unit(unit)
        if outcome.objective is None:
            return [], outcome
        return [plan for plan, variable in zip(self.plans, taken, strict=True) if variable.value > 0.5], outcome

    def close(self) -> None:
        """Give HiGHS' memory back."""
        self._program.close()


def _sum(coefficients: list[float], variables: list[pyo.Var]) -> LinearExpression:
    return LinearExpression(constant=0, linear_coefs=coefficients, linear_vars=variables)
