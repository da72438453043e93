"""Bundled partitions: layered networks for throughput, contiguous or not, and for latency; tiny ones to enumerate."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentProblem

_INSTANCES: dict[str, tuple[int, dict[str, Any]]] = {
    "stages-n60-k4": (1, {"nodes": 60, "contiguous": True}),
    "stages-n120-k6": (2, {"nodes": 120, "accelerators": 6, "contiguous": True}),
    "stages-training-n80-k6": (3, {"nodes": 80, "accelerators": 6, "training": True, "contiguous": True}),
    "stages-branches-n150-k8": (
        4, {"nodes": 150, "accelerators": 8, "residual": 0.1, "branched": 0.5, "contiguous": True, "memory": 1.4},
    ),
    "partition-n30-k4": (5, {"nodes": 30}),
    "partition-n60-k4-tight": (6, {"nodes": 60, "memory": 1.1}),
    "partition-training-n40-k3": (7, {"nodes": 40, "accelerators": 3, "training": True}),
    "partition-passes-n30-k3": (8, {"nodes": 30, "accelerators": 3, "training": True, "separate_passes": True}),
    "latency-n40-k4": (9, {"nodes": 40, "goal": "latency", "memory": 1.5}),
    "latency-n90-k6": (
        10, {"nodes": 90, "accelerators": 6, "goal": "latency", "memory": 1.3, "residual": 0.6, "branched": 0.1},
    ),
    "partition-tiny-n7-k2": (11, {"nodes": 7, "accelerators": 2, "memory": 1.5}),
    "latency-tiny-n6-k2": (12, {"nodes": 6, "accelerators": 2, "goal": "latency", "memory": 1.2, "unsupported": 0.2}),
}  # fmt: skip
"""Seed and options of kind ``layered`` by name."""


def instances() -> Iterator[DeploymentProblem]:
    """All bundled instances of the problem ``partition``."""
    for name, (seed, options) in _INSTANCES.items():
        yield generate("layered", seed, name=name, **options)
