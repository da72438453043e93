"""Pictures of plans for pipelines: what a sample takes in each stage, and the stage's memory."""

from typing import Any

from ddlopt.analysis.pictures.deployment.colours import COLLECTIVE, FORWARD, TRANSFER
from ddlopt.models.deployment import PipelineInstance, PipelinePlan


def draw(axes: Any, instance: PipelineInstance, solution: PipelinePlan) -> None:
    """Draw a bar for each stage: computation, transfers to other stages, and all-reduces of its weights."""
    names, bottoms = [], [0.0] * len(solution.stages)
    parts = [times_s(instance, place, solution) for place in range(len(solution.stages))]
    for kind, colour in (("computation", FORWARD), ("transfers", TRANSFER), ("all-reduces", COLLECTIVE)):
        heights = [1e3 * part[kind] for part in parts]
        axes.bar(range(len(heights)), heights, bottom=bottoms, color=colour, label=kind)
        bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
    for stage in solution.stages:
        names.append(f"{len(stage.layers)} layers\nd {stage.replicas}, t {stage.tensor}")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("time of a sample (ms)", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)


def times_s(instance: PipelineInstance, place: int, solution: PipelinePlan) -> dict[str, float]:
    """Seconds of a sample in a stage, by what takes them."""
    stage = solution.stages[place]
    inside, work, moved, weights = set(stage.layers), 0.0, 0.0, 0.0
    for layer, name in zip(stage.layers, stage.options, strict=True):
        option = next(each for each in instance.layers[layer].menu(stage.tensor) if each.name == name)
        gathered, scattered = dict(option.gathered), dict(option.scattered)
        for edge in instance.edges:
            if edge.user == layer and edge.maker not in inside:
                moved += edge.size_bytes + gathered.get(edge.maker, 0)
            if edge.maker == layer and edge.user not in inside:
                moved += edge.size_bytes + scattered.get(edge.user, 0)
        work += option.time_s
        weights += option.weight_bytes
    d, rate = stage.replicas, instance.bandwidth_bytes_per_s
    reduced = 4 * (d - 1) * weights / instance.micro_batches
    return {"computation": work / d, "transfers": 2 * moved / rate / d, "all-reduces": reduced / rate / d}
