"""Topology design: the links, rings and routes of one training job (TopoOpt, NSDI 2023)."""

from ddlopt.models.topology.evaluate import evaluate
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.solution import Path, Ring, Route, TopologyDesign

__all__ = ["AllReduceGroup", "Path", "Ring", "Route", "TopologyDesign", "TopologyInstance", "evaluate"]
