"""The cluster as a whole: which hosts each gang gets, when each job runs and on how many servers."""

from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.cluster.placement.instance import Gang, GangPlaces, Leaf, PlacementInstance
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "ClusterAnswer",
    "ClusterJob",
    "ClusterProblem",
    "Gang",
    "GangPlaces",
    "JobsInstance",
    "JobsSchedule",
    "Leaf",
    "PlacementInstance",
    "Stretch",
    "bound",
    "evaluate",
]

PROBLEMS = records("ddlopt.models.cluster.placement.problem", "ddlopt.models.cluster.jobs.problem")
FAMILY = Family.of_several(
    "cluster",
    "the cluster as a whole: which hosts each gang gets, when each job runs and on how many servers",
    ClusterProblem,
    ClusterAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
