"""The cluster as a whole: which hosts each gang gets."""

from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.cluster.placement.instance import Gang, GangPlaces, Leaf, PlacementInstance
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "ClusterAnswer",
    "ClusterProblem",
    "Gang",
    "GangPlaces",
    "Leaf",
    "PlacementInstance",
    "bound",
    "evaluate",
]

PROBLEMS = records("ddlopt.models.cluster.placement.problem")
FAMILY = Family.of_several(
    "cluster", "the cluster as a whole: which hosts each gang gets", ClusterProblem, ClusterAnswer, PROBLEMS
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
