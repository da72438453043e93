"""The problem ``aggregation/hot``: what belongs to its room, as data."""

from ddlopt.models.aggregation.hot.evaluate import evaluate_hot
from ddlopt.models.aggregation.hot.instance import HotInstance, HotSet
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/hot",
    title="which parameters switches aggregate",
    counts="parameters",
    limited_by="registers of switches",
    instance=HotInstance,
    solution=HotSet,
    evaluate=evaluate_hot,
    bound=later("ddlopt.models.aggregation.hot.bounds:hot_bound"),
)
