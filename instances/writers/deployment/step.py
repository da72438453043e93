"""Plans for training steps as tables: where time and memory go, who is where, who sends what to whom."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, seconds, section, size
from ddlopt.models.deployment.step.evaluate import stage_parts
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.deployment.step.places import members, stage_chunks


def table(instance: StepInstance, solution: StepPlan) -> Iterator[Section]:
    """Sections of a plan."""
    plan = solution
    degrees = ("tensor", "context", "expert", "data", "pipeline", "interleaving", "micro_batch", "sharding")
    rows: list[tuple[object, ...]] = [(name, getattr(plan, name)) for name in degrees]
    rows += [("option", plan.option), ("recomputed of a chunk", plan.recomputed), ("order", ", ".join(plan.order))]
    yield section("Degrees", ("degree", "value"), rows)
    parts = stage_parts(instance, plan)
    chunks = stage_chunks(instance, plan)
    blocks = [", ".join(_span(chunk) for chunk in own) for own in chunks]
    times = list(parts[0].times)
    rows = [
        (stage, blocks[stage], *(seconds(float(part.times[name])) for name in times))
        for stage, part in enumerate(parts)
    ]
    yield section("Times of a micro-batch, and at the end", ("stage", "blocks", *times), rows)
    kinds = list(parts[0].memory)
    rows = [(stage, *(size(float(part.memory[name])) for name in kinds)) for stage, part in enumerate(parts)]
    yield section("Memory of a device", ("stage", *kinds), rows)
    yield section("Groups", ("dimension", "members", "step", "first group", "tier"), _groups(instance, plan))


def _span(chunk: range) -> str:
    return f"{chunk.start}..{chunk.stop - 1}" if len(chunk) > 1 else str(chunk.start)


def _groups(instance: StepInstance, plan: StepPlan) -> Iterator[tuple[object, ...]]:
    """Of every dimension which ranks send each other something, and over which tier."""
    inside, stride = members(instance, plan), 1
    for dimension in plan.order:
        degree = getattr(plan, dimension)
        ranks = ", ".join(str(place * stride) for place in range(min(degree, 4))) + (", ..." if degree > 4 else "")
        tier = next(tier.name for tier, each in zip(instance.tiers, inside, strict=True) if each[dimension] == degree)
        if degree > 1:
            yield dimension, degree, stride, ranks, tier
        stride *= degree
    if plan.expert > 1:
        tier = next(
            tier.name for tier, each in zip(instance.tiers, inside, strict=True) if each["expert"] == plan.expert
        )
        yield "expert", plan.expert, "-", "consecutive ranks of tensor, context and data", tier
