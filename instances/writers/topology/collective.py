"""Collectives as tables: the trees, and what each link carries."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, number, path, section
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, busy_s, shares_of_links


def table(instance: CollectiveInstance, solution: CollectivePlan) -> Iterator[Section]:
    """Sections of a plan."""
    rows = []
    for place, tree in enumerate(solution.trees):
        for phase, paths in (("gather", tree.gather), ("spread", tree.spread)):
            for each in paths:
                rows.append((place, tree.share, tree.root, phase, path(each)))
    yield section("Trees", ("tree", "share of the bytes", "root", "phase", "hop by hop"), rows)
    load, seconds = shares_of_links(solution.trees), busy_s(instance, solution.trees)
    busy = [
        (f"{i} -> {j}", str(load.get((i, j), 0)), number(float(seconds.get((i, j), 0)))) for i, j in instance.bandwidth
    ]
    yield section("Links", ("link", "share of the bytes", "busy s"), busy)
