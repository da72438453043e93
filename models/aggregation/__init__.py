"""What switches aggregate, where in the network, with how much memory, and in which tables of numbers."""

from ddlopt.models.aggregation.evaluate import evaluate
from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance, GraphJob, GraphLink, GraphNode
from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, HotSet, HotSwitch
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.aggregation.slots.instance import SlotJob, SlotLink, SlotPlan, SlotsInstance, SlotSwitch
from ddlopt.models.aggregation.table.instance import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, TreeJob

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
