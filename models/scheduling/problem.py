"""The problem ``scheduling``: what belongs to its room, as data."""

from ddlopt.models.problem import Problem, later
from ddlopt.models.scheduling.evaluate import evaluate
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule

PROBLEM = Problem(
    path="scheduling",
    title="workers, servers and rings of jobs over time",
    counts="jobs",
    limited_by="resources of servers, bandwidth between them, slots of time",
    columns={"jobs": "jobs", "servers": "server_count", "slots": "slots"},
    instance=SchedulingInstance,
    solution=Schedule,
    evaluate=evaluate,
    bound=later("ddlopt.models.scheduling.bounds:bound"),
)
