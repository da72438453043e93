"""Training jobs from networks that were read from anywhere: gradients, links, strategies, operators on devices."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ddlopt.instances.generators.codesign.jobs import graph_job
from ddlopt.instances.generators.compression.timeline import trained
from ddlopt.instances.generators.deployment.network import deployed
from ddlopt.instances.options import at_least, checked, one_of, positive
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.codesign.graphs import Graph
from ddlopt.instances.workloads.device_groups import Devices
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.instances.workloads.precision import FP32, Precision, precision_of
from ddlopt.instances.workloads.training import GIGABIT_PER_S, Workload, training_job
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.bounds import fits, least_memory_bytes
from ddlopt.models.compression import CompressionInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.topology import TopologyInstance


@dataclass(frozen=True)
class Network:
    """A network, whatever it was read from.

    Parameters
    ----------
    name : str
        With which names of instances begin.
    told : str
        Where its layers are from.
    workload : callable
        Given samples of a GPU, the layers with their gradients.
    graph : callable
        The pieces that strategies are for.
    step : callable
        The operators of a training step.
    precision : Precision
        In which it is trained unless told otherwise.
    """

    name: str
    told: str
    workload: Callable[[int], Workload]
    graph: Callable[[], Graph]
    step: Callable[[], Step]
    precision: Precision = FP32

    def in_precision(self, wanted: str | Precision | None) -> Precision:
        """A precision, or the network's own."""
        return self.precision if wanted is None else precision_of(wanted)


def reader(load: Callable[..., Network], make: Callable[..., Instance]) -> Callable[..., Instance]:
    """A reader of files: takes a path, what ``load`` takes besides it, and what ``make`` takes besides a network."""
    _, *of_load = inspect.signature(load).parameters.values()
    _, *of_make = inspect.signature(make).parameters.values()

    def read(path: str | Path, **options: Any) -> Instance:
        own = {each.name: options.pop(each.name) for each in of_load if each.name in options}
        name = options.pop("name", None)
        instance = make(load(path, **own), **options)
        return instance if name is None else instance.model_copy(update={"name": name})

    path = inspect.Parameter("path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    name = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
    made = inspect.signature(make, eval_str=True).return_annotation
    read.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [path, *of_load, *of_make, name], return_annotation=made
    )
    read.__doc__ = make.__doc__
    read.made_of = (load, make)  # type: ignore[attr-defined]
    return checked(read)


def compression(
    network: Network,
    *,
    batch: int = 32,
    accelerator: str | Accelerator = "v100",
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float = 25.0,
    latency_us: float | None = None,
    coding_us: dict[str, tuple[float, float]] | None = None,
    compressors: tuple[str, ...] | None = None,
    error_budget_part: float | None = None,
    fusion: bool = False,
    precision: str | None = None,
) -> CompressionInstance:
    """Which gradients of a network to compress, where it is trained in data parallelism.

    Gradients are summed in fp32; when one is ready follows from the operations and the bytes of the layers, by the
    roofline of an accelerator.

    Parameters
    ----------
    network : Network
    batch : int
        Samples of a GPU and step.
    accelerator : str or Accelerator
        A name of :data:`~ddlopt.instances.workloads.accelerators.ACCELERATORS`, such as ``h100``, or another.
    nodes, gpus_per_node, intra, intra_gigabytes_per_s, network_gigabit_per_s, latency_us, coding_us, compressors
        As in :func:`~ddlopt.instances.generators.compression.timeline.network`.
    error_budget_part, fusion
        Likewise.
    precision : {"fp32", "bf16", "fp8"}, optional
        In which products run; by default what the network says, or fp32.
    """
    at_least("batch", batch, 1)
    return trained(
        network.workload(batch).at(network.in_precision(precision)),
        network.name,
        network.told,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        intra=intra,
        intra_gigabytes_per_s=intra_gigabytes_per_s,
        network_gigabit_per_s=network_gigabit_per_s,
        latency_us=latency_us,
        coding_us=coding_us,
        compressors=compressors,
        accelerator=accelerator,
        error_budget_part=error_budget_part,
        fusion=fusion,
    )


def topology(
    network: Network,
    *,
    batch: int = 32,
    accelerator: str | Accelerator = "a100",
    servers: int = 12,
    degree: int = 4,
    gigabit_per_s: float = 100.0,
    gpus_per_server: int = 4,
    optics: str = "one_way",
    precision: str | None = None,
) -> TopologyInstance:
    """The links for a network's training in data parallelism on all servers, one ring all-reduce an iteration.

    Parameters
    ----------
    network, batch, accelerator, precision
        As in :func:`compression`.
    servers, degree : int
    gigabit_per_s : float
        Of a link, per direction.
    gpus_per_server : int
    optics : {"one_way", "duplex"}
    """
    at_least("batch", batch, 1)
    at_least("degree", degree, 1)
    positive("gigabit_per_s", gigabit_per_s)
    one_of("optics", optics, ("one_way", "duplex"))
    numbers = network.in_precision(precision)
    return training_job(
        network.workload(batch).at(numbers),
        servers,
        degree,
        gigabit_per_s * GIGABIT_PER_S,
        gpus_per_server,
        optics,  # type: ignore[arg-type]  # one_of has seen to it
        accelerator_of(accelerator).at(numbers),
        f"{network.name}-n{servers}-d{degree}",
        network.told,
    )


def codesign(
    network: Network,
    *,
    batch: int = 32,
    accelerator: str | Accelerator = "a100",
    servers: int = 12,
    degree: int = 4,
    gigabit_per_s: float = 100.0,
    gpus_per_server: int = 4,
    optics: str = "one_way",
    overlap: str = "none",
    memory_gigabytes: float | None = 40.0,
    state_bytes_per_parameter: float | None = None,
    groups: tuple[int, ...] | None = None,
    subsets: tuple[int, ...] | None = None,
    precision: str | None = None,
    micro_batches: int = 1,
    recompute: bool = False,
    sharded: str = "none",
    compressors: tuple[str, ...] | None = None,
    error_budget: float | None = None,
) -> CodesignInstance:
    """How each layer of a network is split over the servers, together with links, rings and routes.

    What strategies cost stands with :mod:`ddlopt.instances.workloads.codesign.strategies`.

    Parameters
    ----------
    network, batch, accelerator, precision
        As in :func:`compression`.
    servers, degree, gigabit_per_s, gpus_per_server, optics
        As in :func:`topology`.
    overlap, memory_gigabytes, state_bytes_per_parameter, groups, subsets
        As in :func:`~ddlopt.instances.generators.codesign.jobs.job`.
    micro_batches, recompute, sharded, compressors, error_budget
        As in :func:`~ddlopt.instances.generators.codesign.jobs.graph_job`.
    """
    given: dict[str, Any] = {"micro_batches": micro_batches, "recompute": recompute, "sharded": sharded}
    make = partial(
        graph_job,
        network.graph(),
        network.name,
        network.told,
        servers=servers,
        degree=degree,
        gigabit_per_s=gigabit_per_s,
        batch_per_gpu=batch,
        gpus_per_server=gpus_per_server,
        fabric={"optics": optics, "overlap": overlap},
        accelerator=accelerator,
        memory_gigabytes=memory_gigabytes,
        state_bytes_per_parameter=state_bytes_per_parameter,
        groups=groups,
        subsets=subsets,
        precision=network.in_precision(precision),
        compressors=compressors,
        error_budget=error_budget,
    )
    instance = make(**given)
    return instance if fits(instance) else instance.model_copy(update={"remedies": _remedies(make, given, batch)})


def _remedies(make: Callable[..., CodesignInstance], given: dict[str, Any], batch: int) -> tuple[str, ...]:
    """The options that save memory, each by itself and then all, with the least memory of all servers under them."""
    most = {"micro_batches": batch, "recompute": True, "sharded": "parameters"}
    left = {name: value for name, value in most.items() if given[name] != value}
    tried = [{name: value} for name, value in left.items()] + ([left] if len(left) > 1 else [])
    told = []
    for options in tried:
        instance = make(**{**given, **options})
        words = " ".join(f"{name}={str(value).lower()}" for name, value in options.items())
        told.append(f"{words}: {least_memory_bytes(instance):.6g} bytes, {'fits' if fits(instance) else 'too much'}")
    return tuple(told)


def deployment(
    network: Network,
    *,
    batch: int = 96,
    groups: int = 40,
    devices_of: str | Devices = "testbed",
    separate_gradients: bool = False,
    grouping: str | None = None,
    seed: int = 0,
    precision: str | None = None,
) -> DeploymentInstance:
    """Where the operators of a network's training step run, and how gradients travel.

    Parameters
    ----------
    network : Network
    batch : int
        Samples of a step, on all devices together.
    groups, devices_of, separate_gradients, grouping
        As in :func:`~ddlopt.instances.generators.deployment.network.network`.
    seed : int
        Of ``devices_of="random"``.
    precision : {"fp32", "bf16", "fp8"}, optional
        As in :func:`compression`.
    """
    at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    return deployed(
        network.step(),
        network.name,
        network.told,
        rng,
        groups,
        batch,
        devices_of,
        separate_gradients,
        grouping,
        network.in_precision(precision),
    )
