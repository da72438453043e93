"""The data of one co-design problem: a network's layers, how each may be split over the servers, and the fabric."""

import math
from collections.abc import Iterable
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Part, without
from ddlopt.models.sizes import require_memory
from ddlopt.models.tolerances import let_pass
from ddlopt.models.topology.instance import Fabric


class Device(Part):
    """What the accelerators of one server sustain and hold together: a roofline, as in the instance's source.

    Parameters
    ----------
    name : str
    flops_per_s, convolution_flops_per_s : float
        Rates of matrix products and of convolutions.
    memory_bytes_per_s : float
        Bandwidth of the device's memory.
    memory_bytes : float or None
        What parameters, optimizer state and activations may take on a server; None for no limit.
    """

    name: str = ""
    flops_per_s: float = Field(gt=0)
    convolution_flops_per_s: float = Field(gt=0)
    memory_bytes_per_s: float = Field(gt=0)
    memory_bytes: float | None = Field(default=None, gt=0)


class Layout(Part):
    """Which server holds which part of an activation of shape samples × channels.

    Both axes are cut into equal parts; the block of batch part i and channel part j is held by
    ``servers[i * channel_parts + j]``, and by no other.

    Parameters
    ----------
    batch_parts, channel_parts : int
        Parts of the two axes.
    servers : tuple of int
        One for each block, row by row.
    """

    batch_parts: int = Field(ge=1)
    channel_parts: int = Field(default=1, ge=1)
    servers: tuple[int, ...]


class Reduction(Part):
    """All-reduces of ``bytes`` in every group of ``group_sets[groups]`` of the instance, once an iteration.

    An all-gather of S bytes followed, in the backward pass, by a reduce-scatter of S bytes sends over a ring just what
    one all-reduce of S bytes does, and is written as one.

    Parameters
    ----------
    groups : int
        Place in the instance's ``group_sets``.
    bytes : float
        That every member of a group has.
    """

    groups: int = Field(ge=0)
    bytes: float = Field(gt=0)


class Strategy(Part):
    """One way to run a layer.

    Parameters
    ----------
    name : str
        Unique in its layer.
    reads : int or None
        Index in ``layouts``: how it wants its inputs; None where it reads no activation.
    writes : int
        Index in ``layouts``: where its output is. The layer runs on the servers of this layout.
    flops, moved_bytes : float
        Operations, and bytes between memory and processor, on each of these servers in one iteration.
    measured_s : float or None
        Time on each of these servers in one iteration where it was measured; then it counts, not the roofline.
    memory_bytes : float
        Memory that it takes on each of these servers.
    reductions : tuple of Reduction
        Of gradients, and of activations inside the layer.
    traffic : tuple of (int, int, float)
        (source, target, bytes): what it sends besides, once an iteration.
    encoding_s : float
        Time on each of these servers to compress what is reduced and to make it whole again, once an iteration.
    error : float
        What its compression loses, in the unit of the instance's ``error_budget``.
    """

    name: str
    reads: int | None = Field(default=None, ge=0)
    writes: int = Field(ge=0)
    flops: float = Field(default=0.0, ge=0)
    moved_bytes: float = Field(default=0.0, ge=0)
    measured_s: float | None = Field(default=None, ge=0)
    memory_bytes: float = Field(default=0.0, ge=0)
    reductions: tuple[Reduction, ...] = ()
    traffic: tuple[tuple[int, int, float], ...] = ()
    encoding_s: float = Field(default=0.0, ge=0)
    error: float = Field(default=0.0, ge=0)

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "encoding_s", "error")


class Layer(Part):
    """A layer and the strategies that there are for it.

    Parameters
    ----------
    name : str
    output_bytes : float
        Activation of the whole batch; its gradient is as large.
    convolution : bool
        Which rate of the device counts.
    strategies : tuple of Strategy
        At least one.
    """

    name: str
    output_bytes: float = Field(default=0.0, ge=0)
    convolution: bool = False
    strategies: tuple[Strategy, ...]


class CodesignInstance(Fabric):
    r"""One training job whose parallelization strategy, optical links, rings and routes are to be chosen together.

    A strategy for every layer says what each server computes and what must be sent; a topology design says how. An
    iteration takes

    .. math:: T = T_{comp} + z / B \quad\text{or}\quad \max(T_{comp}, z / B)

    with z the bytes on the busiest link and :math:`T_{comp}` the larger of two: the time of the busiest server, and the
    longest path through the layers.

    A layer whose gradients may be compressed has a strategy for every way to split it with every compressor: with fewer
    bytes to reduce, with the time to encode and to decode, and with what is lost. All layers together may lose
    ``error_budget``.

    Parameters
    ----------
    servers, degree, link_bandwidth_bytes_per_s, optics, parallel_links, host_forwarding, overlap
        The fabric, as in :class:`~ddlopt.models.topology.instance.TopologyInstance`.
    device : Device
        The accelerators of each server.
    layouts : tuple of Layout
        That strategies read and write.
    group_sets : tuple of tuple of tuple of int
        Sets of disjoint groups of servers (each increasing, at least two) that reduce together.
    layers : tuple of Layer
        Each with its strategies.
    edges : tuple of (int, int)
        (layer, layer that reads its output), acyclic. Between a layout written and another one read, every sample's
        every channel goes forward from the server that has it to the one that wants it, and its gradient goes back.
    error_budget : float or None
        What the strategies may lose by compression, added up; None for no limit.
    remedies : tuple of str
        What would make a job fit that does not fit into the memory, with the least memory then; for messages.
    """

    kind: ClassVar[str] = "codesign instance"

    family: Literal["codesign"] = "codesign"
    overlap: Literal["none", "full"] = "none"
    device: Device
    layouts: tuple[Layout, ...]
    group_sets: tuple[tuple[tuple[int, ...], ...], ...] = ()
    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...] = ()
    error_budget: float | None = Field(default=None, ge=0)
    remedies: tuple[str, ...] = ()

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "error_budget", "remedies")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        require_memory(f"servers is {self.servers}: traffic between so many servers", 32.0 * self.servers**2)
        if not self.layers:
            raise ValueError("there are no layers; give at least one")
        for place, layout in enumerate(self.layouts):
            blocks = layout.batch_parts * layout.channel_parts
            if len(layout.servers) != blocks:
                raise ValueError(
                    f"layouts[{place}] has {len(layout.servers)} servers, but {layout.batch_parts} × "
                    f"{layout.channel_parts} blocks need {blocks}"
                )
            self._are_servers(f"layouts[{place}].servers", layout.servers)
        for place, groups in enumerate(self.group_sets):
            where = f"group_sets[{place}]"
            self._are_servers(where, [server for group in groups for server in group])
            for number, group in enumerate(groups):
                if len(group) < 2 or list(group) != sorted(group):
                    raise ValueError(
                        f"{where}[{number}] must list at least 2 servers in increasing order, got {list(group)}"
                    )
        names = [layer.name for layer in self.layers]
        for place, layer in enumerate(self.layers):
            if names.index(layer.name) != place:
                raise ValueError(f"layers[{place}] is named '{layer.name}', like layers[{names.index(layer.name)}]")
            self._is_a_layer(layer)
        self._is_acyclic()
        if self.error_budget is not None:
            least = sum(min(strategy.error for strategy in layer.strategies) for layer in self.layers)
            if least > self.most_error:
                raise ValueError(
                    f"error_budget is {self.error_budget:.12g}, but no choice of strategies loses less than {least!r}"
                )
        return self

    def _are_servers(self, where: str, servers: Iterable[int]) -> None:
        """Raise ValueError unless all are servers, each once."""
        seen = set[int]()
        for server in servers:
            if not 0 <= server < self.servers:
                raise ValueError(
                    f"{where} contains server {server}, but there are {self.servers} servers (0..{self.servers - 1})"
                )
            if server in seen:
                raise ValueError(f"{where} contains server {server} twice")
            seen.add(server)

    def _is_a_layer(self, layer: Layer) -> None:
        """Raise ValueError unless the layer's strategies refer to what there is."""
        where = f"layer '{layer.name}'"
        if not layer.strategies:
            raise ValueError(f"{where} has no strategies; give at least one")
        names = [strategy.name for strategy in layer.strategies]
        for place, strategy in enumerate(layer.strategies):
            if names.index(strategy.name) != place:
                raise ValueError(f"{where} has two strategies named '{strategy.name}'")
            here = f"{where}, strategy '{strategy.name}'"
            for field, index in (("reads", strategy.reads), ("writes", strategy.writes)):
                if index is not None and index >= len(self.layouts):
                    raise ValueError(f"{here}: {field} is {index}, but there are {len(self.layouts)} layouts")
            for reduction in strategy.reductions:
                if reduction.groups >= len(self.group_sets):
                    raise ValueError(
                        f"{here}: a reduction names group_sets[{reduction.groups}], but there are "
                        f"{len(self.group_sets)} of them"
                    )
            for source, target, amount in strategy.traffic:
                self._are_servers(f"{here}: traffic", (source, target))
                if amount < 0:
                    raise ValueError(f"{here}: traffic from {source} to {target} is {amount:g}; bytes must be >= 0")

    def _is_acyclic(self) -> None:
        count = len(self.layers)
        for place, (source, target) in enumerate(self.edges):
            for end in (source, target):
                if not 0 <= end < count:
                    raise ValueError(f"edges[{place}] names layer {end}, but there are {count} layers (0..{count - 1})")
            names = f"'{self.layers[source].name}' to '{self.layers[target].name}'"
            if self.edges.index((source, target)) != place:
                raise ValueError(f"edges[{place}] leads from {names} again")
            for strategy in self.layers[target].strategies:
                if strategy.reads is None:
                    raise ValueError(
                        f"edges[{place}] leads from {names}, but its strategy '{strategy.name}' reads no activation; "
                        f"give reads"
                    )
        try:
            _ = self.order
        except CycleError as problem:
            cycle = " -> ".join(f"'{self.layers[layer].name}'" for layer in reversed(problem.args[1]))
            raise ValueError(f"the graph of layers is cyclic: {cycle}") from None

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Layers, each after those whose output it reads."""
        before: dict[int, list[int]] = {layer: [] for layer in range(len(self.layers))}
        for source, target in self.edges:
            before[target].append(source)
        return tuple(TopologicalSorter(before).static_order())

    @property
    def most_memory_bytes(self) -> float:
        """What strategies may take on a server, up to rounding; infinite without a limit."""
        limit = self.device.memory_bytes
        return math.inf if limit is None else let_pass(limit)

    @property
    def most_error(self) -> float:
        """What strategies may lose, up to rounding; infinite without a budget."""
        return math.inf if self.error_budget is None else let_pass(self.error_budget)

    def compute_s(self, layer: int, strategy: int) -> float:
        """Time of one layer on each server that runs it: as measured, or by the roofline; and that of encoding."""
        of_layer = self.layers[layer]
        chosen = of_layer.strategies[strategy]
        if chosen.measured_s is not None:
            return chosen.measured_s + chosen.encoding_s
        rate = self.device.convolution_flops_per_s if of_layer.convolution else self.device.flops_per_s
        return max(chosen.flops / rate, chosen.moved_bytes / self.device.memory_bytes_per_s) + chosen.encoding_s

    def iteration_time_s(self, compute_s: float, max_link_load_bytes: float) -> float:
        """Time of one iteration."""
        communication = max_link_load_bytes / self.link_bandwidth_bytes_per_s
        return max(compute_s, communication) if self.overlap == "full" else compute_s + communication
