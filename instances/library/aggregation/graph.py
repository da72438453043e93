"""Bundled networks with jobs: tiny ones to enumerate, leaf-spine, fat-trees, tori, random graphs, and Abilene."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.generators.aggregation.graph import hosts_at_switches
from ddlopt.instances.generators.aggregation.jobs import JobOptions, instance_on
from ddlopt.models.aggregation import AggregationProblem, GraphInstance

# 100 Gb/s in bytes per second.
_LINK = 1.25e10

_INSTANCES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "graph-tiny-congestion": ("torus", 1, {"sides": [2, 2], "jobs": 2, "workers": 2, "slots": 1}),
    "graph-tiny-utilization": (
        "leaf-spine", 2,
        {"leaves": 2, "hosts": 2, "jobs": 2, "goal": "utilization", "aggregators": 2},
    ),
    "graph-tiny-rates": (
        "torus", 3, {"sides": [4], "jobs": 2, "workers": 3, "goal": "rates", "merging": True},
    ),
    "graph-tiny-rates-apart": ("torus", 3, {"sides": [4], "jobs": 2, "workers": 3, "goal": "rates"}),
    "leaf-spine-4x2-congestion": (
        "leaf-spine", 4, {"jobs": 6, "workers": 5, "slots": 1, "spine_bandwidth_bytes_per_s": _LINK / 2},
    ),
    "leaf-spine-4x2-connections": (
        "leaf-spine", 5, {"jobs": 4, "workers": 6, "slots": 2, "connections": 2},
    ),
    "leaf-spine-8x4-rates": (
        "leaf-spine", 6,
        {"leaves": 8, "spines": 4, "jobs": 8, "workers": 7, "slots": 3, "goal": "rates", "merging": False,
         "spine_bandwidth_bytes_per_s": _LINK / 2, "aggregation_bytes_per_s": _LINK},
    ),
    "fat-tree-k4-congestion": (
        "fat-tree", 7, {"jobs": 8, "workers": 7, "slots": 1, "oversubscription": 2.0},
    ),
    "fat-tree-k4-utilization": (
        "fat-tree", 8, {"jobs": 8, "workers": 7, "slots": 2, "goal": "utilization", "aggregators": 12},
    ),
    "fat-tree-k4-merging": (
        "fat-tree", 9,
        {"jobs": 8, "workers": 7, "slots": 8, "goal": "rates", "merging": True, "aggregation_bytes_per_s": _LINK},
    ),
    "fat-tree-k8-congestion": (
        "fat-tree", 10, {"k": 8, "jobs": 16, "workers": 15, "slots": 1, "oversubscription": 4.0},
    ),
    "fat-tree-k8-budget": (
        "fat-tree", 1, {"k": 8, "jobs": 16, "workers": 7, "slots": 1, "aggregators": 16},
    ),
    "fat-tree-k8-utilization": (
        "fat-tree", 11, {"k": 8, "jobs": 16, "workers": 7, "slots": 1, "goal": "utilization", "aggregators": 32},
    ),
    "torus-4x4-utilization": (
        "torus", 12, {"jobs": 6, "workers": 6, "slots": 1, "goal": "utilization", "aggregators": 6},
    ),
    "torus-3x3x3-congestion": ("torus", 13, {"sides": [3, 3, 3], "jobs": 9, "workers": 8, "slots": 1}),
    "random-graph-16-rates": (
        "graph-random", 14, {"switches": 16, "jobs": 6, "workers": 6, "slots": 2, "goal": "rates"},
    ),
}  # fmt: skip
"""Kind, seed and options by name."""

_ABILENE = (
    "New York", "Chicago", "Washington DC", "Seattle", "Sunnyvale", "Los Angeles", "Denver", "Kansas City", "Houston",
    "Atlanta", "Indianapolis",
)  # fmt: skip
_ABILENE_LINKS = (
    (0, 1), (0, 2), (1, 10), (2, 9), (3, 4), (3, 6), (4, 5), (4, 6), (5, 8), (6, 7), (7, 8), (7, 10), (8, 9), (9, 10),
)  # fmt: skip


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``graph``."""
    for name, (kind, seed, options) in _INSTANCES.items():
        yield generate(kind, seed, name=name, **options)
    yield _abilene("abilene-congestion", "congestion", None)
    yield _abilene("abilene-utilization", "utilization", 4)


def _abilene(name: str, goal: str, aggregators: int | None) -> GraphInstance:
    """Four jobs between the cities of Abilene, 10 Gb/s each link."""
    job_options = JobOptions(4, 5, "random", None, 1, 1, None, goal, aggregators, None, False)
    source = (
        "nodes and links of Abilene.gml, The Internet Topology Zoo (S. Knight, H. X. Nguyen, N. Falkner, R. Bowden, "
        "M. Roughan; CC BY 4.0, DOI 10.25909/30153949); a host at each, 10 Gb/s, 4 jobs drawn with seed 0; "
        "gradients drawn from ResNet-50, ResNet-101, VGG-16, VGG-19, BERT-base and GPT-2"
    )
    fabric = hosts_at_switches(list(_ABILENE), list(_ABILENE_LINKS), 1.25e9)
    return instance_on(np.random.default_rng(0), name, source, fabric, job_options)
