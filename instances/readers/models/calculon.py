"""Models and systems in the JSON format of calculon-ai/calculon (Apache-2.0) as training steps.

A model has ``hidden``, ``feedforward``, ``seq_size``, ``attn_heads``, ``attn_size`` and ``num_blocks``. A system has
``matrix`` and ``vector`` (``tflops`` and ``gflops_efficiency`` by type of numbers), ``mem1`` (``GiB``, ``GBps``,
``MB_efficiency``), ``processing_mode`` and ``networks`` (``bandwidth`` in GB/s, ``efficiency``, ``size``, ``latency``,
``ops``). There is no embedding and no head, attention writes its scores, and there is dropout.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from ddlopt.instances.options import at_least, checked, one_of
from ddlopt.instances.readers.text_files import object_of
from ddlopt.instances.workloads.networks.rates import Rates, Shares
from ddlopt.instances.workloads.networks.step_costs import Setting
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import Precision
from ddlopt.instances.workloads.step_instances import Menu, blocks_of, tensor_degrees
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.models.errors import InstanceError, OptionError

_HALF = Precision("fp16", 2, 2, 16)
"""Gradients are kept and sent in 16 bits."""
_GIBIBYTE = float(1 << 30)
_ADAM = 11
"""Operations a parameter."""


@checked
def read_calculon(
    path: str | Path,
    *,
    system: str | Path,
    devices: int = 64,
    global_batch: int = 64,
    tensor: int | None = None,
    micro_batch: list[int] | None = None,
    sequence_parallel: list[bool] | None = None,
    gathered: Literal["shown", "kept"] = "kept",
    interleaving: int = 64,
    slower_inside: bool = False,
    name: str | None = None,
) -> StepInstance:
    """A model on a system, without overlap and offloading.

    Parameters
    ----------
    path, system : str or Path
        Files of the model and of the system.
    devices, global_batch : int
        Accelerators, and samples of a step.
    tensor : int, optional
        The tensor degree; the inner network is then for that alone, and all else is sent over the outer one, as there.
    micro_batch : list of int, optional
        By default powers of two.
    sequence_parallel : list of bool, optional
        By default both, for tensor degrees above 1.
    gathered : {"shown", "kept"}
        Whether inputs of products are gathered again (``seq_par_ag_redo``), or kept whole.
    interleaving : int
        The most chunks of a device.
    slower_inside : bool
        That a network is slower than the one around it is meant so.
    name : str, optional

    Raises
    ------
    InstanceError
        If a file is no such file.
    OptionError
        If an option is out of range.
    """
    at_least("devices", devices, 1)
    at_least("global_batch", global_batch, 1)
    model, known = object_of(Path(path), "a model"), object_of(Path(system), "a system")
    try:
        sizes, rates = _sizes(Path(path).stem, model), _rates(known)
        networks = [_tier(place, each) for place, each in enumerate(known["networks"])]
        memory = float(known["mem1"]["GiB"]) * _GIBIBYTE
        scatter = known["networks"][0]["ops"]["reduce_scatter"][0]
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise InstanceError(f"{path}, {system}: no model and system of Calculon: {problem!r}") from None
    if networks[-1]["size"] < devices:
        raise OptionError(f"devices is {devices}, and the outermost network has {networks[-1]['size']}")
    inner = networks[0]["size"]
    if tensor is not None:
        one_of("tensor", str(tensor), tuple(str(t) for t in tensor_degrees(sizes, inner)))
        networks = [networks[0] | {"size": tensor}, *networks[1:]] if tensor > 1 else networks[1:]
    tensors = (tensor,) if tensor else tuple(t for t in tensor_degrees(sizes, min(inner, devices)) if inner % t == 0)
    batches = tuple(1 << place for place in range(global_batch.bit_length()) if global_batch % (1 << place) == 0)
    menu = Menu(tensors, (1,), (1,), batches, (False, True))
    menu = menu.changed(micro_batch=micro_batch, sequence_parallel=sequence_parallel)
    menu.suits(sizes)
    base = Setting(fused=False, dropout=True, gathered=gathered, scatter_factor=scatter, collective_work=True)
    data = blocks_of(sizes, _HALF, rates, menu, base)
    for end in ("embedding", "head"):
        nothing = {"parameters": 0, "options": [{"name": "none", "forward_s": 0, "backward_s": 0}]}
        data[end]["ways"] = [way | nothing for way in data[end]["ways"]]
    moments = _HALF.state_bytes - 2 * _HALF.number_bytes
    data |= {
        "name": name or f"{sizes.name}-k{devices}",
        "source": f"model {sizes.name} and system {Path(system).stem} of Calculon, {global_batch} samples a step",
        "devices": devices,
        "memory_bytes": memory,
        "tiers": networks,
        "global_batch": global_batch,
        "handed_bytes": _HALF.number_bytes * sizes.sequence * sizes.hidden,
        "weight_bytes": _HALF.number_bytes,
        "gradient_bytes": _HALF.gradient_bytes,
        "optimizer_bytes": moments,
        "optimizer_s": moments / (rates.memory_bytes_per_s * rates.memory_shares[0][1])
        + _ADAM / (rates.vector_flops_per_s * rates.vector_shares[0][1]),
        "overlap": 0.0,
        "sharding": (0, 1),
        "interleaving": interleaving,
        "slower_inside": slower_inside,
    }
    return StepInstance.from_data(data, str(path))


def _sizes(name: str, model: Mapping[str, Any]) -> Transformer:
    hidden, width, sequence, heads, head, layers = (
        int(model[key]) for key in ("hidden", "feedforward", "seq_size", "attn_heads", "attn_size", "num_blocks")
    )
    if min(hidden, width, sequence, heads, head, layers) < 1:
        raise ValueError("sizes are at least 1")
    return Transformer(
        name, layers, hidden, heads, 1, width, sequence, heads, head,
        qkv_bias=False, output_bias=False, feed_bias=False,
    )  # fmt: skip


def _rates(system: Mapping[str, Any]) -> Rates:
    matrix, vector, memory = system["matrix"]["float16"], system["vector"]["float16"], system["mem1"]

    def scaled(rows: Iterable[tuple[float, float]], unit: float) -> Shares:
        return tuple((size * unit, share) for size, share in rows)

    return Rates(
        matrix["tflops"] * 1e12,
        vector["tflops"] * 1e12,
        memory["GBps"] * 1e9,
        scaled(matrix["gflops_efficiency"], 1e9),
        scaled(vector["gflops_efficiency"], 1e9),
        scaled(memory["MB_efficiency"], 1e6),
        added=system["processing_mode"] == "no_overlap",
    )


def _tier(place: int, network: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"network {place}",
        "size": int(network["size"]),
        "bandwidth_bytes_per_s": network["bandwidth"] * 1e9 * network["efficiency"],
        "latency_s": network["latency"],
        "collective": "ring" if network["ops"]["all_reduce"][1] else "switch",
    }
