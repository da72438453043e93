"""The methods for the problem ``table``."""

from importlib import import_module

from ddlopt.models.aggregation.table.instance import TableInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

ROOM = "aggregation/table"

_path = formulation(ROOM, "milp", "formulations.table_path:TablePath")


def best(instance: TableInstance, solver: str) -> Method:
    """Staircases and their knapsack, at any size."""
    method: Method = import_module("ddlopt.solvers.aggregation.table.exact").OptimalTables()
    return method


def milp(instance: TableInstance, solver: str) -> Method:
    """Paths through small tables."""
    return _path(solver)


ENTRIES = entries(
    ROOM,
    ("table", "exact", "fewest entries for each error, memory by a knapsack", "exact:OptimalTables"),
    ("table-even", "heuristic", "the best entries in equal memories", "heuristics:EvenTables"),
    ("table-uniform", "heuristic", "entries of one length in equal memories", "heuristics:UniformTables"),
    ("table-logarithmic", "heuristic", "entries by leading bits in equal memories", "heuristics:LogarithmicTables"),
    ("table-variation", "heuristic", "entries over which the function climbs by the same", "heuristics:VariationTables"),
    ("table-split", "heuristic", "the worst entry in two, again and again", "heuristics:SplitTables"),
)  # fmt: skip
