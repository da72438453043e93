"""Bundled trees: the worked example of SOAR, tiny ones to enumerate, complete and random trees, several jobs."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import AggregationProblem, TreeInstance, TreeJob

_INSTANCES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "tree-tiny-n6-k2": ("tree-random", 1, {"nodes": 6, "budget": 2, "capable": 0.7}),
    "tree-tiny-congestion-n7-k2": (
        "tree-random", 2, {"nodes": 7, "budget": 2, "capable": 0.6, "goal": "congestion", "loaded": 0.7},
    ),
    "tree-tiny-jobs-n4-j2": ("tree-random", 3, {"nodes": 4, "jobs": 2, "memory": 1, "budget": 3, "loaded": 0.8}),
    "tree-uniform-n255-k16": ("tree-complete", 4, {"levels": 8, "budget": 16}),
    "tree-power-n1023-k32": (
        "tree-complete", 5, {"levels": 10, "budget": 32, "loads": "power", "rates": "exponential"},
    ),
    "tree-racks-a8-n585-k24": (
        "tree-complete", 6, {"arity": 8, "levels": 4, "budget": 24, "loads": "power", "rates": "linear"},
    ),
    "tree-random-n500-k25": ("tree-random", 7, {"nodes": 500, "budget": 25, "capable": 0.5}),
    "tree-deep-n1000-k40": ("tree-random", 8, {"nodes": 1000, "budget": 40, "depth": 0.97, "loads": "power"}),
    "tree-jobs-n127-j4": (
        "tree-complete", 9, {"levels": 7, "jobs": 4, "loaded": 0.5, "memory": 1, "budget": 40, "rates": "linear"},
    ),
    "tree-jobs-n300-j8": (
        "tree-random", 10, {"nodes": 300, "jobs": 8, "loaded": 0.3, "memory": 2, "budget": 120, "loads": "power"},
    ),
    "tree-congestion-n255-k16": (
        "tree-random", 11, {"nodes": 255, "budget": 16, "capable": 0.5, "goal": "congestion", "loads": "power"},
    ),
    "tree-congestion-n63-j4": (
        "tree-complete", 12,
        {"levels": 6, "jobs": 4, "loaded": 0.5, "memory": 2, "budget": 20, "goal": "congestion", "rates": "linear"},
    ),
}  # fmt: skip
"""Kind, seed and options by name."""


def example(budget: int | None = 2) -> TreeInstance:
    """A complete binary tree with 7 switches on which strategies differ; links of rate 1."""
    return TreeInstance(
        name="tree-soar-n7-k2" if budget == 2 else f"tree-soar-n7-k{budget}",
        source="seven switches, loads 2, 6, 5, 4 at the leaves, unit rates: first case of the public re-implementation "
        "of SOAR (owlright/graph-match); the figures are facts, nothing else is taken from it",
        parents=(None, 0, 0, 1, 1, 2, 2),
        names=("root", "left", "right", "leaf 2", "leaf 6", "leaf 5", "leaf 4"),
        seconds_per_message=(1.0,) * 7,
        jobs=(TreeJob(name="job", loads=(0, 0, 0, 2, 6, 5, 4)),),
        budget=budget,
    )


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``tree``."""
    yield example()
    for name, (kind, seed, options) in _INSTANCES.items():
        yield generate(kind, seed, name=name, **options)
