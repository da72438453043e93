"""The independent check of an answer, written from the problem statements; it knows no formulation."""

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.by_problem import evaluated
from ddlopt.models.contracts import Evaluation


def evaluate(instance: AggregationProblem, solution: AggregationAnswer, exact: bool = False) -> Evaluation:
    """Objective of an answer and every constraint that it violates.

    Parameters
    ----------
    exact : bool
        Calculate in rational numbers.

    Returns
    -------
    Evaluation
        The objective as the instance has it (None where the answer names what does not exist).

    Raises
    ------
    SolutionError
        If the answer says that it answers another instance, or is one to another problem of the family.
    """
    return evaluated(instance, solution, exact)
