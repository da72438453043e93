"""The bundled instances of strategy selection: training graphs and trees from the generators."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.deployment.strategies import StrategyInstance

_KINDS = {"training": "deployment_strategies.training", "tree": "deployment_strategies.tree"}

_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "strategies-chain-n30": ("tree", {"nodes": 30, "branching": 1}),
    "strategies-tree-n60": ("tree", {"nodes": 60, "branching": 8, "layouts": 8}),
    "strategies-tree-n40-memory": ("tree", {"memory": 0.2}),
    "strategies-training-l4": ("training", {"layers": 4, "layouts": 4, "leaves": 1}),
    "strategies-training-l8": ("training", {"layers": 8}),
    "strategies-training-l12-free": ("training", {"memory": None}),
    "strategies-training-l12-tight": ("training", {"memory": 0.1, "layouts": 8}),
    "strategies-training-l24": ("training", {"layers": 24, "layouts": 8, "kinds": 4}),
    "strategies-training-l24-alike": ("training", {"layers": 24, "layouts": 8, "kinds": 4, "alike": True}),
    "strategies-training-l96": ("training", {"layers": 96, "layouts": 12, "kinds": 5, "leaves": 3}),
}
"""Kind and options by name; the seed is 1."""


def instances() -> Iterator[StrategyInstance]:
    """All of them."""
    for name, (kind, options) in _SHAPES.items():
        yield by_kind.made(_KINDS, kind, 1, {**options, "name": name})
