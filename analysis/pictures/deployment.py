"""Pictures of deployment answers: what every device does, loads of stages, memory over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from ddlopt.models.deployment import DeploymentInstance, PartitionInstance, StrategyInstance
from ddlopt.models.deployment.plan.simulator.simulate import Timeline, TimelineTask, simulate
from ddlopt.models.deployment.plan.simulator.tasks import Resource

_FORWARD, _BACKWARD, _TRANSFER, _COLLECTIVE = "#1f6fb4", "#7fb3dc", "#d95f02", "#3a9d5d"
_LINK_ROWS = 8
"""Links within device groups that are drawn; the least busy ones are left out."""


def draw(axes: Any, instance: Any, solution: Any) -> None:
    """Draw an answer to any problem of the family.

    A deployment: one row a device, link and collective channel, over the time of a step. A partition: the load of every
    device. Strategies: memory over time, and its limit.
    """
    match instance:
        case DeploymentInstance():
            _draw_timeline(axes, instance, simulate(instance, solution))
        case PartitionInstance():
            _draw_loads(axes, instance, solution)
        case StrategyInstance():
            _draw_memory(axes, instance, solution)


def rows_of(instance: DeploymentInstance, timeline: Timeline) -> list[Resource]:
    """Resources from top to bottom: devices, links between device groups, the busiest links within, collectives."""
    busy = timeline.busy_s
    devices = [Resource("device", device) for device in range(instance.devices)]
    between = sorted(resource for resource in busy if resource.kind == "group link")
    within = sorted((resource for resource in busy if resource.kind == "link"), key=lambda each: -busy[each])
    collective = [resource for resource in busy if resource.kind == "collective"]
    return [*devices, *between, *sorted(within[:_LINK_ROWS]), *collective]


def _draw_timeline(axes: Any, instance: DeploymentInstance, timeline: Timeline) -> None:
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
    _legend(axes, {"forward": _FORWARD, "backward": _BACKWARD, "transfer": _TRANSFER, "all-reduce": _COLLECTIVE}, shown)


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
        return _TRANSFER
    if task.kind == "collective":
        return _COLLECTIVE
    return _FORWARD if task.operator in forward else _BACKWARD


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


def _draw_memory(axes: Any, instance: StrategyInstance, solution: Any) -> None:
    """Memory that all nodes keep, between any two moments at which it changes."""
    used = np.array([instance.usages[node][strategy] for node, strategy in enumerate(solution.strategies)], dtype=float)
    first, last = instance.intervals.T
    alive = last > first
    moments = np.unique(np.concatenate([first[alive], last[alive]]))
    change = np.zeros(len(moments))
    np.add.at(change, np.searchsorted(moments, first[alive]), used[alive])
    np.add.at(change, np.searchsorted(moments, last[alive]), -used[alive])
    axes.fill_between(moments, np.cumsum(change), step="post", color=_BACKWARD, linewidth=0)
    if instance.usage_limit is not None:
        axes.axhline(instance.usage_limit, color="black", linewidth=1)
        axes.text(moments[0], instance.usage_limit, "limit", fontsize=8, va="bottom")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step of the schedule", fontsize=8)
    axes.set_ylabel("memory in use", fontsize=8)
    axes.tick_params(labelsize=7)


def loads_s(instance: PartitionInstance, devices: Sequence[int]) -> dict[str, list[float]]:
    """Seconds for which each device computes, forward and backward, and sends or fetches."""
    loads = {kind: [0.0] * instance.devices for kind in ("forward", "backward", "transfer")}
    for place, node in enumerate(instance.nodes):
        device = devices[place]
        accelerator = device < instance.accelerators
        time_s = node.accelerator_s if accelerator else node.processor_s
        loads["backward" if node.backward else "forward"][device] += time_s or 0.0
        ends = {devices[reader] for reader in instance.consumers[place]}
        for end in {device, *ends} if ends - {device} else ():
            if end < instance.accelerators:
                loads["transfer"][end] += node.transfer_s
    return loads


def _draw_loads(axes: Any, instance: PartitionInstance, solution: Any) -> None:
    colours = {"forward": _FORWARD, "backward": _BACKWARD, "transfer": _TRANSFER}
    places = np.arange(instance.devices)
    below = np.zeros(instance.devices)
    for kind, values in loads_s(instance, solution.devices).items():
        if any(values):
            axes.bar(places, 1e3 * np.array(values), bottom=below, color=colours[kind], label=kind, width=0.8)
            below += 1e3 * np.array(values)
    names = [f"accelerator {k}" for k in range(instance.accelerators)]
    names += [f"processor {k}" for k in range(instance.devices - instance.accelerators)]
    axes.set_xticks(places, names, fontsize=7, rotation=30, ha="right")
    axes.set_ylabel("time of a sample [ms]", fontsize=8)
    axes.tick_params(axis="y", labelsize=7)
    axes.legend(fontsize=7)
