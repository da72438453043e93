"""What switches aggregate, where in the network, with how much memory, and in which tables of numbers."""

from ddlopt.models.aggregation.evaluate import evaluate
from ddlopt.models.aggregation.graph import AggregationTrees, GraphInstance, GraphJob, GraphLink, GraphNode
from ddlopt.models.aggregation.hot import HotInstance, HotJob, HotSet, HotSwitch
from ddlopt.models.aggregation.problem import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.registers import Placement, RegisterInstance
from ddlopt.models.aggregation.slots import SlotJob, SlotLink, SlotPlan, SlotsInstance, SlotSwitch
from ddlopt.models.aggregation.table import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.tree import AggregatingSwitches, TreeInstance, TreeJob

__all__ = [
    "AggregatingSwitches",
    "AggregationAnswer",
    "AggregationProblem",
    "AggregationTrees",
    "GraphInstance",
    "GraphJob",
    "GraphLink",
    "GraphNode",
    "HotInstance",
    "HotJob",
    "HotSet",
    "HotSwitch",
    "LookupFunction",
    "LookupTables",
    "Placement",
    "RegisterInstance",
    "SlotJob",
    "SlotLink",
    "SlotPlan",
    "SlotSwitch",
    "SlotsInstance",
    "TableInstance",
    "TreeInstance",
    "TreeJob",
    "evaluate",
]
