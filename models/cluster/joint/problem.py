"""The problem ``cluster/joint``: what belongs to its room, as data."""

from ddlopt.models.cluster.joint.evaluate import evaluate_joint
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="cluster/joint",
    title="when each job of a cluster runs, on how many servers, and by which plan",
    counts="jobs",
    limited_by="servers, arrivals, plans of each job on few servers and on many",
    instance=JointInstance,
    solution=JointPlan,
    evaluate=evaluate_joint,
    bound=later("ddlopt.models.cluster.joint.bounds:joint_bound"),
    columns={"problem": "problem", "jobs": "jobs", "servers": "servers", "problems": "problems"},
)
