"""Bundled sets of jobs that share switches: tiny ones to enumerate, and racks with published sizes of memory."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import AggregationProblem

_LATE = {"loss": 1e-3, "slow_chance": 0.01}
"""A packet in a thousand is lost, with the timeout of SwitchML; one in a hundred is ten round trips late."""
_INSTANCES: dict[str, tuple[int, dict[str, Any]]] = {
    "slots-tiny-n3": (1, {"jobs": 3, "racks": 1, "workers": 4, "memory": 0.001, "whole": True}),
    "slots-tiny-back-n4": (2, {"jobs": 4, "racks": 2, "workers": 4, "memory": 0.001, "servers": 0.7, "whole": True}),
    "slots-rack-n16": (3, {"jobs": 16, "racks": 1, "whole": True}),
    "slots-racks-n16": (4, {"jobs": 16, "racks": 4}),
    "slots-racks-links-n24": (5, {"jobs": 24, "racks": 4, "uplink_gbit_per_s": 100.0, "spread": 0.8}),
    "slots-racks-whole-n24": (6, {"jobs": 24, "racks": 4, "memory": 0.02, "whole": True, "spread": 0.8}),
    "slots-racks-back-n32": (7, {"jobs": 32, "racks": 4, "memory": 0.1, "servers": 0.8, "spread": 0.8}),
    "slots-racks-whole-back-n48": (
        8, {"jobs": 48, "racks": 8, "memory": 0.05, "servers": 0.8, "spread": 0.8, "whole": True},
    ),
    "slots-atp-n40": (9, {"jobs": 40, "racks": 4, "hardware": "atp", "memory": 0.2, "servers": 0.5, "whole": True}),
    "slots-slowest-n24": (10, {"jobs": 24, "racks": 4, "goal": "slowest", "servers": 0.5, "whole": True}),
    "slots-tiny-late-n3": (
        11, {"jobs": 3, "racks": 2, "workers": 4, "memory": 0.001, "spread": 0.7, "whole": True} | _LATE,
    ),
    "slots-tiny-overlap-n3": (
        13, {"jobs": 3, "racks": 1, "workers": 4, "memory": 0.01, "whole": True, "bucket_mb": 25.0},
    ),
    "slots-racks-late-n24": (
        12, {"jobs": 24, "racks": 4, "memory": 0.2, "servers": 0.5, "spread": 0.8, "whole": True} | _LATE,
    ),
    "slots-racks-overlap-n24": (
        14,
        {"jobs": 24, "racks": 4, "memory": 0.2, "servers": 0.5, "spread": 0.8, "whole": True, "bucket_mb": 25.0},
    ),
    "slots-tiny-stays-n4": (
        15, {"jobs": 4, "racks": 1, "workers": 4, "memory": 0.001, "whole": True, "at_once": 2.0},
    ),
    "slots-racks-stays-n48": (
        16,
        {"jobs": 48, "racks": 4, "memory": 0.2, "servers": 0.5, "spread": 0.8, "whole": True, "at_once": 24.0},
    ),
}  # fmt: skip
"""Seed and options of kind ``slots`` by name."""


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``slots``."""
    for name, (seed, options) in _INSTANCES.items():
        yield generate("slots", seed, name=name, **options)
