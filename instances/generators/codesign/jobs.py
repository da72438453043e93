"""The training jobs of TopoOpt's evaluation with their parallelization strategies left open."""

from pathlib import Path
from typing import Any, get_args

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.readers.graphs.flexnet_measures import Measures, read_measures
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.codesign.compressors import add_compressed, compressions
from ddlopt.instances.workloads.codesign.graphs import Graph, graph_of
from ddlopt.instances.workloads.codesign.measured import fill
from ddlopt.instances.workloads.codesign.strategies import Menus, Setting, Sharded
from ddlopt.instances.workloads.precision import FP32, Precision, precision_of
from ddlopt.instances.workloads.topoopt import JOBS, setting_of
from ddlopt.instances.workloads.training import GIGABIT_PER_S, Workload
from ddlopt.models.codesign import CodesignInstance, Device
from ddlopt.models.errors import OptionError

_STATE_FP32 = 8.0
"""A weight and its gradient: plain SGD."""
LARGEST_GROUP = 16
"""Servers of a group for tensor parallelism, unless the option says otherwise or all servers are one."""


def job(
    rng: np.random.Generator,
    *,
    job: str = "dlrm",
    servers: int = 12,
    degree: int = 4,
    gigabit_per_s: float | None = None,
    gpus_per_server: int | None = None,
    batch_per_gpu: int | None = None,
    optics: str = "one_way",
    overlap: str = "none",
    parallel_links: bool = True,
    host_forwarding: bool = True,
    accelerator: str | Accelerator = "a100",
    memory_gigabytes: float | None = 40.0,
    state_bytes_per_parameter: float = 8.0,
    groups: tuple[int, ...] | None = None,
    subsets: tuple[int, ...] | None = None,
    owners: str = "round_robin",
    measures: str | Path | None = None,
    compressors: tuple[str, ...] | None = None,
    error_budget: float | None = None,
) -> CodesignInstance:
    """A job of TopoOpt's evaluation; nothing in it is random.

    What strategies cost stands with :mod:`ddlopt.instances.workloads.codesign.strategies`.

    Parameters
    ----------
    job : str
        One of :data:`ddlopt.instances.workloads.topoopt.JOBS`.
    gigabit_per_s : float, optional
        Of a link; None: as in the setting for this number of servers
        (:func:`ddlopt.instances.workloads.topoopt.setting_of`).
    gpus_per_server, batch_per_gpu : int, optional
        Likewise.
    accelerator : {"a100", "v100"}
        A roofline with assumed rates.
    memory_gigabytes : float, optional
        Of a GPU, in 10⁹ bytes; None: no limit.
    state_bytes_per_parameter : float
        Weight, gradient and optimizer state: 8 for plain SGD, as FlexNet counts; 12 with momentum, 16 for Adam.
    groups : tuple of int, optional
        Sizes of groups for tensor parallelism, divisors of ``servers``; None: powers of two up to 16, and all servers
        where these are at most 16.
    subsets : tuple of int, optional
        On how many servers a layer may be data parallel besides all; None: a half and a quarter.
    owners : {"round_robin", "all"}
        Whether a table may be whole on the one server that has its turn, or on any.
    measures : str or Path, optional
        Operator times to use in place of the roofline (:mod:`ddlopt.instances.readers.graphs.flexnet_measures`).
    compressors : tuple of str, optional
        ``fp16`` or ``random_k:RATIO``: in what ways gradients of layers may be sent besides as they are, see
        :mod:`ddlopt.instances.workloads.codesign.compressors`.
    error_budget : float, optional
        Which part of the energy of all gradients may be lost by that; None for no limit.

    Raises
    ------
    OptionError
        If an option is out of range.
    InstanceError
        If ``measures`` cannot be read or lacks a time.
    """
    one_of("job", job, JOBS)
    at_least("servers", servers, 2)
    cluster = setting_of(servers)
    return network_job(
        cluster.jobs[job](),
        cluster.source,
        servers=servers,
        degree=degree,
        gigabit_per_s=cluster.link_gigabit_per_s if gigabit_per_s is None else gigabit_per_s,
        gpus_per_server=cluster.gpus_per_server if gpus_per_server is None else gpus_per_server,
        batch_per_gpu=batch_per_gpu,
        fabric={
            "optics": optics,
            "overlap": overlap,
            "parallel_links": parallel_links,
            "host_forwarding": host_forwarding,
        },
        accelerator=accelerator,
        memory_gigabytes=memory_gigabytes,
        state_bytes_per_parameter=state_bytes_per_parameter,
        groups=groups,
        subsets=subsets,
        owners=owners,
        measures=None if measures is None else read_measures(measures),
        compressors=compressors,
        error_budget=error_budget,
    ).model_copy(update={"name": f"{job}-n{servers}-d{degree}"})


def network_job(
    workload: Workload, source: str, *, batch_per_gpu: int | None = None, **options: Any
) -> CodesignInstance:
    """Any workload whose name is one of TopoOpt's networks; the options are those of :func:`graph_job`."""
    batch = workload.batch_per_gpu if batch_per_gpu is None else batch_per_gpu
    return graph_job(graph_of(workload), workload.name, source, batch_per_gpu=batch, **options)


def graph_job(
    graph: Graph,
    name: str,
    source: str,
    *,
    servers: int,
    degree: int,
    gigabit_per_s: float,
    batch_per_gpu: int,
    gpus_per_server: int = 1,
    fabric: dict[str, Any] | None = None,
    accelerator: str | Accelerator = "a100",
    memory_gigabytes: float | None = 40.0,
    state_bytes_per_parameter: float | None = None,
    groups: tuple[int, ...] | None = None,
    subsets: tuple[int, ...] | None = None,
    owners: str = "round_robin",
    measures: Measures | None = None,
    precision: str | Precision = FP32,
    micro_batches: int = 1,
    recompute: bool = False,
    sharded: str = "none",
    compressors: tuple[str, ...] | None = None,
    error_budget: float | None = None,
) -> CodesignInstance:
    """Any network that is cut into pieces; the options are those of :func:`job`.

    Parameters
    ----------
    graph : Graph
    name, source : str
        Of the network.
    fabric : dict, optional
        ``optics``, ``overlap``, ``parallel_links`` and ``host_forwarding``, where they are not the usual ones.
    state_bytes_per_parameter : float, optional
        By default 8 in single precision, as FlexNet counts, and otherwise what Adam keeps.
    precision : {"fp32", "bf16", "fp8"} or Precision
    micro_batches : int
        In how many turns an accelerator's samples of an iteration run: a divisor of ``batch_per_gpu``.
    recompute : bool
        Whether the backward pass makes the inside of blocks again.
    sharded : {"none", "optimizer", "gradients", "parameters"}
        What of the state replicas share out, each with all before it (ZeRO 1 to 3).
    compressors : tuple of str, optional
        As of :func:`job`; gradients of shared state are not compressed.
    error_budget : float, optional
        Which part of the energy of all gradients may be lost by that; None for no limit.
    """
    at_least("servers", servers, 2)
    at_least("degree", degree, 1)
    at_least("gpus_per_server", gpus_per_server, 1)
    at_least("batch_per_gpu", batch_per_gpu, 1)
    positive("gigabit_per_s", gigabit_per_s)
    menu = compressions(compressors or ())
    if menu and sharded != "none":
        raise OptionError(f"compressors is for sharded=none; with {sharded} gradients are not reduced by themselves")
    if error_budget is not None:
        at_least("error_budget", error_budget, 0)
    numbers = precision_of(precision)
    if state_bytes_per_parameter is None:
        state_bytes_per_parameter = _STATE_FP32 if numbers == FP32 else numbers.state_bytes
    at_least("state_bytes_per_parameter", state_bytes_per_parameter, 4)
    one_of("owners", owners, ("round_robin", "all"))
    one_of("sharded", sharded, get_args(Sharded))
    at_least("micro_batches", micro_batches, 1)
    if batch_per_gpu % micro_batches:
        raise OptionError(
            f"micro_batches is {micro_batches}, which does not divide the {batch_per_gpu} samples of a GPU"
        )
    gpu = accelerator_of(accelerator).at(numbers)
    if memory_gigabytes is not None:
        positive("memory_gigabytes", memory_gigabytes)
    device = Device(
        name=f"{gpus_per_server} x {gpu.name}",
        flops_per_s=gpus_per_server * gpu.flops_per_s,
        convolution_flops_per_s=gpus_per_server * gpu.convolution_flops_per_s,
        memory_bytes_per_s=gpus_per_server * gpu.memory_bytes_per_s,
        memory_bytes=None if memory_gigabytes is None else gpus_per_server * memory_gigabytes * 1e9,
    )
    setting = Setting(
        servers,
        gpus_per_server,
        servers * gpus_per_server * batch_per_gpu,
        usual_groups(servers) if groups is None else _divisors("groups", groups, servers, 2, servers),
        usual_subsets(servers) if subsets is None else _divisors("subsets", subsets, servers, 1, servers - 1),
        state_bytes_per_parameter,
        owners,  # type: ignore[arg-type]  # one_of has seen to it
        numbers,
        micro_batches,
        recompute,
        sharded,  # type: ignore[arg-type]  # likewise
    )
    menus = Menus(setting)
    layers = menus.layers(graph)
    measured = [] if measures is None else fill(layers, graph, setting, device, measures)
    layers = add_compressed(layers, graph, setting, menu)
    place_of = {layer["name"]: place for place, layer in enumerate(layers)}
    return CodesignInstance.from_data(
        {
            "name": f"{name}-n{servers}-d{degree}",
            "source": f"{source}. {_told(name, setting, gpu.name, measures, measured)}"
            + (f"; gradients may be compressed by {', '.join(dict.fromkeys(compressors or ()))}" if menu else ""),
            "servers": servers,
            "degree": degree,
            "link_bandwidth_bytes_per_s": gigabit_per_s * GIGABIT_PER_S,
            **(fabric or {}),
            "device": device,
            "layouts": menus.layouts,
            "group_sets": menus.group_sets,
            "layers": layers,
            "error_budget": error_budget,
            "edges": [(place_of[read], place_of[piece.name]) for piece in graph.pieces for read in piece.reads],
        }
    )


def usual_groups(servers: int) -> tuple[int, ...]:
    """Powers of two up to :data:`LARGEST_GROUP` that divide the servers, and all servers where they are no more."""
    powers = [g for g in (2, 4, 8, 16) if g < servers and servers % g == 0]
    return (*powers, servers) if servers <= LARGEST_GROUP else tuple(powers)


def usual_subsets(servers: int) -> tuple[int, ...]:
    """Half of the servers and a quarter."""
    return tuple(servers // part for part in (2, 4) if servers % part == 0)


def _divisors(option: str, given: tuple[int, ...], servers: int, least: int, most: int) -> tuple[int, ...]:
    """The sizes given, each once and a divisor of the servers in least..most."""
    for size in given:
        if not least <= size <= most or servers % size:
            raise OptionError(f"{option} contains {size}; use divisors of {servers} in {least}..{most}")
    return tuple(dict.fromkeys(given))


def _told(name: str, setting: Setting, gpu: str, measures: Measures | None, measured: list[str]) -> str:
    text = (
        f"{name}: {setting.samples} samples an iteration, {setting.gpus_per_server} GPUs a server, "
        f"{setting.precision}, {setting.state_bytes_per_parameter:g} bytes a parameter"
        + (f", {setting.micro_batches} micro-batches" if setting.micro_batches > 1 else "")
        + (", blocks recomputed" if setting.recompute else "")
        + (f", {setting.sharded} sharded" if setting.sharded != "none" else "")
        + f"; compute times assume {gpu}"
    )
    return text if measures is None else f"{text}, but for {len(measured)} layers measured in {measures.origin}"
