"""The problem ``cluster/placement``: what belongs to its room, as data."""

from ddlopt.models.cluster.placement.evaluate import evaluate_placement
from ddlopt.models.cluster.placement.instance import GangPlaces, PlacementInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="cluster/placement",
    title="which hosts of which racks and blocks each gang gets, and in which order of ranks",
    counts="gangs",
    limited_by="free hosts of each rack, levels within which a gang has to be",
    instance=PlacementInstance,
    solution=GangPlaces,
    evaluate=evaluate_placement,
    bound=later("ddlopt.models.cluster.placement.bounds:placement_bound"),
    columns={"problem": "problem", "gangs": "gangs", "leaves": "leaves", "hosts": "free_hosts"},
)
