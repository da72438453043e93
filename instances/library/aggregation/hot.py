"""Bundled hot sets: sparse models as skewed as a public click log, and tiny ones to enumerate."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import AggregationProblem, HotInstance

# Registers that a parameter takes: embeddings of small widths.
_DIMENSIONS = (1, 2, 4, 8)

_INSTANCES: dict[str, tuple[int, dict[str, Any]]] = {
    "hot-click-p2000": (1, {"parameters": 2000, "workers": 16}),
    "hot-click-p5000-widths": (2, {"parameters": 5000, "workers": 16, "widths": _DIMENSIONS, "memory": 0.02}),
    "hot-jobs3-p1000": (3, {"jobs": 3, "parameters": 1000, "widths": _DIMENSIONS, "memory": 0.03}),
    "hot-racks4-jobs3-p600": (
        4,
        {"jobs": 3, "parameters": 600, "workers": 16, "switches": 4, "racks": True, "widths": (3, 4, 5)},
    ),
    "hot-racks8-jobs4-p500": (
        5,
        {"jobs": 4, "parameters": 500, "workers": 32, "switches": 8, "racks": True, "widths": _DIMENSIONS},
    ),
}
"""Seed and options of kind ``hot-zipf`` by name."""

_TINY: dict[str, dict[str, Any]] = {
    "hot-tiny-p12-s1": {
        "jobs": [
            {
                "name": "clicks",
                "workers": 4,
                "frequencies": [0.95, 0.8, 0.62, 0.5, 0.41, 0.33, 0.3, 0.21, 0.15, 0.1, 0.04, 0.01],
                "registers": [4, 2, 3, 2, 3, 2, 1, 4, 1, 3, 1, 2],
            }
        ],
        "switches": [{"name": "switch0", "registers": 12}],
    },
    "hot-tiny-p9-s2": {
        "jobs": [
            {"name": "ads", "workers": 5, "frequencies": [0.9, 0.6, 0.45, 0.3, 0.2], "registers": 2},
            {
                "name": "films",
                "workers": 4,
                "frequencies": [0.7, 0.6, 0.25, 0.1],
                "registers": [3, 2, 3, 2],
                "iterations_per_s": 1.5,
            },
        ],
        "switches": [
            {"name": "rack0", "registers": 5, "workers": [3, 1]},
            {"name": "rack1", "registers": 6, "workers": [2, 3]},
        ],
    },
    "hot-tiny-measured-p8-s1": {
        "jobs": [
            {
                "name": "measured",
                "workers": 3,
                "frequencies": [0.9, 0.75, 0.5, 0.5, 0.4, 0.25, 0.1, 0.05],
                "registers": [3, 2, 2, 3, 1, 2, 1, 1],
                "saved_messages": [1.75, 1.3, 0.9, 0.5, 0.25, 0.3, 0.05, 0.0],
            }
        ],
        "switches": [{"name": "switch0", "registers": 8}],
    },
}
"""By hand, to enumerate."""


def instances() -> Iterator[AggregationProblem]:
    """All bundled instances of the problem ``hot``."""
    for name, (seed, options) in _INSTANCES.items():
        yield generate("hot-zipf", seed, name=name, **options)
    for name, data in _TINY.items():
        yield HotInstance.from_data({"name": name, "source": "made by hand, to enumerate", **data})
