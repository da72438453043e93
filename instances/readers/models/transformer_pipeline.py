"""Plans for training a transformer on a cluster: blocks with times by a roofline and memory by formulas."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ddlopt.instances.options import at_least, checked, one_of, positive
from ddlopt.instances.readers.models.transformer_config import read_sizes
from ddlopt.instances.workloads.accelerators import Accelerator, accelerator_of
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.step_costs import Setting
from ddlopt.instances.workloads.networks.transformer_costs import (
    activation_bytes,
    exchange_time_s,
    input_bytes,
    layer_time_s,
)
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import BF16, FP32, Precision, precision_of
from ddlopt.instances.workloads.step_instances import Menu, blocks_of, menu_of, optimizer_s
from ddlopt.instances.workloads.step_rates import INNER, INNER_LATENCY_S, OUTER, OUTER_LATENCY_S, rates_of
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.deployment.family import DeploymentProblem
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.models.errors import OptionError

# Definitions.
_GIGA, _MICRO = 1e9, 1e-6
_PART_EXCHANGES = 2
"""All-reduces of a part of a block, forward and backward; one more where it is recomputed."""
_ENCODER = "encoder."
_LEAST_TOKENS = 4096
"""A device is not given a smaller part of a sequence."""


@checked
def read_transformer_pipeline(
    path: str | Path | Mapping[str, Any],
    *,
    objective: Literal["step", "throughput"] = "step",
    sequence: int | None = None,
    global_batch: int = 512,
    micro_batch: int | None = None,
    precision: str | None = None,
    servers: int = 8,
    gpus_per_server: int = 8,
    accelerator: str | Accelerator = "h100",
    memory_gigabytes: float | None = None,
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float = 3200.0,
    latency_us: float | None = None,
    unit_servers: int | None = None,
    spine_gigabit_per_s: float | None = None,
    tensor: list[int] | None = None,
    context: list[int] | None = None,
    interleaving: int = 8,
    sharding: list[int] | None = None,
    overlap: float = 1.0,
    fused_attention: bool = True,
    dropout: bool = False,
    slower_inside: bool = False,
    name: str | None = None,
) -> DeploymentProblem:
    """Plans for training a transformer.

    ``step``: uniform degrees, as :class:`~ddlopt.models.deployment.step.instance.StepInstance` says, with every degree
    that the model and a server allow. ``throughput``: stages of their own degrees, a
    :class:`~ddlopt.models.deployment.pipeline.instance.PipelineInstance`, whose layers are blocks, tables and head,
    and whose samples are micro-batches; memory is state, unsharded, and activations, and replicas and stages exchange
    at a device's part of the network.

    Parameters
    ----------
    path : str, Path or mapping
        ``config.json``, or what it holds.
    objective : {"step", "throughput"}
        The time of a step with the same degrees for all blocks, or samples per second of unlike stages.
    sequence : int, optional
        Tokens of a sample; by default the context, at most 2048.
    global_batch : int
        Samples of a step.
    micro_batch : int, optional
        Samples of a micro-batch; by default the best power of two up to 16 that divides the step's, and 1 for
        ``throughput``.
    precision : {"fp32", "bf16", "fp8"}, optional
        By default what the configuration says; where it says nothing, bf16 if the accelerator has it.
    servers, gpus_per_server : int
    accelerator : str or Accelerator
        A name of :data:`~ddlopt.instances.workloads.accelerators.ACCELERATORS`, such as ``h100``, or another.
    memory_gigabytes, intra_gigabytes_per_s : float, optional
        Of an accelerator, in 10⁹ bytes; by default those of its data sheet.
    network_gigabit_per_s : float
        Of a server.
    latency_us : float, optional
        Of a collective between servers.
    unit_servers : int, optional
        Servers whose devices of a rank hang on the same switch (a rail); beyond is the spine.
    spine_gigabit_per_s : float, optional
        Of a server beyond the rails; by default the network's.
    tensor, context : list of int, optional
        Degrees, e.g. ``[1, 2, 4]``; by default those that divide heads, up to a server, and those that leave a
        device 4096 tokens.
    interleaving : int
        The most chunks of a device.
    sharding : list of int, optional
        Levels; by default 0 to 3.
    overlap : float
        Of computation, for messages of copies.
    fused_attention, dropout : bool
        Whether scores are never written, and whether there is dropout.
    slower_inside : bool
        That servers, or rails, are slower inside than outside is meant so.
    name : str, optional

    Raises
    ------
    InstanceError
        If the file is no configuration of a transformer.
    OptionError
        If an option is out of range.
    """
    one_of("objective", objective, ("step", "throughput"))
    counts = {"global_batch": global_batch, "servers": servers, "gpus_per_server": gpus_per_server}
    counts |= {"interleaving": interleaving} | ({} if micro_batch is None else {"micro_batch": micro_batch})
    counts |= {} if unit_servers is None else {"unit_servers": unit_servers}
    for option, count in counts.items():
        at_least(option, count, 1)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    if micro_batch is not None and global_batch % micro_batch:
        raise OptionError(f"micro_batch is {micro_batch}, which does not divide global_batch {global_batch}")
    sizes, own, told = read_sizes(path, sequence)
    known = accelerator_of(accelerator)
    numbers = own or (BF16 if known.has(BF16) else FP32) if precision is None else precision_of(precision)
    told += f"; {numbers} is assumed" if precision is None and own is None else ""
    memory = known.memory_gigabytes if memory_gigabytes is None else memory_gigabytes
    link = known.link_gigabytes_per_s if intra_gigabytes_per_s is None else intra_gigabytes_per_s
    for option, figure in (("memory_gigabytes", memory), ("intra_gigabytes_per_s", link)):
        if figure is None:
            raise OptionError(f"{option} of '{known}' is not known; say it")
        positive(option, figure)
    assert memory is not None
    assert link is not None
    spine = spine_gigabit_per_s
    if spine is not None:
        positive("spine_gigabit_per_s", spine)
        if unit_servers is None:
            raise OptionError("spine_gigabit_per_s is of servers of other units; say how many are one (unit_servers)")
    outside = network_gigabit_per_s * GIGABIT_PER_S / gpus_per_server
    cluster = _Cluster(
        servers, gpus_per_server, known, memory * _GIGA, link * _GIGA, outside,
        latency_us, unit_servers, outside if spine is None else spine * GIGABIT_PER_S / gpus_per_server,
    )  # fmt: skip
    if not slower_inside:
        cluster.ask()
    origin = "configuration" if isinstance(path, Mapping) else str(path)
    data: dict[str, Any] = {"name": name or f"{sizes.name}-{objective}-k{cluster.devices}"}
    if objective == "throughput":
        for option, value in (("context", context), ("sharding", sharding)):
            if value is not None:
                raise OptionError(f"plans for the objective 'throughput' have no {option}; leave it out")
        degrees = _degrees(sizes, gpus_per_server, tensor)
        data |= _throughput(sizes, numbers, cluster, global_batch, micro_batch or 1, degrees, told)
        return PipelineInstance.from_data(data, origin)
    data |= {"interleaving": interleaving, "overlap": overlap} | ({} if sharding is None else {"sharding": sharding})
    menu = menu_of(sizes, gpus_per_server, cluster.devices, global_batch, _contexts(sizes, context))
    menu = menu.changed(tensor=tensor, context=context, micro_batch=None if micro_batch is None else [micro_batch])
    menu.suits(sizes)
    base = Setting(fused=fused_attention, dropout=dropout)
    return StepInstance.from_data(data | _step(sizes, numbers, cluster, global_batch, menu, base, told), origin)


def _contexts(sizes: Transformer, wanted: list[int] | None) -> list[int]:
    return (
        [c for c in (1, 2, 4, 8, 16, 32) if c * _LEAST_TOKENS <= sizes.sequence or c == 1] if wanted is None else wanted
    )


@dataclass(frozen=True)
class _Cluster:
    """Servers and what connects them, in bytes a second of a device."""

    servers: int
    gpus_per_server: int
    accelerator: Accelerator
    memory_bytes: float
    inside_bytes_per_s: float
    outside_bytes_per_s: float
    latency_us: float | None
    unit_servers: int | None
    spine_bytes_per_s: float

    @property
    def devices(self) -> int:
        """Of all servers."""
        return self.servers * self.gpus_per_server

    @property
    def has_rails(self) -> bool:
        """Whether there are servers beyond a unit."""
        return self.unit_servers is not None and 1 < self.unit_servers < self.servers

    def ask(self) -> None:
        """Raise :class:`OptionError` where a device's part of the network is larger outside than inside."""
        inside, outside, spine = (
            each / _GIGA for each in (self.inside_bytes_per_s, self.outside_bytes_per_s, self.spine_bytes_per_s)
        )
        told = ""
        if self.servers > 1 and self.gpus_per_server > 1 and inside < outside:
            told = f"{inside:g} GB/s inside its server and {outside:g} GB/s outside (intra_gigabytes_per_s, "
            told += "network_gigabit_per_s)"
        elif self.has_rails and outside < spine:
            told = f"{outside:g} GB/s inside its unit of servers and {spine:g} GB/s outside (network_gigabit_per_s, "
            told += "spine_gigabit_per_s)"
        if told:
            raise OptionError(f"a device has {told}; if it is meant so, set slower_inside=true")

    def tiers(self) -> list[dict[str, Any]]:
        """What they sustain: inside a server, on a rail, over the spine."""
        latency_s = OUTER_LATENCY_S if self.latency_us is None else self.latency_us * _MICRO
        server, unit = self.gpus_per_server, self.unit_servers
        levels = []
        if server > 1:
            levels.append(("server", server, INNER * self.inside_bytes_per_s, INNER_LATENCY_S))
        if unit is not None and self.has_rails:
            levels.append(("rail", server * unit, OUTER * self.outside_bytes_per_s, latency_s))
            units = -(-self.servers // unit)
            levels.append(("spine", server * unit * units, OUTER * self.spine_bytes_per_s, 2 * latency_s))
        elif self.servers > 1 or not levels:
            levels.append(("network", self.devices, OUTER * self.outside_bytes_per_s, latency_s))
        fields = ("name", "size", "bandwidth_bytes_per_s", "latency_s")
        return [dict(zip(fields, level, strict=True)) for level in levels]


def _step(
    sizes: Transformer, precision: Precision, cluster: _Cluster, global_batch: int, menu: Menu, base: Setting, told: str
) -> dict[str, Any]:
    """Fields of a step instance."""
    rates = rates_of(cluster.accelerator, precision)
    moments = precision.state_bytes - precision.number_bytes - precision.gradient_bytes
    share = rates.matrix_shares[0][1]
    card = cluster.accelerator.name.partition(" at ")[0]
    tiers = cluster.tiers()
    fused = "fused attention" if base.fused else "attention that writes its scores"
    return blocks_of(sizes, precision, rates, menu, base) | {
        "source": f"{told}, {precision}, {global_batch} samples a step; times assume {card} at {share:.0%} of "
        f"{rates.matrix_flops_per_s:.4g} operations a second in large products, {fused}",
        "devices": cluster.devices,
        "memory_bytes": cluster.memory_bytes,
        "tiers": tiers,
        "global_batch": global_batch,
        "handed_bytes": sum(input_bytes(stack, 1, precision) for stack in (sizes, sizes.encoder) if stack is not None),
        "weight_bytes": precision.number_bytes,
        "gradient_bytes": precision.gradient_bytes,
        "optimizer_bytes": moments,
        "optimizer_s": optimizer_s(precision, moments, rates),
        # Of equal data sheets less is sustained inside than outside; what was odd in these has been asked about.
        "slower_inside": any(
            inner["bandwidth_bytes_per_s"] < outer["bandwidth_bytes_per_s"] for inner, outer in pairwise(tiers)
        ),
    }


def _throughput(
    sizes: Transformer,
    numbers: Precision,
    cluster: _Cluster,
    global_batch: int,
    micro_batch: int,
    degrees: list[int],
    told: str,
) -> dict[str, Any]:
    """Fields of a pipeline instance."""
    gpu = cluster.accelerator.at(numbers)
    making = _Making(sizes, numbers, gpu, micro_batch, cluster.inside_bytes_per_s, degrees)
    return {
        "source": f"{told}, {numbers}, {numbers.state_bytes} bytes a parameter; {global_batch} samples a step in "
        f"micro-batches of {micro_batch}; times assume {gpu.name}",
        "layers": making.layers(),
        "edges": [
            {"maker": place, "user": place + 1, "size_bytes": size}
            for place, size in enumerate(making.sent_bytes()[:-1])
        ],
        "devices": cluster.devices,
        "memory_bytes": cluster.memory_bytes,
        "bandwidth_bytes_per_s": cluster.outside_bytes_per_s,
        "micro_batches": global_batch // micro_batch,
    }


def _degrees(sizes: Transformer, most: int, wanted: list[int] | None) -> list[int]:
    """Those wanted, or powers of two: within a server, and such that they divide the heads, and what else is cut."""
    stacks = [sizes] if sizes.encoder is None else [sizes, sizes.encoder]
    parts = {(part, stack) for stack in stacks for block in stack.blocks() for part in stack.parts(block)}
    cut = [stack.mixer.cuts if part == "mixer" and stack.mixer else stack.heads for part, stack in parts]
    fitting = [t for t in range(1, most + 1) if all(count % t == 0 for count in cut)]
    if wanted == []:
        raise OptionError("tensor is []; list at least one, or leave it out")
    for t in wanted or ():
        if t not in fitting:
            raise OptionError(
                f"tensor degree {t} does not divide {' and '.join(map(str, sorted(set(cut))))} heads within a server; "
                f"these do: {', '.join(map(str, fitting))}"
            )
    return sorted(set(wanted)) if wanted else [t for t in fitting if t & (t - 1) == 0]


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
