"""The methods for the problem ``exchange``."""

from functools import partial
from importlib import import_module

from ddlopt.models.gossip.exchange.instance import ExchangeInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, formulation, heuristic

FAMILY = "gossip"

_heuristic = partial(heuristic, FAMILY)
_path = formulation(FAMILY, "exchange-path", "exchange.formulations.exchange_path", "ExchangePath")


def best(instance: ExchangeInstance, solver: str) -> Method:
    """The search over prices, at any length."""
    method: Method = import_module("ddlopt.solvers.gossip.exchange.exact").OptimalTimes()
    return method


def milp(instance: ExchangeInstance, solver: str) -> Method:
    """Paths through short trajectories."""
    return _path(solver)


def _entry(name: str, kind: str, summary: str, make: Maker) -> Entry:
    return Entry(name, FAMILY, kind, f"exchange: {summary}", make)


def _rule(name: str, summary: str) -> Entry:
    return _entry(name, "heuristic", summary, _heuristic("exchange.rules", "ExchangeRule", rule=name))


ENTRIES: tuple[Entry, ...] = (
    _entry(
        "exchange-times", "exact", "the best times, by prices of sends", _heuristic("exchange.exact", "OptimalTimes")
    ),
    _entry(
        "exchange-dynamic",
        "exact",
        "a table over steps and sends, for short trajectories",
        _heuristic("exchange.exact", "DynamicProgram"),
    ),
    _entry("exchange-path", "exact", "a path through the steps, an integer program", _path),
    _rule("threshold", "send at a distance from the model sent last"),
    _rule("relative-threshold", "at a distance relative to that model's norm"),
    _rule("rate-threshold", "at a distance relative to the learning rate (SPARQ-SGD)"),
    _rule("norm-threshold", "at a change of a tensor's norm (after EventGraD)"),
    _rule("speed-rule", "at a distance that goes with the cube root of the speed"),
    _rule("sum-rule", "at a sum of staleness since the last send"),
    _rule("fixed-period", "every so many steps"),
    _rule("random-times", "with a probability in every step (GoSGD)"),
)
