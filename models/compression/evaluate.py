"""The independent check of an answer, written from the problem statements; it knows no formulation."""

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.levels.instance import LevelInstance, LevelPlan
from ddlopt.models.compression.sfb.evaluate import evaluate_sfb
from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.compression.timeline.evaluate import evaluate_levels, evaluate_timeline
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import SolutionError


def evaluate(instance: CompressionProblem, solution: CompressionAnswer, exact: bool = False) -> Evaluation:
    """Objective of an answer and every constraint that it violates.

    Parameters
    ----------
    exact : bool
        Calculate in rational numbers.

    Returns
    -------
    Evaluation
        The objective as the instance has it (None where the answer names what does not exist). Details: see
        :func:`~ddlopt.models.compression.sfb.evaluate.evaluate_sfb` and
        :func:`~ddlopt.models.compression.timeline.evaluate.evaluate_timeline`.

    Raises
    ------
    SolutionError
        If the answer says that it answers another instance, or is one to another problem of the family.
    """
    solution.belongs_to(instance)
    match instance, solution:
        case SfbInstance(), SfbSelection():
            return evaluate_sfb(instance, solution, exact)
        case CompressionInstance(), CompressionPlan():
            return evaluate_timeline(instance, solution, exact)
        case LevelInstance(), LevelPlan():
            return evaluate_levels(instance, solution, exact)
    raise SolutionError(f"a {solution.kind} cannot answer the {instance.kind} '{instance.name}'")
