"""The bundled instances of how much to compress: networks with assumed spectra, and some at random."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.compression import generate
from ddlopt.instances.library.compression import measured
from ddlopt.models.compression import CompressionProblem

_ALONE: dict[str, Any] = {"overlap": False}
_LEAST_ERROR: dict[str, Any] = {"goal": "error"}

_SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "levels-vgg16-powersgd": ("network", {"model": "vgg16"}),
    "levels-vgg16-powersgd-alone": ("network", {"model": "vgg16"} | _ALONE),
    "levels-vgg16-powersgd-error": ("network", {"model": "vgg16"} | _LEAST_ERROR),
    "levels-vgg16-top-k-alone": ("network", {"model": "vgg16", "compressor": "top_k"} | _ALONE),
    "levels-resnet50-powersgd": ("network", {"model": "resnet50"}),
    "levels-resnet50-top-k": ("network", {"model": "resnet50", "compressor": "top_k", "like": 0.1}),
    "levels-resnet50-top-k-alone": ("network", {"model": "resnet50", "compressor": "top_k"} | _ALONE),
    "levels-resnet50-top-k-error": (
        "network",
        {"model": "resnet50", "compressor": "top_k", "like": 0.1} | _LEAST_ERROR,
    ),
    "levels-bert-powersgd-25g": ("network", {"model": "bert", "network_gigabit_per_s": 25.0, "like": 16}),
    "levels-gpt2-qsgd": ("network", {"model": "gpt2", "compressor": "qsgd"}),
    "levels-gpt2-qsgd-alone": ("network", {"model": "gpt2", "compressor": "qsgd"} | _ALONE),
    "levels-gpt2-qsgd-error": ("network", {"model": "gpt2", "compressor": "qsgd"} | _LEAST_ERROR),
    "levels-random-i20": ("random", {}),
    "levels-random-i100-error": ("random", {"gradients": 100, "points": 20} | _LEAST_ERROR),
}
"""Kind and options by name; the seed is 1."""


def instances() -> Iterator[CompressionProblem]:
    """All of them."""
    for name, (kind, options) in _SHAPES.items():
        yield generate(f"levels-{kind}", 1, name=name, **options)
    yield from measured.instances("levels-measured")
