"""The problem ``deployment/strategies``: what belongs to its room, as data."""

from ddlopt.models.deployment.strategies.evaluate import evaluate_strategies
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.problem import Problem, always, later

PROBLEM = Problem(
    path="deployment/strategies",
    title="how every operator is split over devices",
    counts="nodes",
    limited_by="memory of devices",
    instance=StrategyInstance,
    solution=StrategyAssignment,
    evaluate=evaluate_strategies,
    bound=later("ddlopt.models.deployment.strategies.bounds:cheapest_bound"),
    kernels=always("ddlopt.models.deployment.strategies.kernels.tables"),
)
