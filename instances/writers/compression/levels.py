"""Levels of compression as tables: for every gradient its rank, entries or bits, and its bytes before and after."""

import math
from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, number, seconds, section, size
from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance, LevelPlan, error_at

_WHAT = {"powersgd": "rank", "top_k": "entries", "random_k": "entries", "qsgd": "bits"}


def table(instance: LevelInstance, solution: LevelPlan) -> Iterator[Section]:
    """Sections of a plan."""
    rows = [
        (
            label(place, gradient.name),
            "x".join(map(str, gradient.shape)) or "1",
            gradient.compressor,
            f"{level} {_WHAT[gradient.compressor]}",
            size(4 * math.prod(gradient.shape)),
            size(bytes_after(gradient, level)),
            number(error_at(gradient.curve, level)),
            seconds(gradient.ready_s),
            seconds(gradient.launch_s + gradient.wire_s_per_level * level),
        )
        for place, (gradient, level) in enumerate(zip(instance.gradients, solution.levels, strict=True))
    ]
    columns = ("gradient", "shape", "compressor", "level", "before", "after", "error", "ready", "on the wire")
    yield section("Gradients in the order of the backward pass, and of sending", columns, rows)


def bytes_after(gradient: GradedGradient, level: int) -> float:
    """What one worker sends of a gradient at a level, norms of buckets apart."""
    match gradient.compressor:
        case "powersgd":
            rows = gradient.shape[0] if gradient.shape else 1
            return 4.0 * level * (rows + math.prod(gradient.shape[1:]))
        case "top_k":
            return 8.0 * level
        case "random_k":
            return 4.0 * level
    return level * math.prod(gradient.shape) / 8
