"""The bundled instances of sufficient factor broadcasting: training steps of networks, and drawn graphs."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import CompressionProblem

_NETWORKS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "vgg16": ((4, 2, 10), (4, 16, 25), (32, 4, 25), (32, 16, 10), (32, 16, 100)),
    "vgg19": ((32, 2, 25), (32, 16, 25)),
    "resnet50": ((4, 2, 10), (4, 4, 25), (4, 16, 100), (32, 2, 25)),
    "bert-base": ((4, 2, 25), (4, 4, 10), (4, 16, 100), (32, 2, 10), (32, 16, 10)),
    "gpt2": ((1, 2, 10), (1, 4, 25), (4, 2, 10)),
    "transformer-base": ((4, 2, 25), (4, 16, 10), (4, 16, 100), (32, 4, 10), (32, 4, 25)),
}
"""Samples of a worker, workers, Gb/s; V100s, but A100s at 100 Gb/s."""

_BUDGETS: dict[str, tuple[str, tuple[int, int, int], dict[str, Any]]] = {
    "sfb-vgg16-b4-w2-10g-memory": ("vgg16", (4, 2, 10), {"memory_budget_bytes": 1e8}),
    "sfb-resnet50-b4-w2-10g-memory": ("resnet50", (4, 2, 10), {"memory_budget_bytes": 1.2e7}),
    "sfb-bert-base-b4-w4-10g-memory": ("bert-base", (4, 4, 10), {"memory_budget_bytes": 2e9}),
    "sfb-transformer-base-b4-w16-10g-memory": ("transformer-base", (4, 16, 10), {"memory_budget_bytes": 4e9}),
    "sfb-bert-base-b4-w2-25g-budgets": (
        "bert-base",
        (4, 2, 25),
        {"memory_budget_bytes": 1.5e9, "compute_budget_s": 0.01},
    ),
}
"""Less than the optimum without budgets takes."""

_TAG = ("vgg19", "resnet101", "bert-base", "transformer-base")
"""With the costs, the bandwidth (2810 bytes a microsecond) and the batch (6 on two machines) of TAG's code."""

_DRAWN: dict[str, dict[str, Any]] = {
    "sfb-random-n60": {},
    "sfb-random-n300-per-edge": {"operators": 300, "broadcast": "per_edge", "mixed_replicas": True},
    "sfb-random-n300-any": {"operators": 300, "shape": "any"},
    "sfb-random-n300-memory": {"operators": 300, "memory_part": 0.1},
}
"""The seed is 1."""


def instances() -> Iterator[CompressionProblem]:
    """The instances of this part of the family."""
    for model, settings in _NETWORKS.items():
        for setting in settings:
            yield generate("sfb-network", model=model, **_options(*setting))
    for name, (model, setting, budgets) in _BUDGETS.items():
        yield generate("sfb-network", name=name, model=model, **_options(*setting), **budgets)
    for model in _TAG:
        yield generate(
            "sfb-network",
            name=f"sfb-{model}-b3-w2-tag",
            model=model,
            batch=3,
            workers=2,
            network_gigabit_per_s=22.48,
            cost_model="tag_code",
            broadcast="per_edge",
        )
    for name, options in _DRAWN.items():
        yield generate("sfb-random", 1, name=name, **options)


def _options(batch: int, workers: int, gigabits: int) -> dict[str, Any]:
    return {
        "batch": batch,
        "workers": workers,
        "network_gigabit_per_s": float(gigabits),
        "accelerator": "a100" if gigabits == 100 else "v100",
    }
