"""The problem ``deployment/plan``: what belongs to its room, as data."""

from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="deployment/plan",
    title="where groups of operators run on unlike devices",
    counts="groups",
    limited_by="memory and speed of devices, bandwidth between them",
    instance=DeploymentInstance,
    solution=Deployment,
    evaluate=evaluate_plan,
    bound=later("ddlopt.models.deployment.plan.bounds:plan_bound"),
)
