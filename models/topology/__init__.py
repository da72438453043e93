"""Topology design: the links, rings and routes of one training job (TopoOpt, NSDI 2023)."""

from ddlopt.models.problem import Family
from ddlopt.models.topology.evaluate import evaluate
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.problem import PROBLEM
from ddlopt.models.topology.solution import Path, Ring, Route, TopologyDesign

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "AllReduceGroup",
    "Path",
    "Ring",
    "Route",
    "TopologyDesign",
    "TopologyInstance",
    "evaluate",
]

PROBLEMS = (PROBLEM,)
FAMILY = Family.of_one("optical links, rings and routes for one training job", PROBLEM)
