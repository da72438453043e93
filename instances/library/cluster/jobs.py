"""The bundled instances of cluster jobs: the efficient width that does not fit twice, and drawn jobs."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.cluster import generate
from ddlopt.models.cluster import ClusterProblem, JobsInstance

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "jobs-makespan-j6-k8": (1, {}),
    "jobs-completion-j5-k6": (2, {"jobs": 5, "servers": 6, "objective": "weighted_completion", "spread": 0.2}),
    "jobs-tardiness-j6-k8": (3, {"objective": "weighted_tardiness", "spread": 0.2, "slack": 1.0}),
    "jobs-known-j5-k6": (4, {"jobs": 5, "servers": 6, "known": 0.8, "objective": "weighted_completion"}),
    "jobs-slots-j3-k4": (5, {"jobs": 3, "servers": 4, "mode": "slots", "objective": "weighted_completion"}),
}
"""Seed and options by name."""


def instances() -> Iterator[ClusterProblem]:
    """All of them."""
    step = [24.0, 12.0, 8.5, 5.5, 5.0]
    yield JobsInstance.from_data(
        {
            "name": "jobs-twins-k5",
            "source": "two equal jobs by hand: the efficient width, 4 of 5 servers, cannot run twice side by side",
            "servers": 5,
            "jobs": [{"name": f"twin-{place}", "iterations": 10, "step_s": step} for place in range(2)],
        }
    )
    for name, (seed, options) in _DRAWN.items():
        yield generate("jobs", seed, name=name, **options)
