"""Sufficient factor broadcasting on training steps of real networks: kind ``sfb-network``."""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.networks.network_graphs import MODELS, Step, training_step
from ddlopt.instances.workloads.networks.training_graph import operator_time_s
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import SfbInstance
from ddlopt.models.compression.sfb.instance import CostModel


def network(
    rng: np.random.Generator,
    model: str = "vgg16",
    batch: int = 32,
    workers: int = 2,
    network_gigabit_per_s: float = 25.0,
    cost_model: str = "per_link",
    broadcast: str = "per_tensor",
    duplication_penalty_s: float = 1e-6,  # as in the released code of TAG
    memory_budget_bytes: float | None = None,
    compute_budget_s: float | None = None,
    accelerator: str | Accelerator = "v100",
) -> SfbInstance:
    """A network in data parallelism, with the operators of :mod:`~ddlopt.instances.workloads.networks.training_graph`.

    Times are the roofline of one device for the batch of all workers (four significant digits). A worker's part is
    taken to cost its share of that, although weights are read and gradients written whatever the batch: duplicating is
    no dearer than it appears. An operator that every worker runs in full needs memory for what it reads and what it
    hands on of the other workers' samples; what several operators read counts for each. Operators that take in samples
    cannot be duplicated, nor batch normalisation, whose mean and variance are those of a worker's own samples.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used: nothing is random.
    model : str
        One of :data:`~ddlopt.instances.workloads.networks.network_graphs.MODELS`.
    batch : int
        Samples of a worker.
    workers : int
        Devices, each with a link of its own to the others.
    network_gigabit_per_s : float
        Of a link.
    cost_model : {"per_link", "total_bytes", "tag_code"}
    broadcast : {"per_tensor", "per_edge"}
    duplication_penalty_s : float
        As in TAG, one microsecond.
    memory_budget_bytes, compute_budget_s : float, optional
    accelerator : {"v100", "a100"}

    Returns
    -------
    SfbInstance
    """
    one_of("model", model, MODELS)
    one_of("cost_model", cost_model, get_args(CostModel))
    one_of("broadcast", broadcast, ("per_tensor", "per_edge"))
    at_least("batch", batch, 1)
    at_least("workers", workers, 2)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    device, step = accelerator_of(accelerator), training_step(model)
    operators = [
        {
            "name": each.name,
            "time_s": float(f"{operator_time_s(step, place, device, batch * workers):.4g}"),
            "replicas": workers,
            "bandwidth_bytes_per_s": network_gigabit_per_s * GIGABIT_PER_S,
            "gradient_bytes": each.gradient_bytes,
            "memory_bytes": _others_bytes(step, place, batch, workers),
            "can_duplicate": not each.local,
        }
        for place, each in enumerate(step)
    ]
    return SfbInstance.from_data(
        {
            "name": f"sfb-{model}-b{batch}-w{workers}-{network_gigabit_per_s:g}g",
            "source": f"Layers as in the architecture's paper, fp32; times assume {device.name}",
            "operators": operators,
            "tensors": list(_tensors(step, batch * workers, workers)),
            "cost_model": cost_model,
            "broadcast": broadcast,
            "duplication_penalty_s": duplication_penalty_s,
            "memory_budget_bytes": memory_budget_bytes,
            "compute_budget_s": compute_budget_s,
        }
    )


def _tensors(step: Step, samples: int, workers: int) -> Iterator[dict[str, Any]]:
    """Every output that is read, with all its readers."""
    consumers: list[list[int]] = [[] for _ in step]
    for place, each in enumerate(step):
        for read in each.reads:
            consumers[read].append(place)
    for place, each in enumerate(step):
        if consumers[place]:
            size_bytes = each.output_bytes(samples, workers)
            yield {"producer": place, "consumers": tuple(consumers[place]), "size_bytes": size_bytes}


def _others_bytes(step: Step, place: int, batch: int, workers: int) -> int:
    """Inputs and output of an operator for the other workers' samples; a gradient takes no more than before."""
    inputs_bytes = sum(step[read].output_bytes(batch) for read in step[place].reads)
    return (workers - 1) * (inputs_bytes + step[place].output_bytes(batch, 0))
