"""What a person asks of a plan of their own: what limits it, and what would make it fit."""

from collections.abc import Iterator

from ddlopt.models.deployment.step.evaluate import evaluate_step, way_of
from ddlopt.models.deployment.step.instance import FULL, StepInstance, StepPlan

_TIMES = {
    "computation_s": "computing",
    "bubble_s": "the bubble of the pipeline",
    "tensor_s": "messages of tensor parallelism",
    "context_s": "messages along the sequence",
    "experts_s": "messages of experts",
    "neighbours_s": "messages between stages",
    "copies_s": "messages of copies that are not hidden",
    "optimizer_s": "the optimizer",
}
_MEMORY = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "the optimizer's state",
    "activations_bytes": "activations",
    "transient_bytes": "what a running block needs",
}


def advice(instance: StepInstance, plan: StepPlan) -> list[str]:
    """Lines for a person."""
    found = evaluate_step(instance, plan)
    if found.objective is None:
        return list(_degrees(instance, plan))
    details = {name: float(value) for name, value in found.details.items()}
    times = sorted(((details[name], told) for name, told in _TIMES.items()), reverse=True)
    total = float(found.objective)
    most = ", ".join(f"{told} {seconds / total:.0%}" for seconds, told in times[:3] if seconds > 0.005 * total)
    sizes = sorted(((details[name], told) for name, told in _MEMORY.items()), reverse=True)
    fullest = ", ".join(f"{told} {size / 1e9:.3g} GB" for size, told in sizes[:3])
    lines = [f"time goes to: {most}", f"memory of {instance.memory_bytes / 1e9:.4g} GB goes to: {fullest}"]
    if any(violation.kind == "memory suffices" for violation in found.violations):
        lines += _remedies(instance, plan)
    return lines


def _degrees(instance: StepInstance, plan: StepPlan) -> Iterator[str]:
    """The degrees that blocks have, where a plan has others."""
    blocks = (instance.embedding, instance.head, *instance.blocks)
    if all(way_of(block, plan) is not None for block in blocks):
        return
    other = plan.model_copy(update={"sequence_parallel": not plan.sequence_parallel})
    if all(way_of(block, other) is not None for block in blocks):
        yield f"this job has these degrees {'with' if other.sequence_parallel else 'without'} sequence parallelism only"
        return
    ways = [way for block in instance.blocks for way in block.ways]
    has = {
        "tensor": sorted({way.tensor for way in ways}),
        "context": sorted({way.context for way in ways}),
        "expert": sorted({way.expert for way in ways}),
        "micro-batches of": sorted({way.micro_batch for way in ways}),
    }
    told = "; ".join(f"{name} {', '.join(map(str, each))}" for name, each in has.items())
    yield f"this job has: {told}"


def _remedies(instance: StepInstance, plan: StepPlan) -> Iterator[str]:
    """Changes of one thing that make it fit, or the least memory with all of them."""
    least, fitting = float("inf"), []
    for told, changed in [*_single(instance, plan), *_all(instance, plan)]:
        found = evaluate_step(instance, changed)
        if found.objective is None:
            continue
        least = min(least, float(found.details["memory_bytes"]))
        if found.feasible:
            fitting.append(f"{told} ({float(found.objective):.5g} s)")
    if fitting:
        yield f"does not fit; it would with {'; or '.join(fitting[:4])}"
    elif least < float("inf"):
        yield f"does not fit, not even with all of them: the least memory at these degrees is {least / 1e9:.4g} GB"


def _single(instance: StepInstance, plan: StepPlan) -> Iterator[tuple[str, StepPlan]]:
    first = instance.blocks[0].ways[0].options[0].name
    longest = -(-instance.size // (plan.pipeline * plan.interleaving))
    for option in instance.blocks[0].ways[0].options:
        if option.name not in (first, FULL, plan.option) and not plan.recomputed:
            yield f"recomputation '{option.name}'", plan.changed(option=option.name)
    if plan.recomputed < longest:
        yield "all blocks recomputed", plan.changed(option=first, recomputed=longest)
    for level in instance.sharding:
        if level > plan.sharding:
            yield f"sharding {level}", plan.changed(sharding=level)
    for factor in (2, 4, 8):
        if plan.data % factor == 0:
            change = {"pipeline": plan.pipeline * factor, "data": plan.data // factor}
            yield f"{plan.pipeline * factor} stages", plan.changed(**change)
    if plan.micro_batch > 1:
        yield "micro-batches of 1", plan.changed(micro_batch=1)


def _all(instance: StepInstance, plan: StepPlan) -> Iterator[tuple[str, StepPlan]]:
    first = instance.blocks[0].ways[0].options[0].name
    longest = -(-instance.size // (plan.pipeline * plan.interleaving))
    change = {"option": first, "recomputed": longest, "sharding": instance.sharding[-1]}
    yield f"all blocks recomputed and sharding {instance.sharding[-1]}", plan.changed(**change)
