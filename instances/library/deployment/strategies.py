"""The bundled instances of strategy selection: training graphs and trees from the generators."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentProblem

_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "strategies-chain-n30": ("strategies-tree", {"nodes": 30, "branching": 1}),
    "strategies-tree-n60": ("strategies-tree", {"nodes": 60, "branching": 8, "layouts": 8}),
    "strategies-tree-n40-memory": ("strategies-tree", {"memory": 0.2}),
    "strategies-training-l4": ("strategies", {"layers": 4, "layouts": 4, "leaves": 1}),
    "strategies-training-l8": ("strategies", {"layers": 8}),
    "strategies-training-l12-free": ("strategies", {"memory": None}),
    "strategies-training-l12-tight": ("strategies", {"memory": 0.1, "layouts": 8}),
    "strategies-training-l24": ("strategies", {"layers": 24, "layouts": 8, "kinds": 4}),
    "strategies-training-l24-alike": ("strategies", {"layers": 24, "layouts": 8, "kinds": 4, "alike": True}),
    "strategies-training-l96": ("strategies", {"layers": 96, "layouts": 12, "kinds": 5, "leaves": 3}),
}
"""Kind and options by name; the seed is 1."""


def instances() -> Iterator[DeploymentProblem]:
    """All of them."""
    for name, (kind, options) in _SHAPES.items():
        yield generate(kind, 1, name=name, **options)
