"""The problem ``aggregation/table``: what belongs to its room, as data."""

from ddlopt.models.aggregation.table.evaluate import evaluate_table
from ddlopt.models.aggregation.table.instance import LookupTables, TableInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/table",
    title="which entries lookup tables for sums have",
    counts="operands",
    limited_by="memory for entries",
    instance=TableInstance,
    solution=LookupTables,
    evaluate=evaluate_table,
    bound=later("ddlopt.models.aggregation.table.bounds:table_bound"),
)
