"""The problem ``gossip/period``: what belongs to its room, as data."""

from ddlopt.models.gossip.period.evaluate import evaluate_period
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/period",
    title="after how many steps workers average",
    counts="workers",
    limited_by="the error to be reached",
    instance=PeriodInstance,
    solution=PeriodPlan,
    evaluate=evaluate_period,
    bound=later("ddlopt.models.gossip.period.bounds:period_bound"),
)
