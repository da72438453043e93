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
    ("exchange-dynamic", "exact", "a table over steps and sends, for short trajectories", "exact:DynamicProgram"),
    ("exchange-path", "exact", "a path through the steps, an integer program", "models:formulations.exchange_path:ExchangePath"),
    ("threshold", "heuristic", "send at a distance from the model sent last", "rules:ExchangeRule", {"rule": "threshold"}),
    ("relative-threshold", "heuristic", "at a distance relative to that model's norm", "rules:ExchangeRule", {"rule": "relative-threshold"}),
    ("rate-threshold", "heuristic", "at a distance relative to the learning rate (SPARQ-SGD)", "rules:ExchangeRule", {"rule": "rate-threshold"}),
    ("norm-threshold", "heuristic", "at a change of a tensor's norm (after EventGraD)", "rules:ExchangeRule", {"rule": "norm-threshold"}),
    ("speed-rule", "heuristic", "at a distance that goes with the cube root of the speed", "rules:ExchangeRule", {"rule": "speed-rule"}),
    ("sum-rule", "heuristic", "at a sum of staleness since the last send", "rules:ExchangeRule", {"rule": "sum-rule"}),
    ("fixed-period", "heuristic", "every so many steps", "rules:ExchangeRule", {"rule": "fixed-period"}),
    ("random-times", "heuristic", "with a probability in every step (GoSGD)", "rules:ExchangeRule", {"rule": "random-times"}),
)  # fmt: skip
