"""Heuristics for aggregation in networks: objective of each on the bundled instances, relative to the best."""

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances.library import load, names
from ddlopt.models.aggregation import GraphInstance
from ddlopt.solvers import catalogue
from ddlopt.solvers.aggregation.graph.methods import strategy
from ddlopt.solvers.contracts import best_bound, best_objective

STRATEGIES = ("level", "top", "max")


def entries():
    """Those of the problem that are not exact."""
    own = catalogue.own_entries("aggregation")
    return [entry for entry in own if entry.kind != "exact" and entry.summary.startswith("graph: ")]


def heuristics(asked):
    """A row for each instance."""
    found = [name for name in names("aggregation") if asked.part in name]
    for instance in filter(lambda each: isinstance(each, GraphInstance), map(load, found)):
        methods = {entry.name: entry.make("highs") for entry in entries()}
        methods |= {name: strategy(instance, name) for name in STRATEGIES}
        results = {name: solved(method, instance, asked.limits) for name, method in methods.items()}
        # What a ring does is no aggregation.
        rivals = [result.objective for name, result in results.items() if result is not None and name != "ring"]
        best = best_objective(rivals, instance.sense)
        bound = best_bound([result.bound for result in results.values() if result is not None], instance.sense)
        yield {
            "instance": instance.name,
            "best": f"{best:.5g}",
            "bound / best": None if bound is None else f"{bound / best:.3f}",
            **{name: None if result is None else relative(result.objective, best, instance.sense)
               for name, result in results.items()},
        }  # fmt: skip


def relative(value: float | None, best: float, sense: str) -> str | None:
    """How many times worse than the best; below 1 where it is better."""
    if value is None:
        return None
    return f"{value / best if sense == 'minimize' else best / value:.3f}"


BENCH = Benchmark(
    heuristics,
    time_limit=Option(20.0, quick=1.0),
    part=Option("", "of the names of instances", quick="tiny"),
)
