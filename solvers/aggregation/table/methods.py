"""The methods for the problem ``table``."""

from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.table.instance import TableInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, formulation, heuristic

FAMILY = "aggregation"

_heuristic = partial(heuristic, FAMILY)
_path = formulation(FAMILY, "table-milp", "table.formulations.table_path", "TablePath")


def _entry(name: str, kind: str, summary: str, make: Maker) -> Entry:
    return Entry(name, FAMILY, kind, f"table: {summary}", make)


def best(instance: TableInstance, solver: str) -> Method:
    """Staircases and their knapsack, at any size."""
    method: Method = import_module("ddlopt.solvers.aggregation.table.exact").OptimalTables()
    return method


def milp(instance: TableInstance, solver: str) -> Method:
    """Paths through small tables."""
    return _path(solver)


ENTRIES: tuple[Entry, ...] = (
    _entry(
        "table",
        "exact",
        "fewest entries for each error, memory by a knapsack",
        _heuristic("table.exact", "OptimalTables"),
    ),
    _entry("table-milp", "exact", "entries as paths, an integer program for small tables", _path),
    _entry(
        "table-even", "heuristic", "the best entries in equal memories", _heuristic("table.heuristics", "EvenTables")
    ),
    _entry(
        "table-uniform",
        "heuristic",
        "entries of one length in equal memories",
        _heuristic("table.heuristics", "UniformTables"),
    ),
    _entry(
        "table-logarithmic",
        "heuristic",
        "entries by leading bits in equal memories",
        _heuristic("table.heuristics", "LogarithmicTables"),
    ),
    _entry(
        "table-variation",
        "heuristic",
        "entries over which the function climbs by the same",
        _heuristic("table.heuristics", "VariationTables"),
    ),
    _entry(
        "table-split",
        "heuristic",
        "the worst entry in two, again and again",
        _heuristic("table.heuristics", "SplitTables"),
    ),
)
