"""Aggregation in networks: programs beside each other, how column generation grows, and the price of fewer aggregators.

    python benchmarks/aggregation_graph.py [programs] [rates] [growth] [front] [--seconds S]

*programs*: relaxation and seconds of the program of two layers, the plain one and column generation, with a gap of
1e-4. *rates*: the programs over levels with and without flows, with forced merging and without. *growth*: column
generation on fat-trees of 16 to 250 hosts. *front*: utilization by aggregators and by connections, on a fat-tree of
16 hosts.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ddlopt.analysis.aggregation_front import Count, front
from ddlopt.instances import load
from ddlopt.instances.generators.aggregation_graph import fat_tree, leaf_spine, random_graph, torus
from ddlopt.models.aggregation import GraphInstance
from ddlopt.models.aggregation.bounds_graph import graph_bound
from ddlopt.models.aggregation.graph_aggregation import GraphAggregation
from ddlopt.models.aggregation.graph_plain import PlainGraph
from ddlopt.models.aggregation.rate_levels import RateLevels
from ddlopt.models.aggregation.rate_messages import RateMessages
from ddlopt.solvers.aggregation.graph_search import GraphSearch
from ddlopt.solvers.aggregation.graph_trees import GraphTrees
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.exact import Exact, lp_relaxation

Maker = Callable[..., GraphInstance]

TABLES = ("programs", "rates", "growth", "front")
_SMALL: dict[str, tuple[Maker, dict[str, Any]]] = {
    "fat-tree k=4": (fat_tree, {"jobs": 4, "workers": 3, "slots": 1}),
    "leaf-spine 4x2": (leaf_spine, {"jobs": 4, "workers": 3, "slots": 1, "aggregators": 4}),
    "torus 4x4": (torus, {"jobs": 3, "workers": 4, "slots": 1, "aggregators": 3}),
    "random 12": (random_graph, {"jobs": 4, "workers": 4, "slots": 1, "aggregators": 5}),
}


def drawn(make: Maker, seed: int = 1, **options: Any) -> GraphInstance:
    """An instance by seed."""
    return make(np.random.default_rng(seed), **options)


def shown(result: Result) -> str:
    """Seconds, or the gap that is left."""
    if result.gap is not None and result.gap <= 1e-4:
        return f"{result.runtime_s:.1f} s"
    return "no answer" if result.gap is None else f"gap {100 * result.gap:.1f} %"


def programs(seconds: float) -> None:
    """Two layers, one, and trees."""
    methods: list[Method] = [
        Exact("graph", "aggregation", GraphAggregation()),
        Exact("graph-plain", "aggregation", PlainGraph()),
        GraphTrees(),
    ]
    print("| instance | goal | relaxation, two layers | relaxation, plain |", " | ".join(m.name for m in methods), "|")
    print("|---" * 7 + "|")
    for name, (make, options) in _SMALL.items():
        for goal in ("utilization", "congestion"):
            instance = drawn(make, goal=goal, **options)
            results = [method.solve(instance, Limits(time_s=seconds)) for method in methods]
            best = min(result.objective for result in results if result.objective is not None)
            parts = [lp_relaxation(each, instance).objective / best for each in (GraphAggregation(), PlainGraph())]
            cells = [f"{part:.3f}" for part in parts] + [shown(result) for result in results]
            print(f"| {name} | {goal} |", " | ".join(cells), "|", flush=True)


def rates(seconds: float) -> None:
    """Levels with flows and without."""
    print("| instance | sum of rates, GB/s | with flows | without |")
    print("|---" * 4 + "|")
    common = {"goal": "rates", "merging": True, "slots": 8, "aggregation_bytes_per_s": 1.25e10}
    for name, make, options in (
        ("leaf-spine 8x8, 8 jobs of 7", leaf_spine, {"leaves": 8, "spines": 8, "hosts": 8, "jobs": 8, "workers": 7}),
        ("fat-tree k=4, 4 jobs of 3", fat_tree, {"jobs": 4, "workers": 3}),
        ("torus 4x4, 4 jobs of 3", torus, {"jobs": 4, "workers": 3}),
    ):
        instance = drawn(make, **common, **options)
        found = [
            Exact("rates", "aggregation", RateLevels(flows=each)).solve(instance, Limits(time_s=seconds))
            for each in (True, False)
        ]
        print(f"| {name} | {(found[0].objective or 0) / 1e9:.2f} |", " | ".join(map(shown, found)), "|", flush=True)
    print()
    rates_apart(seconds)


def rates_apart(seconds: float) -> None:
    """Rates without forced merging; both programs start from what the search finds."""
    print("| instance | search, GB/s | best | bound without a solver | relaxation with flows | without | ", end="")
    print("`rate-messages` | `rate-messages-plain` |")
    print("|---" * 8 + "|")
    for name, instance in _apart().items():
        start = GraphSearch(rounds=20_000).solve(instance, Limits(time_s=seconds))
        forms = [RateMessages(), RateMessages(flows=False)]
        methods = [Exact("rates", "aggregation", form) for form in forms]
        results = [method.solve(instance, Limits(time_s=seconds), start=start.solution) for method in methods]
        best = max(result.objective or 0.0 for result in results)
        figures = [start.objective or 0.0, best, graph_bound(instance)]
        figures += [lp_relaxation(form, instance).objective for form in forms]
        cells = [f"{figure / 1e9:.2f}" for figure in figures]
        print(f"| {name} |", " | ".join([*cells, *map(shown, results)]), "|", flush=True)


def _apart() -> dict[str, GraphInstance]:
    narrow = {"goal": "rates", "slots": 1, "spine_bandwidth_bytes_per_s": 6.25e9}
    wide = {"leaves": 4, "spines": 3, "hosts": 3, "jobs": 4, "workers": 5, "aggregators": 5}
    drawn_torus = {"goal": "rates", "jobs": 4, "workers": 4, "slots": 1, "aggregators": 3}
    thin = {"goal": "rates", "jobs": 4, "workers": 5, "slots": 2, "oversubscription": 4.0}
    return {
        "leaf-spine-8x4-rates": load("aggregation/leaf-spine-8x4-rates"),
        "random-graph-16-rates": load("aggregation/random-graph-16-rates"),
        "leaf-spine 4x2, 6 jobs of 4": drawn(leaf_spine, jobs=6, workers=4, **narrow),
        "leaf-spine 4x3, 4 of 5, 5 aggregators": drawn(leaf_spine, seed=2, **wide, **narrow),
        "fat-tree k=4, 1:4, 4 of 5": drawn(fat_tree, **thin),
        "torus 4x4, 4 of 4, 3 aggregators": drawn(torus, **drawn_torus),
        "another one of the same kind": drawn(torus, seed=2, **drawn_torus),
    }


def growth(seconds: float) -> None:
    """Fat-trees with k = 4, 6, 8, 10; all hosts are in a job."""
    print("| k | hosts | jobs of 7 | goal | slots | aggregators | objective, s | bound / objective | seconds |")
    print("|---" * 9 + "|")
    for k, jobs in ((4, 2), (6, 6), (8, 16), (10, 31)):
        for goal in ("utilization", "congestion"):
            for aggregators in (None, 2 * jobs, jobs):
                instance = drawn(fat_tree, k=k, jobs=jobs, workers=7, slots=1, goal=goal, aggregators=aggregators)
                began = time.perf_counter()
                found = GraphTrees().solve(instance, Limits(time_s=seconds))
                taken_s = time.perf_counter() - began
                ratio = (found.bound or 0.0) / (found.objective or 1.0)
                text = "free" if aggregators is None else str(aggregators)
                print(
                    f"| {k} | {k**3 // 4} | {jobs} | {goal} | 1 | {text} | {found.objective:.5g} | {ratio:.4f} "
                    f"| {taken_s:.1f} |",
                    flush=True,
                )


def fronts(seconds: float) -> None:
    """Limit by limit."""
    overs: tuple[Count, Count] = ("aggregators", "connections")
    for over in overs:
        instance = drawn(fat_tree, jobs=2, workers=7, slots=1, goal="utilization")
        print(f"| {over} | utilization, s | proven |")
        print("|---" * 3 + "|")
        for point in front(instance, over, Limits(time_s=seconds)):
            print(f"| {point.used} | {point.objective:.5g} | {'yes' if point.proven else 'no'} |", flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), help=", ".join(TABLES))
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    makers = {"programs": programs, "rates": rates, "growth": growth, "front": fronts}
    for table in given.tables:
        makers[table](given.seconds)
        print()


if __name__ == "__main__":
    main()
