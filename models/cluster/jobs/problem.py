"""The problem ``cluster/jobs``: what belongs to its room, as data."""

from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="cluster/jobs",
    title="when each job of a cluster runs, and on how many servers",
    counts="jobs",
    limited_by="servers, arrivals, step times that do not fall as servers rise",
    instance=JobsInstance,
    solution=JobsSchedule,
    evaluate=evaluate_jobs,
    bound=later("ddlopt.models.cluster.jobs.bounds:jobs_bound"),
    columns={"problem": "problem", "jobs": "jobs", "servers": "servers"},
)
