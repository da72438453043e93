"""Plans for pipelines of a transformer on a cluster: blocks with times by a roofline and memory by formulas."""

from pathlib import Path
from typing import Any

from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.models.transformer_config import read_sizes
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformer_costs import (
    activation_bytes,
    exchange_time_s,
    input_bytes,
    layer_time_s,
)
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import Precision, precision_of
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.errors import OptionError

# A definition.
_GIGA = 1e9
_PART_EXCHANGES = 2
"""All-reduces of a part of a block, forward and backward; one more where it is recomputed."""
_ENCODER = "encoder."


@checked
def read_transformer_pipeline(
    path: str | Path,
    *,
    sequence: int | None = None,
    global_batch: int = 512,
    micro_batch: int = 1,
    precision: str | None = None,
    nodes: int = 8,
    gpus_per_node: int = 8,
    accelerator: str | Accelerator = "h100",
    memory_gigabytes: float | None = None,
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float = 400.0,
    name: str | None = None,
) -> PipelineInstance:
    """Stages, degrees and options of a transformer's training.

    A layer of the instance is a block, the tables or the head; a sample of the instance is a micro-batch. What an
    encoder gives goes along from stage to stage of the decoder. Devices that share a layer are in one server and
    exchange at its bandwidth, which is in a layer's time; stages and replicas exchange at a device's part of the
    network. Memory is state, unsharded, and activations.

    Parameters
    ----------
    path : str or Path
        ``config.json``.
    sequence : int, optional
        Tokens of a sample; by default the context, at most 2048.
    global_batch, micro_batch : int
        Samples of a step and of a micro-batch.
    precision : {"fp32", "bf16", "fp8"}, optional
        By default what the configuration says.
    nodes, gpus_per_node : int
    accelerator : str or Accelerator
    memory_gigabytes, intra_gigabytes_per_s : float, optional
        Of an accelerator, in 10⁹ bytes; by default those of its data sheet.
    network_gigabit_per_s : float
        Of a server.
    name : str, optional

    Raises
    ------
    InstanceError
        If the file is no configuration of a transformer.
    OptionError
        If an option is out of range.
    """
    for option, count in (("global_batch", global_batch), ("micro_batch", micro_batch), ("nodes", nodes)):
        at_least(option, count, 1)
    at_least("gpus_per_node", gpus_per_node, 1)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    if global_batch % micro_batch:
        raise OptionError(f"micro_batch is {micro_batch}, which does not divide global_batch {global_batch}")
    sizes, own, told = read_sizes(path, sequence)
    numbers = own if precision is None else precision_of(precision)
    known = accelerator_of(accelerator)
    memory = known.memory_gigabytes if memory_gigabytes is None else memory_gigabytes
    link = known.link_gigabytes_per_s if intra_gigabytes_per_s is None else intra_gigabytes_per_s
    for option, figure in (("memory_gigabytes", memory), ("intra_gigabytes_per_s", link)):
        if figure is None:
            raise OptionError(f"{option} of '{known}' is not known; say it")
        positive(option, figure)
    assert memory is not None
    assert link is not None
    gpu = known.at(numbers)
    making = _Making(sizes, numbers, gpu, micro_batch, link * _GIGA, _degrees(sizes, gpus_per_node))
    layers, sent = making.layers(), making.sent_bytes()
    return PipelineInstance.from_data(
        {
            "name": name or f"{sizes.name}-pipeline-k{nodes * gpus_per_node}",
            "source": f"{told}, {numbers}, {numbers.state_bytes} bytes a parameter; {global_batch} samples a step in "
            f"micro-batches of {micro_batch}; times assume {gpu.name}",
            "layers": layers,
            "edges": [{"maker": place, "user": place + 1, "size_bytes": size} for place, size in enumerate(sent[:-1])],
            "devices": nodes * gpus_per_node,
            "memory_bytes": memory * _GIGA,
            "bandwidth_bytes_per_s": network_gigabit_per_s * GIGABIT_PER_S / gpus_per_node,
            "micro_batches": global_batch // micro_batch,
        },
        str(path),
    )


def _degrees(sizes: Transformer, most: int) -> list[int]:
    """Powers of two within a server that divide the heads, and what else is cut."""
    stacks = [sizes] if sizes.encoder is None else [sizes, sizes.encoder]
    parts = {(part, stack) for stack in stacks for block in stack.blocks() for part in stack.parts(block)}
    cut = [stack.mixer.cuts if part == "mixer" and stack.mixer else stack.heads for part, stack in parts]
    return [t for t in (1, 2, 4, 8, 16, 32, 64) if t <= most and all(count % t == 0 for count in cut)]


def _kind(name: str) -> str:
    """The block that a layer is in, or the tables or the head of its stack."""
    stack = _ENCODER if name.startswith(_ENCODER) else ""
    first, *rest = name.removeprefix(stack).split(".")
    return stack + (f"block.{rest[0]}" if first == "block" else first if first == "embedding" else "head")


class _Making:
    """The layers of an instance."""

    def __init__(
        self,
        sizes: Transformer,
        precision: Precision,
        gpu: Accelerator,
        samples: int,
        link_bytes_per_s: float,
        degrees: list[int],
    ) -> None:
        self.sizes, self.precision, self.gpu, self.samples = sizes, precision, gpu, samples
        self.link_bytes_per_s, self.degrees = link_bytes_per_s, degrees
        self.by_kind: dict[str, list[Layer]] = {}
        for layer in sizes.workload(1).at(precision).layers:
            self.by_kind.setdefault(_kind(layer.name), []).append(layer)

    def stack_of(self, kind: str) -> Transformer:
        """The encoder or the decoder."""
        encoder = self.sizes.encoder
        return encoder if encoder is not None and kind.startswith(_ENCODER) else self.sizes

    def sent_bytes(self) -> list[float]:
        """What each layer of the instance hands on."""
        encoder = self.sizes.encoder
        along = 0.0 if encoder is None else input_bytes(encoder, self.samples, self.precision)
        return [
            input_bytes(self.stack_of(kind), self.samples, self.precision)
            + (0.0 if kind.startswith(_ENCODER) else along)
            for kind in self.by_kind
        ]

    def layers(self) -> list[dict[str, Any]]:
        return [
            {"name": kind, "menus": [self._menu(kind, own, t) for t in self.degrees]}
            for kind, own in self.by_kind.items()
        ]

    def _menu(self, kind: str, layers: list[Layer], tensor: int) -> dict[str, Any]:
        parameters, sizes = sum(layer.parameters for layer in layers), self.stack_of(kind)
        block = ".".join(kind.split(".")[-2:]).startswith("block.")
        given = input_bytes(sizes, self.samples, self.precision)
        options = []
        for name, recomputed in (("kept", False), ("recomputed", True))[: 2 if block else 1]:
            kept = given / tensor
            if not recomputed:
                kept = (
                    activation_bytes(sizes, kind, self.samples, tensor, self.precision)
                    if block
                    else self.precision.number_bytes * self.samples * sum(each.outputs for each in layers) / tensor
                )
            count = (_PART_EXCHANGES + recomputed) * len(sizes.parts(kind)) if block else 1
            exchange_s = exchange_time_s(given, count, tensor, self.link_bytes_per_s)
            options.append(
                {
                    "name": name,
                    "time_s": layer_time_s(layers, self.samples, tensor, self.gpu, recomputed) + exchange_s,
                    # The objective counts four times what is told, an all-reduce sends its bytes twice.
                    "weight_bytes": self.precision.gradient_bytes * parameters / 2 / tensor,
                    "kept_bytes": kept,
                    "fixed_bytes": self.precision.state_bytes * parameters / tensor,
                }
            )
        return {"tensor": tensor, "options": options}
