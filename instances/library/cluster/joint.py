"""The bundled instances of jobs with plans: TopoOpt's networks on a small cluster, and tiny ones."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.cluster import generate
from ddlopt.models.cluster import ClusterProblem

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "joint-tiny-j4-k8": (1, {}),
    "joint-completion-j5-k8": (2, {"jobs": 5, "objective": "weighted_completion"}),
    "joint-tardiness-j4-k6": (3, {"servers": 6, "objective": "weighted_tardiness", "slack": 0.7}),
    "joint-topoopt-j5-k8": (4, {"jobs": 5, "workloads": ("vgg16", "bert"), "widths": (2, 4)}),
}
"""Seed and options by name."""


def instances() -> Iterator[ClusterProblem]:
    """All of them."""
    for name, (seed, options) in _DRAWN.items():
        yield generate("joint", seed, name=name, **options)
