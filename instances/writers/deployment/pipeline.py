"""Plans for pipelines as tables: who is where, and how each layer runs."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, seconds, section, size
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan


def table(instance: PipelineInstance, solution: PipelinePlan) -> Iterator[Section]:
    """Sections of a plan."""
    stages, rows, first = [], [], 0
    for place, stage in enumerate(solution.stages):
        behind = sum(each.replicas for each in solution.stages[place:])
        flying, used = -(-behind // stage.replicas), 0.0
        for layer, name in zip(stage.layers, stage.options, strict=True):
            its = instance.layers[layer]
            option = next(each for each in its.menu(stage.tensor) if each.name == name)
            memory = option.kept_bytes * flying + option.fixed_bytes
            used += memory
            rows.append((place, label(layer, its.name), name, seconds(option.time_s), size(memory)))
        last = first + stage.replicas * stage.tensor - 1
        devices = f"{first}..{last}"
        stages.append((place, len(stage.layers), stage.replicas, stage.tensor, devices, flying, size(used)))
        first = last + 1
    columns = ("stage", "layers", "replicas", "tensor", "devices", "in flight", "memory of a device")
    yield section("Stages", columns, stages)
    yield section("Layers", ("stage", "layer", "option", "time of a sample", "memory"), rows)
