"""Collectives as tables: the trees, and what each link carries."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from ddlopt.instances.writers.layout import Section, number, path, section
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan


def table(instance: CollectiveInstance, solution: CollectivePlan) -> Iterator[Section]:
    """Sections of a plan."""
    rows, load = [], defaultdict[tuple[int, int], Fraction](Fraction)
    for place, tree in enumerate(solution.trees):
        for phase, paths in (("gather", tree.gather), ("spread", tree.spread)):
            for each in paths:
                rows.append((place, tree.share, tree.root, phase, path(each)))
                for link in pairwise(each):
                    load[link] += Fraction(tree.share)
    yield section("Trees", ("tree", "share of the bytes", "root", "phase", "hop by hop"), rows)
    size_of = Fraction(instance.collective_bytes)
    busy = [
        (f"{i} -> {j}", str(load[i, j]), number(float(load[i, j] * size_of / Fraction(each))))
        for (i, j), each in instance.bandwidth.items()
    ]
    yield section("Links", ("link", "share of the bytes", "busy s"), busy)
