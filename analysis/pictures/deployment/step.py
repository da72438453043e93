"""Pictures of training steps: where a step's time goes, and the memory of every stage."""

from typing import Any

from ddlopt.analysis.pictures.deployment.colours import COLLECTIVE, FORWARD, TRANSFER
from ddlopt.models.deployment import StepInstance, StepPlan
from ddlopt.models.deployment.step.evaluate import evaluate_step, stage_parts

_TIMES = {
    "computation": (("computation_s",), FORWARD),
    "inside blocks": (("tensor_s", "context_s", "experts_s"), COLLECTIVE),
    "between stages": (("neighbours_s",), TRANSFER),
    "bubble": (("bubble_s",), "lightgrey"),
    "copies, optimizer": (("copies_s", "optimizer_s"), "tab:purple"),
}
_MEMORY = {
    "weights": FORWARD,
    "gradients": TRANSFER,
    "optimizer": "tab:purple",
    "activations": COLLECTIVE,
    "transient": "lightgrey",
}


def draw(axes: Any, instance: StepInstance, solution: StepPlan) -> None:
    """Draw a bar of the step's time by part, and for each stage a bar of its memory."""
    axes.axis("off")
    times, memory = axes.inset_axes((0.0, 0.72, 1.0, 0.22)), axes.inset_axes((0.0, 0.08, 1.0, 0.5))
    left, details = 0.0, evaluate_step(instance, solution).details
    for name, (parts, colour) in _TIMES.items():
        width = 1e3 * sum(float(details[part]) for part in parts)
        times.barh(0, width, left=left, color=colour, label=name)
        left += width
    times.set_yticks([])
    times.set_xlabel("time of a step (ms)", fontsize=8)
    stages = stage_parts(instance, solution)
    bottoms = [0.0] * len(stages)
    for name, colour in _MEMORY.items():
        heights = [float(stage.memory[name]) / 1e9 for stage in stages]
        memory.bar(range(len(stages)), heights, bottom=bottoms, color=colour, label=name)
        bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
    memory.axhline(instance.memory_bytes / 1e9, color="black", linewidth=0.8)
    memory.set_ylabel("memory (GB)", fontsize=8)
    memory.set_xlabel("stage", fontsize=8)
    for part in (times, memory):
        part.tick_params(labelsize=7)
        part.legend(fontsize=6, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
