"""The methods for the problem ``period``."""

from functools import partial

from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import heuristic

FAMILY = "gossip"

_method = partial(heuristic, FAMILY)


def best(instance: PeriodInstance, solver: str) -> Method:
    """Branch and bound."""
    return _method("period.exact", "BestPeriods")(solver)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "best-period",
        FAMILY,
        "exact",
        "period: branch and bound over periods, and over the seconds of rounds that are designed",
        _method("period.exact", "BestPeriods"),
    ),
    Entry(
        "geometric-program",
        FAMILY,
        "heuristic",
        "period: geometric program through CVXPY, which promises a little more than is asked for",
        _method("period.convex", "GeometricProgram"),
    ),
    Entry(
        "adacomm",
        FAMILY,
        "heuristic",
        "period: AdaComm's formula at the horizon of synchronous training",
        _method("period.rules", "AdaComm"),
    ),
    Entry(
        "synchronous",
        FAMILY,
        "heuristic",
        "period: communicate after each step",
        _method("period.rules", "Synchronous"),
    ),
)
