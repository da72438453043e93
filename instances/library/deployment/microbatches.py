"""The bundled pipelines whose micro-batches are to be ordered: small ones with unit times and unlike ones."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentProblem

_SMALL: dict[str, dict[str, Any]] = {
    "microbatches-tiny-p2-n3": {"stages": 2, "micro_batches": 3, "memory": 2.0, "objective": "span"},
    "microbatches-unit-p4-n6": {"stages": 4, "micro_batches": 6, "memory": 4.0, "objective": "span"},
    "microbatches-tight-p4-n8": {"stages": 4, "micro_batches": 8, "memory": 3.0, "objective": "span"},
    "microbatches-fused-p4-n6": {"stages": 4, "micro_batches": 6, "memory": 2.0, "fused": True},
    "microbatches-transfer-p3-n6": {"stages": 3, "micro_batches": 6, "memory": 3.0, "transfer_s": 1.0},
    "microbatches-around-p2-n4": {"stages": 2, "micro_batches": 4, "chunks": 2, "memory": 5.0},
    "microbatches-v-p3-n5": {
        "stages": 3, "micro_batches": 5, "chunks": 2, "shape": "v", "memory": 4.0, "objective": "span",
    },
    "microbatches-dual-p4-n16": {"stages": 4, "micro_batches": 16, "shape": "dual", "memory": 5.0, "objective": "span"},
    "microbatches-barrier-p3-n5": {
        "stages": 3, "micro_batches": 5, "memory": 3.0, "objective": "barrier", "uneven": 0.4, "optimizer_s": 2.0,
    },
}  # fmt: skip
"""Options by name; the seed is 1."""


def instances() -> Iterator[DeploymentProblem]:
    """All of them."""
    for name, options in _SMALL.items():
        yield generate("microbatches", 1, name=name, **options)
