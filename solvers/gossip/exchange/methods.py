"""The methods for the problem ``exchange``."""

from importlib import import_module

from ddlopt.models.gossip.exchange.instance import ExchangeInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

ROOM = "gossip/exchange"

_path = formulation(ROOM, "exchange-path", "formulations.exchange_path:ExchangePath")


def best(instance: ExchangeInstance, solver: str) -> Method:
    """The search over prices, at any length."""
    method: Method = import_module("ddlopt.solvers.gossip.exchange.exact").OptimalTimes()
    return method


def milp(instance: ExchangeInstance, solver: str) -> Method:
    """Paths through short trajectories."""
    return _path(solver)


ENTRIES = entries(
    ROOM,
    ("exchange-times", "exact", "the best times, by prices of sends", "exact:OptimalTimes"),
    ("exchange-path", "exact", "a path through the steps, an integer program", "models:formulations.exchange_path:ExchangePath"),
    ("exchange-rule", "heuristic", "send at a threshold (SPARQ-SGD, after EventGraD, …), at a fixed interval of steps, at random (GoSGD)", "rules:ExchangeRule"),
)  # fmt: skip
