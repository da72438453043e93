"""Which compressor for which gradient of a neural network: ready times by a roofline, costs derived or a planner's."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.compression.compressors import Compression, matrix
from ddlopt.instances.workloads.compression.costs import GPU_S, INTRA_BYTES_PER_S, LANES, LATENCY_S, menu
from ddlopt.instances.workloads.compression.planner_costs import (
    ESPRESSO_COMPRESSORS,
    ESPRESSO_LANES,
    HIPRESS_NODES,
    espresso_cluster,
    espresso_menu,
    hipress_menu,
)
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.networks.gradients import BackwardGradient, backward_gradients
from ddlopt.instances.workloads.training import GIGABIT_PER_S, Workload
from ddlopt.models.compression import Cluster, CompressionInstance, Option
from ddlopt.models.errors import InstanceError, OptionError

MODELS: Mapping[str, Callable[[int], Workload]] = {
    "vgg16": networks.vgg16,
    "vgg19": networks.vgg19,
    "resnet50": networks.resnet50,
    "resnet101": networks.resnet101,
    "bert-base": lambda batch: networks.bert(12, 768, 128, batch),
    "bert-large": lambda batch: networks.bert(24, 1024, 128, batch),
    "gpt2": networks.gpt2,
    "transformer": networks.transformer,
}
"""Networks by the samples of a GPU; BERT on sequences of 128."""
# Definitions.
_GIGA, _MICROSECONDS = 1e9, 1e6
_MOST_ELEMENTS = 10**12
"""Of a gradient; the singular values of a matrix are listed one by one."""
_BATCHES = {"gpt2": 4, "bert-large": 16, "transformer": 64}
MIXED = (
    "fp16",
    "dgc:0.01",
    "dgc:0.001/inter",
    "random_k:0.01/inter",
    "sign",
    "qsgd:7/inter",
    "qsgd:127/inter",
    "powersgd:1",
    "powersgd:4",
    "sfb",
)
"""With no compression and ``dgc`` and ``sign`` between nodes and on both levels: twelve options and SFB's."""


def network(
    rng: np.random.Generator,
    model: str = "vgg16",
    batch: int | None = None,
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float | None = None,
    latency_us: float | None = None,
    coding_us: dict[str, tuple[float, float]] | None = None,
    cost_model: str = "derived",
    compressors: tuple[str, ...] | None = None,
    accelerator: str | Accelerator = "v100",
    error_budget_part: float | None = None,
    goal: str = "time",
    time_budget_s: float | None = None,
    fusion: bool = False,
    largest_bucket_bytes: float | None = None,
    lanes: bool | None = None,
) -> CompressionInstance:
    """A network trained in data parallelism on nodes of GPUs. Nothing is drawn at random.

    Parameters
    ----------
    rng : numpy.random.Generator
    model : str
        One of :data:`MODELS`.
    batch : int, optional
        Samples of a GPU; by default 32, of ``gpt2`` 4, ``bert-large`` 16 and ``transformer`` 64 (our choice).
    nodes, gpus_per_node : int
    intra : {"nvlink", "pcie"}
        What connects the GPUs of a node.
    network_gigabit_per_s : float, optional
        Of a node; by default 25. The planners' cost models have their own.
    intra_gigabytes_per_s : float, optional
        Of a GPU inside its node, per direction; by default 150 with NVLink, 12.5 with PCIe.
    latency_us : float, optional
        Of a message; by default 10.
    coding_us : dict of str to (float, float), optional
        Measured times of compressors, to encode and to decode 2^20 numbers, in place of published ones.
    cost_model : {"derived", "espresso", "hipress", "hipress-ring"}
        :mod:`ddlopt.instances.workloads.compression.costs`, or those of
        :mod:`ddlopt.instances.workloads.compression.planner_costs`: Espresso's for one compressor, HiPress's for one
        GPU a node.
    compressors : list of str, optional
        ``name[:parameter][/scope][/cpu]``; see
        :class:`~ddlopt.instances.workloads.compression.compressors.Compression`. By default :data:`MIXED`, or with
        Espresso's costs ``dgc:0.01``, with ``/inter`` not on both levels.
    accelerator : {"v100", "a100"}
    error_budget_part : float, optional
        Error allowed, as a part of the energy of all gradients, which is taken as proportional to their elements.
    goal : {"time", "error"}
    time_budget_s : float, optional
    fusion : bool
    largest_bucket_bytes : float, optional
    lanes : bool, optional
        Whether CPUs and links are resources of their own in place of one wire: with Espresso's costs the CPUs (which
        its compressor must then name), with derived ones all of
        :data:`~ddlopt.instances.workloads.compression.costs.LANES` that some option passes.

    Raises
    ------
    OptionError
        If an option is out of range or does not go with the others.
    """
    one_of("model", model, tuple(MODELS))
    batch = _BATCHES.get(model, 32) if batch is None else batch
    at_least("batch", batch, 1)
    return trained(
        MODELS[model](batch),
        model,
        "layers as in the architecture's paper",
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        intra=intra,
        intra_gigabytes_per_s=intra_gigabytes_per_s,
        network_gigabit_per_s=network_gigabit_per_s,
        latency_us=latency_us,
        coding_us=coding_us,
        cost_model=cost_model,
        compressors=compressors,
        accelerator=accelerator,
        error_budget_part=error_budget_part,
        goal=goal,
        time_budget_s=time_budget_s,
        fusion=fusion,
        largest_bucket_bytes=largest_bucket_bytes,
        lanes=bool(lanes),
    )


def trained(
    workload: Workload, name: str, told: str, *, accelerator: str | Accelerator = "v100", **options: Any
) -> CompressionInstance:
    """The same for any workload; ``name`` begins the instance's, ``told`` says where the layers are from."""
    gpu = accelerator_of(accelerator).at(workload.precision)
    return timed(
        backward_gradients(workload, gpu),
        _factor_rows(workload),
        name,
        f"{workload.batch_per_gpu} samples of a GPU, {told}, {workload.precision}; times of the backward pass assume "
        f"{gpu.name}",
        **options,
    )


def timed(
    gradients: tuple[BackwardGradient, ...],
    rows: Mapping[str, int],
    name: str,
    told: str,
    *,
    nodes: int = 8,
    gpus_per_node: int = 8,
    intra: str = "nvlink",
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float | None = None,
    latency_us: float | None = None,
    coding_us: dict[str, tuple[float, float]] | None = None,
    cost_model: str = "derived",
    compressors: tuple[str, ...] | None = None,
    error_budget_part: float | None = None,
    goal: str = "time",
    time_budget_s: float | None = None,
    fusion: bool = False,
    largest_bucket_bytes: float | None = None,
    lanes: bool = False,
) -> CompressionInstance:
    """The same where it is known when each gradient is there; ``rows``: vectors that go into dense layers."""
    one_of("intra", intra, tuple(INTRA_BYTES_PER_S))
    one_of("cost_model", cost_model, ("derived", "espresso", "hipress", "hipress-ring"))
    at_least("nodes", nodes, 1)
    at_least("gpus_per_node", gpus_per_node, 1)
    if nodes * gpus_per_node < 2:
        raise OptionError("nodes and gpus_per_node are both 1; a single GPU sends nothing")
    if error_budget_part is not None:
        at_least("error_budget_part", error_budget_part, 0)
    largest = max(gradients, key=lambda each: each.elements)
    if largest.elements > _MOST_ELEMENTS:
        count = float(largest.elements)
        raise InstanceError(f"gradient '{largest.name}' has {count:.3g} numbers; at most {_MOST_ELEMENTS:.3g} are read")
    if cost_model == "derived":
        link = _cluster(nodes, gpus_per_node, intra, intra_gigabytes_per_s, network_gigabit_per_s, latency_us)
        menu_of, cluster = _derived(link, compressors, _coding_s(coding_us), gradients, lanes)
    else:
        own = {
            "network_gigabit_per_s": network_gigabit_per_s,
            "intra_gigabytes_per_s": intra_gigabytes_per_s,
            "latency_us": latency_us,
            "coding_us": coding_us,
        }
        menu_of, cluster = _planners(cost_model, nodes, gpus_per_node, intra, own, compressors, lanes)
    total = sum(each.elements for each in gradients)
    kinds = [(each.shape, rows.get(each.name)) for each in gradients]
    places = {kind: place for place, kind in enumerate(dict.fromkeys(kinds))}
    menus = [menu_of(shape, factors, np.prod(shape, dtype=float) / total) for shape, factors in places]
    passed = {stage.lane for options in menus for option in options for stage in option.stages}
    data: dict[str, Any] = {
        "name": _name(name, cost_model, cluster),
        "source": f"{total} parameters, {told}; errors assume normal entries, and energies proportional to elements",
        "gradients": [
            {"name": each.name, "shape": each.shape, "ready_s": float(f"{each.ready_s:.6g}"), "menu": places[kind]}
            for each, kind in zip(gradients, kinds, strict=True)
        ],
        "menus": menus,
        "cluster": cluster,
        "goal": goal,
        "error_budget": error_budget_part,
        "time_budget_s": time_budget_s,
        "fusion": fusion,
        "largest_bucket_bytes": largest_bucket_bytes,
        "lanes": [lane for lane in (LANES if cost_model == "derived" else ESPRESSO_LANES) if lane in passed],
    }
    return CompressionInstance.from_data(data)


def _name(model: str, cost_model: str, cluster: Cluster) -> str:
    size = f"n{cluster.nodes}" + (f"x{cluster.gpus_per_node}-{cluster.intra}" if cluster.gpus_per_node > 1 else "")
    if cost_model == "derived":
        return f"{model}-{size}-{cluster.inter_bandwidth_bytes_per_s / GIGABIT_PER_S:g}g"
    return f"{cost_model}-{model}-{size}"


_MenuOf = Callable[[tuple[int, ...], int | None, float], tuple[Option, ...]]
"""Options of a gradient by its shape, the rows of its layer's input, and its energy."""


def _planners(
    cost_model: str,
    nodes: int,
    gpus_per_node: int,
    intra: str,
    own: Mapping[str, object],
    compressors: tuple[str, ...] | None,
    lanes: bool,
) -> tuple[_MenuOf, Cluster]:
    """The menus of a planner, and its cluster; it has figures of its own for the options in ``own``."""
    for option, value in own.items():
        if value is not None:
            what = "network" if option == "network_gigabit_per_s" else option
            raise OptionError(f"cost_model '{cost_model}' has its own {what}; leave out {option}")
    if cost_model.startswith("hipress"):
        if lanes:
            raise OptionError(f"cost_model '{cost_model}' has one wire; leave out lanes")
        return _hipress(nodes, gpus_per_node, compressors, cost_model == "hipress-ring")
    wanted = [Compression.from_words(words) for words in (("dgc:0.01",) if compressors is None else compressors)]
    return _espresso(espresso_cluster(nodes, gpus_per_node, intra), wanted, lanes)


def _derived(
    cluster: Cluster,
    compressors: tuple[str, ...] | None,
    coding_s: Mapping[str, tuple[float, float]],
    gradients: tuple[BackwardGradient, ...],
    lanes: bool,
) -> tuple[_MenuOf, Cluster]:
    wanted = [Compression.from_words(words) for words in (MIXED if compressors is None else compressors)]
    if compressors is None:
        most = _largest_rank(gradients)
        wanted = [each for each in wanted if each.compressor != "powersgd" or (each.parameter or 1) <= most]
    _refuse_large_ranks(wanted, gradients)
    return (
        lambda shape, rows, energy: menu(
            shape, cluster, wanted, rows=rows, energy=energy, coding_s=coding_s, lanes=lanes
        ),
        cluster,
    )


def _cluster(
    nodes: int,
    gpus_per_node: int,
    intra: str,
    intra_gigabytes_per_s: float | None,
    gigabit_per_s: float | None,
    latency_us: float | None,
) -> Cluster:
    gigabit_per_s = 25.0 if gigabit_per_s is None else gigabit_per_s
    positive("network_gigabit_per_s", gigabit_per_s)
    if intra_gigabytes_per_s is not None:
        positive("intra_gigabytes_per_s", intra_gigabytes_per_s)
    if latency_us is not None:
        at_least("latency_us", latency_us, 0)
    return Cluster.model_validate(
        {
            "nodes": nodes,
            "gpus_per_node": gpus_per_node,
            "intra": intra,
            "intra_bandwidth_bytes_per_s": INTRA_BYTES_PER_S[intra]
            if intra_gigabytes_per_s is None
            else _GIGA * intra_gigabytes_per_s,
            "inter_bandwidth_bytes_per_s": gigabit_per_s * GIGABIT_PER_S,
            "latency_s": LATENCY_S if latency_us is None else latency_us / _MICROSECONDS,
        }
    )


def _coding_s(coding_us: Mapping[str, tuple[float, float]] | None) -> dict[str, tuple[float, float]]:
    found = {}
    for compressor, times in (coding_us or {}).items():
        one_of("coding_us: a compressor", compressor, tuple(GPU_S))
        if not isinstance(times, list | tuple) or len(times) != 2:
            raise OptionError(f"coding_us of {compressor} is {times!r}; it is two figures, to encode and to decode")
        for time_us in times:
            at_least(f"coding_us of {compressor}", time_us, 0)
        found[compressor] = (times[0] / _MICROSECONDS, times[1] / _MICROSECONDS)
    return found


def _espresso(cluster: Cluster, wanted: list[Compression], lanes: bool) -> tuple[_MenuOf, Cluster]:
    if len(wanted) != 1 or wanted[0].compressor not in ESPRESSO_COMPRESSORS or wanted[0].scope == "intra":
        known = ", ".join(ESPRESSO_COMPRESSORS)
        raise OptionError(f"cost_model 'espresso' takes one compressor of {known}, with no scope or /inter")
    one = wanted[0]
    if lanes and one.device != "cpu":
        raise OptionError(f"lanes is true, but {one.compressor} is not compressed on CPUs; write {one.compressor}…/cpu")
    options = {"two_level": one.scope != "inter", "cpu": one.device == "cpu", "lanes": lanes}
    gpu = Compression(one.compressor, one.parameter)
    return lambda shape, rows, energy: espresso_menu(shape, cluster, gpu, energy=energy, **options), cluster


def _hipress(
    nodes: int, gpus_per_node: int, compressors: tuple[str, ...] | None, ring: bool
) -> tuple[_MenuOf, Cluster]:
    if nodes not in HIPRESS_NODES or gpus_per_node != 1 or compressors is not None:
        sizes = ", ".join(map(str, HIPRESS_NODES))
        raise OptionError(
            f"HiPress's costs are for {sizes} nodes of 1 GPU and its own compressor; change these options"
        )
    # The slope of a step of its ring: 8.5005e-7 ms for 4 bytes.
    bandwidth = 4 / 8.5005e-10
    cluster = Cluster(nodes=nodes, intra_bandwidth_bytes_per_s=bandwidth, inter_bandwidth_bytes_per_s=bandwidth)
    return lambda shape, rows, energy: hipress_menu(shape, nodes, ring=ring, energy=energy), cluster


def _largest_rank(gradients: tuple[BackwardGradient, ...]) -> int:
    return max(min(matrix(each.shape)) for each in gradients)


def _refuse_large_ranks(wanted: list[Compression], gradients: tuple[BackwardGradient, ...]) -> None:
    largest = _largest_rank(gradients)
    for each in wanted:
        if each.compressor == "powersgd" and (each.parameter or 1) > largest:
            raise OptionError(f"rank is {each.parameter:g} for powersgd, but no gradient has a rank above {largest}")


def _factor_rows(workload: Workload) -> dict[str, int]:
    """Vectors that a GPU's batch puts into each dense layer, by the name of its weight's gradient."""
    rows = {}
    for layer in workload.layers:
        for tensor, shape in layer.tensors:
            if len(shape) == 2 and layer.flops:
                rows[f"{layer.name}.{tensor}"] = workload.batch_per_gpu * (layer.flops // (2 * shape[0] * shape[1]))
    return rows
