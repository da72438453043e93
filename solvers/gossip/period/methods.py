"""The methods for the problem ``period``."""

from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "gossip/period"


def best(instance: PeriodInstance, solver: str) -> Method:
    """Branch and bound."""
    return heuristic(ROOM, "exact:BestPeriods")(solver)


ENTRIES = entries(
    ROOM,
    ("best-period", "exact", "branch and bound over periods, and over the seconds of rounds that are designed", "exact:BestPeriods"),
    ("adacomm", "heuristic", "AdaComm's formula at the horizon of synchronous training", "rules:AdaComm"),
    ("synchronous", "heuristic", "communicate after each step", "rules:Synchronous"),
)  # fmt: skip
