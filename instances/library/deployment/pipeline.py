"""The bundled instances of pipelines: chains and graphs from the generator."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentProblem

_SHAPES: dict[str, dict[str, Any]] = {
    "pipeline-tiny-l4-k4": {"layers": 4, "devices": 4, "tensors": (1, 2), "micro_batches": 8, "alike": False},
    "pipeline-chain-l24-k32": {"layers": 24, "devices": 32},
    "pipeline-chain-l24-k32-tight": {"layers": 24, "devices": 32, "memory": 0.25, "alike": False},
    "pipeline-branches-l12-k16": {"shape": "branches", "alike": False},
    "pipeline-random-l8-k8": {"layers": 8, "shape": "random", "devices": 8, "tensors": (1, 2), "alike": False},
}
"""Options by name; the seed is 1."""


def instances() -> Iterator[DeploymentProblem]:
    """All of them."""
    for name, options in _SHAPES.items():
        yield generate("pipeline", 1, name=name, **options)
