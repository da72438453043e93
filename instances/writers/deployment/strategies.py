"""Strategies of operators as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, number, section
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance


def table(instance: StrategyInstance, solution: StrategyAssignment) -> Iterator[Section]:
    """Sections of an assignment."""
    rows = [
        (
            node,
            choice,
            len(instance.costs[node]),
            number(instance.costs[node][choice]),
            number(instance.usages[node][choice]),
            f"{begin}..{end}",
        )
        for node, (choice, (begin, end)) in enumerate(
            zip(solution.strategies, instance.intervals.tolist(), strict=True)
        )
    ]
    columns = ("node", "strategy", "of", "cost", "memory", "alive")
    yield section("Strategy of every node", columns, rows)
    edges = []
    for edge, (i, j) in enumerate(instance.edges.tolist()):
        row, columns_of = solution.strategies[i], len(instance.costs[j])
        costs = instance.tables[int(instance.table_of[edge])]
        edges.append((i, j, number(costs[row * columns_of + solution.strategies[j]])))
    yield section("Changes of layout between nodes", ("from", "to", "cost"), edges)
