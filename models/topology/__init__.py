"""Topology design: the links, rings and routes of one training job (TopoOpt, NSDI 2023)."""

from ddlopt.models.problem import Family, records
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Link, Tree
from ddlopt.models.topology.evaluate import evaluate
from ddlopt.models.topology.family import TopologyAnswer, TopologyProblem
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.solution import Path, Ring, Route, TopologyDesign

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "AllReduceGroup",
    "CollectiveInstance",
    "CollectivePlan",
    "Link",
    "Path",
    "Ring",
    "Route",
    "TopologyAnswer",
    "TopologyDesign",
    "TopologyInstance",
    "TopologyProblem",
    "Tree",
    "evaluate",
]

PROBLEMS = records("ddlopt.models.topology.problem", "ddlopt.models.topology.collective.problem")
FAMILY = Family.of_several(
    "topology",
    "optical links, rings and routes for one training job; collectives on given links",
    TopologyProblem,
    TopologyAnswer,
    PROBLEMS,
)
