"""What programs have in common whose answer is a choice of strategies."""

from typing import ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.codesign.formulations.rows.strategy_choice import read_choices, set_choices
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import time_unit_s
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase


class StrategyProgram(FormulationBase):
    """A formulation that ``add_strategies`` begins and whose answer is a choice of strategies, without a design.

    Its objective is the iteration time, or a bound on it, in units of
    :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    """

    covers: ClassVar[type[Instance]] = CodesignInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def start(self, block: pyo.Block, instance: CodesignInstance, solution: CodesignPlan | tuple[int, ...]) -> None:
        """Set the strategies of a plan, or of a choice; the rest follows."""
        choices = solution.choices(instance) if isinstance(solution, CodesignPlan) else solution
        set_choices(block, instance, choices)

    def read(self, block: pyo.Block, instance: CodesignInstance) -> tuple[int, ...]:
        """Index of each layer's strategy.

        Raises
        ------
        SolverError
            If one is chosen in part.
        """
        return read_choices(block, instance)

    def objective_value(self, instance: CodesignInstance, value: float) -> float:
        """The objective in seconds."""
        return time_unit_s(instance) * value
