"""Deployment of the training step of a real network: kind ``network``."""

from dataclasses import replace
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of
from ddlopt.instances.workloads.accelerators import V100, Accelerator
from ddlopt.instances.workloads.device_groups import NAMES, Devices, devices
from ddlopt.instances.workloads.networks.network_graphs import MODELS, Step, training_step
from ddlopt.instances.workloads.networks.training_graph import operator_time_s
from ddlopt.instances.workloads.operator_groups import (
    Merged,
    consecutive_groups,
    cut_groups,
    layers_of,
    merged,
    passed_between,
)
from ddlopt.instances.workloads.precision import FP32, Precision, precision_of
from ddlopt.models.deployment import DeploymentInstance

# Halvings down to an eighth: times are interpolated between them.
_SHARES = (1.0, 0.5, 0.25, 0.125)
# Of a message within a data centre: an assumption.
_LATENCY_S = 12e-6


def network(
    rng: np.random.Generator,
    model: str = "vgg19",
    groups: int = 40,
    batch: int = 96,
    devices_of: str | Devices = "testbed",
    separate_gradients: bool = False,
    grouping: str | None = None,
) -> DeploymentInstance:
    """A network on a cluster, with the operators of :mod:`~ddlopt.instances.workloads.networks.training_graph`.

    Layers are put into groups of consecutive ones by a dynamic program
    (:func:`~ddlopt.instances.workloads.operator_groups.consecutive_groups`), or by METIS, and the operators of a group
    into as few as keep the graph acyclic, mostly one for the forward and one for the backward pass. Times are the
    roofline of a device for 1, 1/2, 1/4 and 1/8 of the batch (four significant digits); transfers take 12 microseconds
    more than their bytes, as in TAG's released simulator. A device that has a weight keeps two moments of it as well.

    Parameters
    ----------
    rng : numpy.random.Generator
        For ``devices_of="random"`` only.
    model : str
        One of :data:`~ddlopt.instances.workloads.networks.network_graphs.MODELS`.
    groups : int
        How many at most; TAG has 40.
    batch : int
        Samples of a step, on all devices together.
    devices_of : {"testbed", "two-machines", "one-type", "random"} or Devices
        What devices there are; see :mod:`~ddlopt.instances.workloads.device_groups`.
    separate_gradients : bool
        Whether what computes a group's gradients of parameters is an operator of its own, which may be duplicated.
    grouping : {"consecutive", "metis"}, optional
        ``consecutive`` if not given; ``metis`` as in TAG: a cut of the graph of layers with little between the groups,
        layers weighted by the roots of their operators' microseconds, groups at most 6 times as heavy as the average,
        so that some may be empty and are left out.

    Returns
    -------
    DeploymentInstance
    """
    one_of("model", model, MODELS)
    told = "Layers as in the architecture's paper"
    return deployed(training_step(model), model, told, rng, groups, batch, devices_of, separate_gradients, grouping)


def deployed(
    step: Step,
    name: str,
    told: str,
    rng: np.random.Generator,
    groups: int = 40,
    batch: int = 96,
    devices_of: str | Devices = "testbed",
    separate_gradients: bool = False,
    grouping: str | None = None,
    precision: str | Precision = FP32,
) -> DeploymentInstance:
    """The same for any training step; ``name`` begins the instance's, ``told`` says where the layers are from."""
    numbers = precision_of(precision)
    step = tuple(replace(operator, precision=numbers) for operator in step)
    if isinstance(devices_of, str):
        one_of("devices_of", devices_of, NAMES)
    one_of("grouping", grouping or "consecutive", ("consecutive", "metis"))
    at_least("groups", groups, 1)
    at_least("batch", batch, 1)
    cluster = devices(devices_of, rng) if isinstance(devices_of, str) else devices_of
    parts = merged(step, _groups(step, groups, batch, grouping), separate_gradients)
    types = {kind: cluster.accelerators[kind].at(numbers) for kind in cluster.types}
    kept_bytes = numbers.state_bytes - numbers.gradient_bytes
    assumed = "; ".join(f"{kind}: {accelerator.name}" for kind, accelerator in types.items())
    return DeploymentInstance.from_data(
        {
            "name": f"{name}-g{groups}-b{batch}-{devices_of}" + ("-metis" if grouping == "metis" else ""),
            "source": f"{told}, {numbers}; {cluster.source}; times assume {assumed}",
            "operators": [
                {
                    "name": _name(step, part),
                    "group": part.group,
                    "times_s": {kind: _times(step, part, accelerator, batch) for kind, accelerator in types.items()},
                    "gradient_bytes": sum(step[place].gradient_bytes for place in part.places),
                    "resident_bytes": kept_bytes * sum(step[place].gradient for place in part.places),
                }
                for part in parts
            ],
            "tensors": _tensors(step, parts, batch),
            "device_groups": list(cluster.groups),
            "bandwidth_bytes_per_s": cluster.bandwidth_bytes_per_s,
            "shares": _SHARES,
            "latency_s": _LATENCY_S if cluster.latency_s is None else cluster.latency_s,
            "batch": batch,
        }
    )


def _groups(step: Step, groups: int, batch: int, grouping: str | None) -> list[int]:
    """Group of each operator, numbered without gaps."""
    layer_of = layers_of(step)
    if grouping == "metis":
        times = [operator_time_s(step, place, V100, batch) for place in range(len(step))]
        found = cut_groups(step, layer_of, times, batch, groups)
        return [int(found[layer]) for layer in layer_of]
    work = np.zeros(1 + layer_of.max())
    for place, layer in enumerate(layer_of):
        work[layer] += operator_time_s(step, place, V100, batch)
    group_of_layer = consecutive_groups(work, passed_between(step, layer_of, batch), groups)
    return [int(group_of_layer[layer]) for layer in layer_of]


def _name(step: Step, part: Merged) -> str:
    first, last = step[part.places[0]].name, step[part.places[-1]].name
    return first if first == last else f"{first} .. {last}"


def _times(step: Step, part: Merged, accelerator: Accelerator, batch: int) -> list[float]:
    totals = (
        sum(operator_time_s(step, place, accelerator, batch * share) for place in part.places) for share in _SHARES
    )
    return [float(f"{total:.4g}") for total in totals]


def _tensors(step: Step, parts: tuple[Merged, ...], batch: int) -> list[dict[str, Any]]:
    """What passes between parts; what one part hands to the same others is one tensor."""
    part_of = {place: number for number, part in enumerate(parts) for place in part.places}
    readers: dict[int, set[int]] = {}
    for place, each in enumerate(step):
        for read in each.reads:
            if part_of[read] != part_of[place]:
                readers.setdefault(read, set()).add(part_of[place])
    sizes: dict[tuple[int, tuple[int, ...]], int] = {}
    for producer, consumers in readers.items():
        key = part_of[producer], tuple(sorted(consumers))
        sizes[key] = sizes.get(key, 0) + step[producer].output_bytes(batch, step[producer].partial and 1)
    return [
        {"producer": producer, "consumers": consumers, "size_bytes": size}
        for (producer, consumers), size in sorted(sizes.items())
    ]
