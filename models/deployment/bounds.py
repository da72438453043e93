"""Bounds that need no solver."""

from ddlopt.models.deployment.instance import DeploymentInstance
from ddlopt.models.deployment.partition import PartitionInstance
from ddlopt.models.deployment.problem import DeploymentProblem
from ddlopt.models.deployment.strategies import StrategyInstance


def bound(instance: DeploymentProblem) -> float | None:
    """A lower bound on the objective of every answer; None where there is none."""
    # Here, as each brings what only its own problem needs.
    match instance:
        case DeploymentInstance():
            from ddlopt.models.deployment.bounds_plan import plan_bound

            return plan_bound(instance)
        case PartitionInstance():
            from ddlopt.models.deployment.bounds_partition import partition_bound

            return partition_bound(instance)
        case StrategyInstance():
            from ddlopt.models.deployment.bounds_strategies import strategies_bound

            return strategies_bound(instance)
    return None
