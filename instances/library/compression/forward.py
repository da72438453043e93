"""The bundled instances of forward passes that wait: our networks at several bandwidths, and two tiny ones."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import CompressionProblem

_PLAIN: dict[str, Any] = {"compressors": ()}
"""Without compression: order and parts alone."""

_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "forward-tiny-g4": ("random", {"gradients": 4, "options": 3, "parts": (1, 2)}),
    "forward-tiny-g6-whole": ("random", {"gradients": 6, "options": 2, "parts": (1,), "error_budget_part": 0.0}),
    "forward-vgg16-n8x8-25g": ("network", {}),
    "forward-vgg16-n8x8-25g-plain": ("network", _PLAIN),
    "forward-resnet50-n8x8-10g": ("network", {"model": "resnet50", "network_gigabit_per_s": 10.0}),
    "forward-bert-base-n8x8-100g-plain": ("network", {"model": "bert-base", "network_gigabit_per_s": 100.0} | _PLAIN),
    "forward-bert-base-n8x8-25g": ("network", {"model": "bert-base"}),
}
"""Kind and options by name; the seed is 1."""


def instances() -> Iterator[CompressionProblem]:
    """All of them."""
    for name, (kind, options) in _SHAPES.items():
        yield generate(f"forward-{kind}", 1, name=name, **options)
