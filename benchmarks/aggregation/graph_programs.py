"""Aggregation in networks: programs beside each other, growth of column generation, the price of fewer aggregators."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.analysis.aggregation_front import front
from ddlopt.frontier.aggregation.graph.column_generation.trees import GraphTrees
from ddlopt.frontier.aggregation.graph.formulations.rate_messages import RateMessages
from ddlopt.frontier.aggregation.graph.formulations.single_layer_flow import SingleLayerFlow
from ddlopt.instances import load
from ddlopt.instances.generators.aggregation.graph import fat_tree, leaf_spine, random_graph, torus
from ddlopt.models.aggregation import GraphInstance
from ddlopt.models.aggregation.graph.bounds import graph_bound
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import GraphAggregation
from ddlopt.models.aggregation.graph.formulations.rate_levels import RateLevels
from ddlopt.solvers.aggregation.graph.search import GraphSearch
from ddlopt.solvers.contracts import Result
from ddlopt.solvers.exact import Exact, lp_relaxation

Maker = Callable[..., GraphInstance]
SMALL: dict[str, tuple[Maker, dict[str, Any]]] = {
    "fat-tree k=4": (fat_tree, {"jobs": 4, "workers": 3, "slots": 1}),
    "leaf-spine 4x2": (leaf_spine, {"jobs": 4, "workers": 3, "slots": 1, "aggregators": 4}),
    "torus 4x4": (torus, {"jobs": 3, "workers": 4, "slots": 1, "aggregators": 3}),
    "random 12": (random_graph, {"jobs": 4, "workers": 4, "slots": 1, "aggregators": 5}),
}
LEVELS: dict[str, tuple[Maker, dict[str, Any]]] = {
    "leaf-spine 8x8, 8 jobs of 7": (leaf_spine, {"leaves": 8, "spines": 8, "hosts": 8, "jobs": 8, "workers": 7}),
    "fat-tree k=4, 4 jobs of 3": (fat_tree, {"jobs": 4, "workers": 3}),
    "torus 4x4, 4 jobs of 3": (torus, {"jobs": 4, "workers": 3}),
}


def drawn(make: Maker, seed: int = 1, **options: Any) -> GraphInstance:
    """An instance by seed."""
    return make(np.random.default_rng(seed), **options)


def shown(result: Result) -> str:
    """Seconds, or the gap that is left."""
    if result.gap is not None and result.gap <= 1e-4:
        return f"{result.runtime_s:.1f} s"
    return "no answer" if result.gap is None else f"gap {100 * result.gap:.1f} %"


def programs(asked):
    """Relaxation and seconds of the program of two layers, the plain one and column generation, to a gap of 1e-4."""
    formulations = {"graph": GraphAggregation(), "graph-plain": SingleLayerFlow()}
    methods = [*(Exact(name, "aggregation", each) for name, each in formulations.items()), GraphTrees()]
    for name, (make, options) in list(SMALL.items())[: asked.cases]:
        for goal in ("utilization", "congestion"):
            instance = drawn(make, goal=goal, **options)
            results = [method.solve(instance, asked.limits) for method in methods]
            best = min(result.objective for result in results if result.objective is not None)
            parts = {f"relaxation, {each}": f"{lp_relaxation(formulation, instance).objective / best:.3f}"
                     for each, formulation in formulations.items()}  # fmt: skip
            times = {method.name: shown(result) for method, result in zip(methods, results, strict=True)}
            yield {"instance": name, "goal": goal, **parts, **times}


def rates(asked):
    """The programs over levels with and without flows; then without forced merging, from what the search finds."""
    common = {"goal": "rates", "merging": True, "slots": 8, "aggregation_bytes_per_s": 1.25e10}
    for name, (make, options) in list(LEVELS.items())[-asked.cases :]:
        instance = drawn(make, **common, **options)
        found = {flows: Exact("rates", "aggregation", RateLevels(flows=flows)).solve(instance, asked.limits)
                 for flows in (True, False)}  # fmt: skip
        objective = f"{(found[True].objective or 0) / 1e9:.2f}"
        yield {"instance": name, "sum of rates, GB/s": objective, "with flows": shown(found[True]),
               "without": shown(found[False])}  # fmt: skip
    for name, instance in list(apart().items())[: asked.cases]:
        start = GraphSearch(rounds=20_000).solve(instance, asked.limits)
        forms = {"rate-messages": RateMessages(), "rate-messages:flows=false": RateMessages(flows=False)}
        results = {form_name: Exact("rates", "aggregation", form).solve(instance, asked.limits, start=start.solution)
                   for form_name, form in forms.items()}  # fmt: skip
        figures = {
            "search, GB/s": start.objective or 0.0,
            "best": max(result.objective or 0.0 for result in results.values()),
            "bound without a solver": graph_bound(instance),
            "relaxation with flows": lp_relaxation(forms["rate-messages"], instance).objective,
            "without": lp_relaxation(forms["rate-messages:flows=false"], instance).objective,
        }
        cells = {heading: f"{figure / 1e9:.2f}" for heading, figure in figures.items()}
        yield {"instance": name, **cells, **{f"`{each}`": shown(result) for each, result in results.items()}}


def apart() -> dict[str, GraphInstance]:
    """Instances of rates on which merging is not forced."""
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


def growth(asked):
    """Column generation on fat-trees of 16 to 250 hosts, all of them in a job."""
    for k in asked.sizes:
        jobs = {4: 2, 6: 6, 8: 16, 10: 31}[k]
        for goal in ("utilization", "congestion"):
            for aggregators in (None, 2 * jobs, jobs):
                instance = drawn(fat_tree, k=k, jobs=jobs, workers=7, slots=1, goal=goal, aggregators=aggregators)
                found, spent = timed(GraphTrees().solve, instance, asked.limits)
                yield {
                    "k": k, "hosts": k**3 // 4, "jobs of 7": jobs, "goal": goal, "slots": 1,
                    "aggregators": "free" if aggregators is None else aggregators,
                    "objective, s": f"{found.objective:.5g}",
                    "bound / objective": f"{(found.bound or 0.0) / (found.objective or 1.0):.4f}",
                    "seconds": f"{spent.wall_s:.1f}",
                }  # fmt: skip


def fronts(asked):
    """Utilization by the most aggregators and by the most connections, on a fat-tree of 16 hosts."""
    instance = drawn(fat_tree, jobs=2, workers=7, slots=1, goal="utilization")
    for over in ("aggregators", "connections"):
        for point in front(instance, over, asked.limits):
            yield {over: point.used, "utilization, s": f"{point.objective:.5g}", "proven": point.proven}


BENCH = Benchmark(
    programs, rates, growth, fronts,
    time_limit=Option(60.0, quick=2.0),
    cases=Option(7, "how many instances of a table", quick=1),
    sizes=Option([4, 6, 8, 10], "k of fat-trees, of 4, 6, 8, 10", quick=[4]),
)  # fmt: skip
