"""The bundled pipelines whose micro-batches are to be ordered: small ones, those of a model, and eight of plans."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.library import best, load
from ddlopt.models.deployment import DeploymentProblem, MicroBatchInstance, PipelineInstance, PipelinePlan
from ddlopt.models.deployment.orders_of_plans import order_instance

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


_LARGE = ((4, 16), (8, 32), (8, 64), (16, 128))
"""Stages and micro-batches of a model of 64 blocks with an embedding and a head."""
_BLOCKS = 64
"""Of the model: a multiple of all numbers of stages."""
_HEAD = 2.5
"""Of a block's time."""


_PLANS = ("chain-l24-k32", "chain-l24-k32-tight", "branches-l12-k16", "random-l8-k8")
"""Bundled instances of ``pipeline`` with proven plans, whose orders are looked for."""


def instances() -> Iterator[DeploymentProblem]:
    """All of them."""
    for name, options in _SMALL.items():
        yield generate("microbatches", 1, name=name, **options)
    for name in _PLANS:
        for kind, weights in (("fused", 0.0), ("split", 0.5)):
            yield _of_plan(name, weights, kind)
    for stages, micro_batches in _LARGE:
        for kind, memory in (("roomy", 2.0 * stages), ("tight", float(stages))):
            yield _of_blocks(f"microbatches-model-p{stages}-n{micro_batches}-{kind}", stages, micro_batches, memory)


def _of_plan(plan: str, weights: float, kind: str) -> DeploymentProblem:
    """The order of the best known plan, with W within B (fused), or half of what computing backward takes (split)."""
    instance, known = load(f"deployment/pipeline-{plan}"), best(f"deployment/pipeline-{plan}")
    assert isinstance(instance, PipelineInstance)
    assert isinstance(known, PipelinePlan)
    return order_instance(instance, known, weights, name=f"microbatches-plan-{plan}-{kind}")


def _of_blocks(name: str, stages: int, micro_batches: int, memory: float) -> DeploymentProblem:
    """A model's stages with as many blocks each, where the last one has the head besides: what equal splits make.

    F of a block takes 1.1 ms, B 1.2 and W 1.0; the head 2.5 times as long, the embedding a tenth, transfers 0.2 ms.
    """
    share = _BLOCKS / stages
    f, b, w = (round(1e-3 * share * factor, 9) for factor in (1.1, 1.2, 1.0))
    made = generate(
        "microbatches", 1, name=name, stages=stages, micro_batches=micro_batches, memory=memory,
        forward_s=f, backward_s=b, weights_s=w,
        transfer_s=2e-4, first=1 + 0.1 / share, last=1 + _HEAD / share,
        objective="span" if stages == 8 else "makespan",
    )  # fmt: skip
    assert isinstance(made, MicroBatchInstance)
    return made
