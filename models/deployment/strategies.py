"""One strategy for each node of a graph, with costs of nodes and edges and memory over time."""

from typing import Literal

from ddlopt.models.deployment.problem import DeploymentAnswer, DeploymentProblem


class StrategyInstance(DeploymentProblem):
    """Not written yet."""

    problem: Literal["strategies"] = "strategies"


class StrategyAssignment(DeploymentAnswer):
    """Not written yet."""

    problem: Literal["strategies"] = "strategies"
