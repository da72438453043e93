"""A bound for the problem ``strategies`` that needs no solver."""

import weakref

from ddlopt.frontier.deployment.strategies.dual import Dual
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.instance import StrategyInstance

# Fewer where the core is large, so that a bound stays cheap.
_SWEEPS = 60
_MOST_ENTRIES = 5e7
"""Entries of tables that are looked at in all sweeps, which takes a second or so."""

_KNOWN: dict[int, tuple[weakref.ref[StrategyInstance], float]] = {}


def strategies_bound(instance: StrategyInstance) -> float:
    """What some passes of messages without prices of memory prove (:mod:`ddlopt.frontier.deployment.strategies.dual`).

    Raises
    ------
    InfeasibleError
        If forbidden pairs, pins, or the least usages at some time, leave no choice.
    """
    key = id(instance)
    if key in _KNOWN:
        return _KNOWN[key][1]
    dual = Dual(core_of(instance))
    dual.sweep(max(2, min(_SWEEPS, int(_MOST_ENTRIES / (len(dual.core.table) + 1)))))
    dual.bound()
    found = max(0.0, dual.proven)
    _KNOWN[key] = weakref.ref(instance, lambda _: _KNOWN.pop(key, None)), found
    return found
