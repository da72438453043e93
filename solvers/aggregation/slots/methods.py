"""The methods for the problem ``slots``."""

from importlib import import_module

from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "aggregation/slots"


def best(instance: SlotsInstance, solver: str) -> Method:
    """Bisection for the slowest job; prices for the total, followed by the integer program where they do not close."""
    if instance.goal == "slowest":
        return heuristic(ROOM, "priced:SlowestSlots")(solver)
    method: Method = import_module("ddlopt.solvers.aggregation.slots.exact").opened(solver)
    return method


def milp(instance: SlotsInstance, solver: str) -> Method:
    """The integer program with tangents, with the plan of the prices as its start and limit."""
    method: Method = import_module("ddlopt.solvers.aggregation.slots.exact").opened(solver, "milp")
    return method


ENTRIES = entries(
    ROOM,
    ("slot-prices", "heuristic", "prices of memory and links by our interior-point method or a conic solver, then rounding", "priced:PricedSlots"),
    ("slot-bisection", "exact", "the slowest job by bisection", "priced:SlowestSlots"),
    ("slot-rule", "heuristic", "each switch by itself, equally (SwitchML), first come (ATP), max-min fair, in proportion, …", "rules:SlotRule"),
)  # fmt: skip
