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
    ("slot-prices", "heuristic", "prices of memory and links by our interior-point method, then rounding", "priced:PricedSlots"),
    ("slot-shares", "heuristic", "the same with the conic program of CVXPY", "priced:PricedSlots", {"solver": "clarabel"}),
    ("slot-bisection", "exact", "the slowest job by bisection", "priced:SlowestSlots"),
    ("equal-slots", "heuristic", "as many for every job of a switch, as in SwitchML's static partition", "rules:SlotRule", {"rule": "equal"}),
    ("gradient-slots", "heuristic", "in proportion to gradient bytes", "rules:SlotRule", {"rule": "gradient"}),
    ("demand-slots", "heuristic", "in proportion to what a job could fill", "rules:SlotRule", {"rule": "demand"}),
    ("square-root-slots", "heuristic", "best for each switch by itself", "rules:SlotRule", {"rule": "square-root"}),
    ("max-min-slots", "heuristic", "max-min fair rates", "rules:SlotRule", {"rule": "max-min"}),
    ("first-come-slots", "heuristic", "who comes first takes what it can fill, as in ATP's dynamic sharing", "rules:SlotRule", {"rule": "first-come"}),
)  # fmt: skip
