"""The independent check of a deployment."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.instance import DeploymentInstance
from ddlopt.models.deployment.solution import Deployment


def evaluate_plan(instance: DeploymentInstance, solution: Deployment, exact: bool = False) -> Evaluation:
    """Time of a step, and devices whose memory does not suffice."""
    raise NotImplementedError
