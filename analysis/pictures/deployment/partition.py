"""Pictures of partitions: how long every device is busy with a sample."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ddlopt.analysis.pictures.deployment.colours import BACKWARD, FORWARD, TRANSFER
from ddlopt.models.deployment import Partition, PartitionInstance


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


def draw(axes: Any, instance: PartitionInstance, solution: Partition) -> None:
    """Draw the load of every device, by what it does."""
    colours = {"forward": FORWARD, "backward": BACKWARD, "transfer": TRANSFER}
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
