"""The methods for the problem ``slots``."""

from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, heuristic

FAMILY = "aggregation"

_heuristic = partial(heuristic, FAMILY)


def best(instance: SlotsInstance, solver: str) -> Method:
    """Bisection for the slowest job; prices for the total, followed by the integer program where they do not close."""
    if instance.goal == "slowest":
        return _heuristic("slots.priced", "SlowestSlots")(solver)
    method: Method = import_module("ddlopt.solvers.aggregation.slots.exact").opened(solver)
    return method


def milp(instance: SlotsInstance, solver: str) -> Method:
    """The integer program with tangents, with the plan of the prices as its start and limit."""
    method: Method = import_module("ddlopt.solvers.aggregation.slots.exact").opened(solver, "milp")
    return method


def _rule(rule: str) -> Maker:
    return _heuristic("slots.rules", "SlotRule", rule=rule)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "slot-prices",
        FAMILY,
        "heuristic",
        "slots: prices of memory and links by our interior-point method, then rounding",
        _heuristic("slots.priced", "PricedSlots"),
    ),
    Entry(
        "slot-shares",
        FAMILY,
        "heuristic",
        "slots: the same with the conic program of CVXPY",
        _heuristic("slots.priced", "PricedSlots", solver="clarabel"),
    ),
    Entry(
        "slot-bisection",
        FAMILY,
        "exact",
        "slots: the slowest job by bisection",
        _heuristic("slots.priced", "SlowestSlots"),
    ),
    Entry(
        "equal-slots",
        FAMILY,
        "heuristic",
        "slots: as many for every job of a switch, as in SwitchML's static partition",
        _rule("equal"),
    ),
    Entry("gradient-slots", FAMILY, "heuristic", "slots: in proportion to gradient bytes", _rule("gradient")),
    Entry("demand-slots", FAMILY, "heuristic", "slots: in proportion to what a job could fill", _rule("demand")),
    Entry("square-root-slots", FAMILY, "heuristic", "slots: best for each switch by itself", _rule("square-root")),
    Entry("max-min-slots", FAMILY, "heuristic", "slots: max-min fair rates", _rule("max-min")),
    Entry(
        "first-come-slots",
        FAMILY,
        "heuristic",
        "slots: who comes first takes what it can fill, as in ATP's dynamic sharing",
        _rule("first-come"),
    ),
)
