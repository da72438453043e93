"""The format ``table``: any solution as text, by the function ``table`` of its problem's module in this folder."""

from ddlopt.instances.writers.layout import number, quantity, seconds, section, text_of
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import NotApplicableError


def table(instance: Instance, solution: Solution, evaluation: Evaluation) -> str:
    """Objective and details of a solution, and the sections of its problem.

    Raises
    ------
    NotApplicableError
        If its problem has no table.
    """
    problem = problem_of(instance)
    module = problem.module("instances.writers")
    if module is None:
        raise NotApplicableError(f"there is no table for answers of {problem.path}")
    assert evaluation.objective is not None
    objective = float(evaluation.objective)
    told = seconds(objective) if instance.objective_unit == "s" else number(objective)
    figures = [("objective", told), *((key, quantity(key, float(value))) for key, value in evaluation.details.items())]
    return text_of([section(f"{problem.title}", ("figure", "value"), figures), *module.table(instance, solution)])
