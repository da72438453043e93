"""The independent check of an answer, written from the problem statements; it knows no formulation."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.evaluate_partition import evaluate_partition
from ddlopt.models.deployment.evaluate_plan import evaluate_plan
from ddlopt.models.deployment.evaluate_strategies import evaluate_strategies
from ddlopt.models.deployment.instance import DeploymentInstance
from ddlopt.models.deployment.partition import Partition, PartitionInstance
from ddlopt.models.deployment.problem import DeploymentAnswer, DeploymentProblem
from ddlopt.models.deployment.solution import Deployment
from ddlopt.models.deployment.strategies import StrategyAssignment, StrategyInstance
from ddlopt.models.errors import SolutionError


def evaluate(instance: DeploymentProblem, solution: DeploymentAnswer, exact: bool = False) -> Evaluation:
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
    solution.belongs_to(instance)
    match instance, solution:
        case DeploymentInstance(), Deployment():
            return evaluate_plan(instance, solution, exact)
        case PartitionInstance(), Partition():
            return evaluate_partition(instance, solution, exact)
        case StrategyInstance(), StrategyAssignment():
            return evaluate_strategies(instance, solution, exact)
    raise SolutionError(f"a {solution.kind} cannot answer the {instance.kind} '{instance.name}'")
