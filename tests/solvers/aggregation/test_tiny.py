"""Whatever is tiny is proven by the default method, and is what looking at every answer finds."""

from contextlib import suppress

import aggregation_graph_cases
import hot_cases
import pytest
import register_cases
import slots_cases
import table_cases
import tree_cases
from volume import for_each

import ddlopt
from ddlopt.models.errors import InstanceError

GOALS = ("congestion", "utilization", "rates")


def registers(seed):
    asked = register_cases.small(seed, "packets" if seed % 2 else "collisions")
    return asked, register_cases.optimum(asked)


def trees(seed):
    asked = tree_cases.random_tree(seed, nodes=(7, 4, 3)[seed % 3], jobs=1 + seed % 3)
    return asked, tree_cases.optimum(asked)


def hot(seed):
    asked = hot_cases.drawn(seed, jobs=1 + seed % 3, switches=1 + seed % 2, most=3)
    return asked, float(hot_cases.best_by_enumeration(asked))


def tables(seed):
    options = {"goal": ("sum", "max")[seed % 2], "entries": ("ranges", "prefixes")[seed // 2 % 2]}
    (asked,) = table_cases.several(1, seed, **options)
    return asked, table_cases.optimum(asked)


def slots(seed):
    goal = ("total", "slowest")[seed // 2 % 2]
    asked = slots_cases.slots_instance(seed, jobs=1 + seed % 3, back=0.3, goal=goal, slots=(3, 7))
    return asked, slots_cases.optimum_by_enumeration(asked)


def graphs(seed):
    """A network, or one drawn later where a worker has no route to its server."""
    for again in range(100):
        with suppress(InstanceError):
            asked = aggregation_graph_cases.random_instance(seed + 1000 * again, goal=GOALS[seed % 3])
            return asked, aggregation_graph_cases.optimum(asked)
    raise AssertionError("no network has all routes")


@for_each("drawn", [registers, trees, hot, tables, slots, graphs])
@for_each("seed", range(200))
def test_all_that_is_tiny_is_proven(seed, drawn):
    asked, optimum = drawn(seed)
    found = ddlopt.solve(asked, gap=1e-5, time_limit=600)
    if optimum is None:
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert float(found.objective) == pytest.approx(optimum, rel=1e-5, abs=1e-12)
