"""The cluster as a whole: which hosts each gang gets, when each job runs and on how many servers."""

from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.cluster.joint.fabric import Fabric, Group
from ddlopt.models.cluster.joint.instance import Choice, JointInstance, JointJob, JointPlan, Run, Workload, WorkloadPlan
from ddlopt.models.cluster.placement.instance import Gang, GangPlaces, Leaf, PlacementInstance
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "Choice",
    "ClusterAnswer",
    "ClusterJob",
    "ClusterProblem",
    "Fabric",
    "Gang",
    "GangPlaces",
    "Group",
    "JobsInstance",
    "JobsSchedule",
    "JointInstance",
    "JointJob",
    "JointPlan",
    "Leaf",
    "PlacementInstance",
    "Run",
    "Stretch",
    "Workload",
    "WorkloadPlan",
    "bound",
    "evaluate",
]

PROBLEMS = records(
    "ddlopt.models.cluster.placement.problem",
    "ddlopt.models.cluster.jobs.problem",
    "ddlopt.models.cluster.joint.problem",
)
FAMILY = Family.of_several(
    "cluster",
    "the cluster as a whole: which hosts each gang gets, when each job runs and on how many servers",
    ClusterProblem,
    ClusterAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
