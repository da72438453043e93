"""The problem ``aggregation/slots``: what belongs to its room, as data."""

from ddlopt.models.aggregation.slots.evaluate import evaluate_slots
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/slots",
    title="how jobs share the memory of switches",
    counts="jobs",
    limited_by="memory of switches, bandwidth of links",
    instance=SlotsInstance,
    solution=SlotPlan,
    evaluate=evaluate_slots,
    bound=later("ddlopt.models.aggregation.slots.bounds:slots_bound"),
)
