"""The bundled instances of places: one ring on three racks, and drawn clusters of which a part is busy."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.cluster import generate
from ddlopt.models.cluster import ClusterProblem, PlacementInstance

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "placement-pairs-r12": (1, {"asked": 1.0}),
    "placement-pairs-r32": (1, {"blocks": 4, "racks": 8, "asked": 0.9}),
    "placement-crossings-r12": (1, {"asked": 1.0, "objective": "crossings"}),
    "placement-crossings-pods-r24": (
        3,
        {"pods": 2, "blocks": 4, "racks": 6, "asked": 0.8, "objective": "crossings", "prices": (8, 4, 1)},
    ),
    "placement-blocks-r16": (
        2,
        {"blocks": 4, "asked": 0.95, "bound_to_block": 0.5, "bound_to_rack": 0.3, "largest": 10},
    ),
    "placement-max-gangs-r32": (
        1,
        {"blocks": 4, "racks": 8, "asked": 1.4, "bound_to_rack": 0.7, "bound_to_block": 0.3, "objective": "max_gangs"},
    ),
    "placement-fits-r16": (4, {"blocks": 4, "asked": 0.95, "bound_to_rack": 0.8, "largest": 6, "objective": "fits"}),
    "placement-powers-r40": (
        1,
        {"blocks": 5, "racks": 8, "sizes": "powers", "largest": 32, "asked": 0.9, "objective": "crossings"},
    ),
}
"""Seed and options by name."""


def instances() -> Iterator[ClusterProblem]:
    """All of them."""
    yield PlacementInstance.from_data(
        {
            "name": "placement-ring-10",
            "source": "a ring of 10 pods on three racks of 4 hosts, counted by hand: 3 crossings are least",
            "levels": ["rack"],
            "leaves": [{"name": f"r{rack}", "hosts": 4} for rack in range(3)],
            "gangs": [{"name": "ring", "hosts": 10}],
            "objective": "crossings",
        }
    )
    for name, (seed, options) in _DRAWN.items():
        yield generate("placement", seed, name=name, **options)
