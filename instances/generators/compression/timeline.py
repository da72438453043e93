"""Which compressor for which gradient of a neural network: ready times by a roofline, costs derived or a planner's."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.compression.compressors import Compression, matrix
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S, LATENCY_S, menu
from ddlopt.instances.workloads.compression.planner_costs import (
    ESPRESSO_COMPRESSORS,
    HIPRESS_NODES,
    espresso_cluster,
    espresso_menu,
    hipress_menu,
)
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.networks.gradients import BackwardGradient, backward_gradients
from ddlopt.instances.workloads.training import ACCELERATORS, GIGABIT_PER_S, Workload
from ddlopt.models.compression import Cluster, CompressionInstance, Option
from ddlopt.models.errors import OptionError

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
    network_gigabit_per_s: float | None = None,
    cost_model: str = "derived",
    compressors: tuple[str, ...] | None = None,
    accelerator: str = "v100",
    error_budget_part: float | None = None,
    goal: str = "time",
    time_budget_s: float | None = None,
    fusion: bool = False,
    largest_bucket_bytes: float | None = None,
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

    Raises
    ------
    OptionError
        If an option is out of range or does not go with the others.
    """
    one_of("model", model, tuple(MODELS))
    one_of("intra", intra, tuple(INTRA_BYTES_PER_S))
    one_of("cost_model", cost_model, ("derived", "espresso", "hipress", "hipress-ring"))
    one_of("accelerator", accelerator, tuple(ACCELERATORS))
    at_least("nodes", nodes, 1)
    at_least("gpus_per_node", gpus_per_node, 1)
    if nodes * gpus_per_node < 2:
        raise OptionError("nodes and gpus_per_node are both 1; a single GPU sends nothing")
    if error_budget_part is not None:
        at_least("error_budget_part", error_budget_part, 0)
    batch = _BATCHES.get(model, 32) if batch is None else batch
    at_least("batch", batch, 1)
    workload, gpu = MODELS[model](batch), ACCELERATORS[accelerator]
    gradients = backward_gradients(workload, gpu)
    menu_of, cluster = _costs(cost_model, nodes, gpus_per_node, intra, network_gigabit_per_s, compressors, gradients)
    rows, total = _factor_rows(workload), sum(each.elements for each in gradients)
    kinds = [(each.shape, rows.get(each.name)) for each in gradients]
    places = {kind: place for place, kind in enumerate(dict.fromkeys(kinds))}
    data: dict[str, Any] = {
        "name": _name(model, cost_model, cluster),
        "source": f"{total} parameters, {batch} samples of a GPU, layers as in the architecture's paper, fp32; times "
        f"of the backward pass assume {gpu.name}; errors assume normal entries, and energies proportional to elements",
        "gradients": [
            {"name": each.name, "shape": each.shape, "ready_s": float(f"{each.ready_s:.6g}"), "menu": places[kind]}
            for each, kind in zip(gradients, kinds, strict=True)
        ],
        "menus": [menu_of(shape, factors, np.prod(shape, dtype=float) / total) for shape, factors in places],
        "cluster": cluster,
        "goal": goal,
        "error_budget": error_budget_part,
        "time_budget_s": time_budget_s,
        "fusion": fusion,
        "largest_bucket_bytes": largest_bucket_bytes,
    }
    return CompressionInstance.from_data(data)


def _name(model: str, cost_model: str, cluster: Cluster) -> str:
    size = f"n{cluster.nodes}" + (f"x{cluster.gpus_per_node}-{cluster.intra}" if cluster.gpus_per_node > 1 else "")
    if cost_model == "derived":
        return f"{model}-{size}-{cluster.inter_bandwidth_bytes_per_s / GIGABIT_PER_S:g}g"
    return f"{cost_model}-{model}-{size}"


_MenuOf = Callable[[tuple[int, ...], int | None, float], tuple[Option, ...]]
"""Options of a gradient by its shape, the rows of its layer's input, and its energy."""


def _costs(
    cost_model: str,
    nodes: int,
    gpus_per_node: int,
    intra: str,
    gigabit_per_s: float | None,
    compressors: tuple[str, ...] | None,
    gradients: tuple[BackwardGradient, ...],
) -> tuple[_MenuOf, Cluster]:
    """The menus of a cost model, and its cluster."""
    if cost_model != "derived" and gigabit_per_s is not None:
        raise OptionError(f"cost_model '{cost_model}' has its own network; leave out network_gigabit_per_s")
    if cost_model.startswith("hipress"):
        return _hipress(nodes, gpus_per_node, compressors, cost_model == "hipress-ring")
    default = ("dgc:0.01",) if cost_model == "espresso" else MIXED
    wanted = [Compression.from_words(words) for words in (default if compressors is None else compressors)]
    if cost_model == "espresso":
        return _espresso(espresso_cluster(nodes, gpus_per_node, intra), wanted)
    gigabit_per_s = 25.0 if gigabit_per_s is None else gigabit_per_s
    positive("network_gigabit_per_s", gigabit_per_s)
    cluster = Cluster.model_validate(
        {
            "nodes": nodes,
            "gpus_per_node": gpus_per_node,
            "intra": intra,
            "intra_bandwidth_bytes_per_s": INTRA_BYTES_PER_S[intra],
            "inter_bandwidth_bytes_per_s": gigabit_per_s * GIGABIT_PER_S,
            "latency_s": LATENCY_S,
        }
    )
    _refuse_large_ranks(wanted, gradients)
    return lambda shape, rows, energy: menu(shape, cluster, wanted, rows=rows, energy=energy), cluster


def _espresso(cluster: Cluster, wanted: list[Compression]) -> tuple[_MenuOf, Cluster]:
    if len(wanted) != 1 or wanted[0].compressor not in ESPRESSO_COMPRESSORS or wanted[0].scope == "intra":
        known = ", ".join(ESPRESSO_COMPRESSORS)
        raise OptionError(f"cost_model 'espresso' takes one compressor of {known}, with no scope or /inter")
    one = wanted[0]
    options = {"two_level": one.scope != "inter", "cpu": one.device == "cpu"}
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


def _refuse_large_ranks(wanted: list[Compression], gradients: tuple[BackwardGradient, ...]) -> None:
    largest = max(min(matrix(each.shape)) for each in gradients)
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
