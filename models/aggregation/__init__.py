"""What switches aggregate, where in the network, with how much memory, and in which tables of numbers."""

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance, GraphJob, GraphLink, GraphNode
from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, HotSet, HotSwitch
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.aggregation.slots.delivery import Delivery
from ddlopt.models.aggregation.slots.instance import SlotJob, SlotLink, SlotPlan, SlotsInstance, SlotSwitch
from ddlopt.models.aggregation.table.instance import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, TreeJob
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "AggregatingSwitches",
    "AggregationAnswer",
    "AggregationProblem",
    "AggregationTrees",
    "Delivery",
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
    "bound",
    "evaluate",
]

PROBLEMS = records(
    "ddlopt.models.aggregation.hot.problem",
    "ddlopt.models.aggregation.registers.problem",
    "ddlopt.models.aggregation.tree.problem",
    "ddlopt.models.aggregation.graph.problem",
    "ddlopt.models.aggregation.slots.problem",
    "ddlopt.models.aggregation.table.problem",
)
FAMILY = Family.of_several(
    "aggregation",
    "in-network aggregation: what switches add up, where, with how much memory, and in which tables",
    AggregationProblem,
    AggregationAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
