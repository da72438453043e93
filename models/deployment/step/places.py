"""Where the parts of a plan are: blocks in chunks and stages, members of groups in units of the network."""

from fractions import Fraction
from math import gcd

from ddlopt.models.deployment.step.instance import StepInstance, StepPlan


def chunk_sizes(blocks: int, chunks: int) -> list[int]:
    """Blocks of every chunk: the shorter ones are the last, the first, and others from the back."""
    base, longer = divmod(blocks, chunks)
    if not longer:
        return [base] * chunks
    short = [chunks - 1, 0, *range(chunks - 2, 0, -1)][: chunks - longer]
    return [base + (chunk not in short) for chunk in range(chunks)]


def chunk_share(blocks: int, pipeline: int, interleaving: int) -> Fraction:
    """The longest chunk, as a part of the longest stage."""
    return Fraction(-(-blocks // (pipeline * interleaving)), -(-blocks // pipeline))


def stage_chunks(instance: StepInstance, plan: StepPlan) -> list[list[range]]:
    """For every stage the blocks of its chunks."""
    sizes = chunk_sizes(instance.size, plan.pipeline * plan.interleaving)
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    chunks = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    return [chunks[stage :: plan.pipeline] for stage in range(plan.pipeline)]


def members(instance: StepInstance, plan: StepPlan) -> list[dict[str, int]]:
    """Of a device's group of every dimension, those in its unit of each tier."""
    found = []
    for tier in instance.tiers:
        inside: dict[str, int] = {}
        # The outermost tier holds all devices, also those that are left over.
        room = plan.devices if tier is instance.tiers[-1] else tier.size
        for dimension in plan.order:
            degree = getattr(plan, dimension)
            inside[dimension] = gcd(degree, room)
            room = room // inside[dimension] if inside[dimension] == degree else 1
        inside["expert"] = min(plan.expert, inside["tensor"] * inside["context"] * inside["data"])
        inside["copies"] = inside["context"] * inside["data"]
        inside["expert copies"] = max(1, inside["tensor"] * inside["copies"] // plan.expert)
        found.append(inside)
    return found
