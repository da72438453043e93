"""Pictures of deployments: what every device and every link does over the time of a step."""

from collections.abc import Sequence
from typing import Any

from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from ddlopt.analysis.pictures.deployment.colours import BACKWARD, COLLECTIVE, FORWARD, TRANSFER
from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.deployment.plan.simulator.simulate import Timeline, TimelineTask, simulate
from ddlopt.models.deployment.plan.simulator.tasks import Resource

_LINK_ROWS = 8
"""Links within device groups that are drawn; the least busy ones are left out."""


def rows_of(instance: DeploymentInstance, timeline: Timeline) -> list[Resource]:
    """Resources from top to bottom: devices, links between device groups, the busiest links within, collectives."""
    busy = timeline.busy_s
    devices = [Resource("device", device) for device in range(instance.devices)]
    between = sorted(resource for resource in busy if resource.kind == "group link")
    within = sorted((resource for resource in busy if resource.kind == "link"), key=lambda each: -busy[each])
    collective = [resource for resource in busy if resource.kind == "collective"]
    return [*devices, *between, *sorted(within[:_LINK_ROWS]), *collective]


def draw(axes: Any, instance: DeploymentInstance, solution: Deployment) -> None:
    """Draw one row a device, link and collective channel, over the time of a step."""
    timeline = simulate(instance, solution)
    rows = rows_of(instance, timeline)
    place = {resource: len(rows) - 1 - row for row, resource in enumerate(rows)}
    shown = [task for task in timeline.tasks if task.resource in place]
    shapes = [
        Rectangle((1e3 * float(task.start), place[task.resource] + 0.1), 1e3 * float(task.finish - task.start), 0.8)
        for task in shown
    ]
    forward = _forward(instance)
    paints = [_paint(task, forward) for task in shown]
    line = 0.2 if len(shown) <= 400 else 0.0
    axes.add_collection(PatchCollection(shapes, facecolors=paints, edgecolors="white", linewidths=line))
    end = 1e3 * float(timeline.time_s)
    axes.plot([end, end], [0, len(rows)], color="black", linewidth=1)
    axes.text(end, len(rows) + 0.05, f"{end:.4g} ms", ha="right", va="bottom", fontsize=8)
    axes.set_yticks([place[resource] + 0.5 for resource in rows], [_label(instance, each) for each in rows], fontsize=6)
    axes.set_xlim(0, 1.02 * end)
    axes.set_ylim(0, len(rows) + 1)
    axes.set_xlabel("time since the start of the step [ms]", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    _legend(axes, {"forward": FORWARD, "backward": BACKWARD, "transfer": TRANSFER, "all-reduce": COLLECTIVE}, shown)


def _legend(axes: Any, colours: dict[str, str], shown: Sequence[TimelineTask]) -> None:
    kinds = {task.kind for task in shown}
    wanted = {"transfer": "transfer" in kinds, "all-reduce": "collective" in kinds}
    handles = [Patch(color=colour, label=name) for name, colour in colours.items() if wanted.get(name, True)]
    axes.legend(
        handles=handles, fontsize=7, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False
    )


def _forward(instance: DeploymentInstance) -> frozenset[int]:
    """Operators that come, in topological order, before the first one that gives a gradient."""
    first = next((k for k, place in enumerate(instance.order) if instance.operators[place].gradient_bytes), None)
    return frozenset(instance.order[:first])


def _paint(task: TimelineTask, forward: frozenset[int]) -> str:
    if task.kind == "transfer":
        return TRANSFER
    if task.kind == "collective":
        return COLLECTIVE
    return FORWARD if task.operator in forward else BACKWARD


def _label(instance: DeploymentInstance, resource: Resource) -> str:
    groups = instance.device_groups
    match resource.kind:
        case "device":
            return f"{groups[instance.device_group_of[resource.source]].type} {resource.source}"
        case "link":
            return f"{resource.source} → {resource.target}"
        case "group link":
            return f"group {resource.source} → {resource.target}"
    return "all-reduce"
