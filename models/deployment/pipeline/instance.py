"""Plans for training large models: stages of a pipeline with data- and tensor-parallel degrees and options a layer."""

from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.contracts import Part
from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.sizes import require_memory


class LayerOption(Part):
    """A way to run a layer, e.g. with its activations made again in the backward pass.

    Parameters
    ----------
    name : str
    time_s : float
        Of a sample, forward and backward.
    weight_bytes : float
        Of a device, which replicas all-reduce.
    kept_bytes, fixed_bytes : float
        Memory of a device: for each sample in flight, and besides.
    gathered, scattered : tuple of (int, float)
        Bytes of a sample that the devices of a stage send each other besides those of the edge, if the layer named is
        in another stage: of layers that this one reads, and of those that read it.
    """

    name: str
    time_s: float = Field(ge=0)
    weight_bytes: float = Field(default=0.0, ge=0)
    kept_bytes: float = Field(default=0.0, ge=0)
    fixed_bytes: float = Field(default=0.0, ge=0)
    gathered: tuple[tuple[int, float], ...] = ()
    scattered: tuple[tuple[int, float], ...] = ()


class Menu(Part):
    """The options of a layer, given how many devices share it.

    Parameters
    ----------
    tensor : int
        The tensor-parallel degree.
    options : tuple of LayerOption
    """

    tensor: int = Field(ge=1)
    options: tuple[LayerOption, ...] = Field(min_length=1)


class PipelineLayer(Part):
    """A layer of the network.

    Parameters
    ----------
    name : str
    menus : tuple of Menu
        By tensor-parallel degree, ascending.
    """

    name: str
    menus: tuple[Menu, ...] = Field(min_length=1)

    def menu(self, tensor: int) -> tuple[LayerOption, ...]:
        """The options at a tensor-parallel degree; none where the layer cannot be shared like that."""
        return next((menu.options for menu in self.menus if menu.tensor == tensor), ())


class PipelineEdge(Part):
    """A tensor that a layer hands to another.

    Parameters
    ----------
    maker, user : int
        Layers.
    size_bytes : float
        Of a sample.
    """

    maker: int
    user: int
    size_bytes: float = Field(ge=0)


class PipelineInstance(DeploymentProblem):
    r"""How a network is cut into stages, on how many devices each stage runs, and how each layer does.

    A plan is a sequence of stages: sets of layers, each layer in one, no edge from a later stage to an earlier one. A
    stage has d replicas of t devices each, and an option of degree t for each of its layers; d divides the N samples
    (micro-batches) of a step. With S its layers, B the bandwidth of a device, and of the options chosen times p,
    weights w, memory a for each sample in flight and b besides, a sample takes

    .. math::
        \frac{1}{d} \Bigl( \sum_{v \in S} p_v + \frac{2}{B} \sum_{v \in S} \bigl( \sum_{u \notin S,\ u \to v}
        (c_{uv} + f_{uv}) + \sum_{w \notin S,\ v \to w} (c_{vw} + g_{vw}) \bigr)
        + \frac{4 (d - 1)}{N B} \sum_{v \in S} w_v \Bigr)

    with c the bytes of edges, f and g those gathered and scattered. Under 1F1B a replica has
    :math:`y = \lceil D / d \rceil` samples in flight, D the replicas of this stage and of all after it, so
    :math:`\sum_v (a_v y + b_v)` bytes must fit. All stages together have at most k devices and N replicas. The
    slowest stage's time is minimised.

    Parameters
    ----------
    layers : tuple of PipelineLayer
    edges : tuple of PipelineEdge
        Acyclic, at most one between two layers.
    devices : int
        k.
    memory_bytes : float
        Of a device.
    bandwidth_bytes_per_s : float
        B.
    micro_batches : int
        N.

    References
    ----------
    J. Tarnawski, D. Narayanan, A. Phanishayee, "Piper: Multidimensional planner for DNN parallelization", NeurIPS 2021,
    and the released code (msr-fiddle/piper), whose rules these are.
    """

    kind: ClassVar[str] = "pipeline instance"

    problem: Literal["pipeline"] = "pipeline"
    layers: tuple[PipelineLayer, ...] = Field(min_length=1)
    edges: tuple[PipelineEdge, ...] = ()
    devices: int = Field(ge=1)
    memory_bytes: float = Field(gt=0)
    bandwidth_bytes_per_s: float = Field(gt=0)
    micro_batches: int = Field(ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_memory(f"{self.devices} devices for {len(self.layers)} layers", 64.0 * self.devices * len(self.layers))
        names = [layer.name for layer in self.layers]
        for place, layer in enumerate(self.layers):
            if names.index(layer.name) != place:
                raise ValueError(f"layers[{place}] is named '{layer.name}', like layers[{names.index(layer.name)}]")
        self._check_edges()
        for place, layer in enumerate(self.layers):
            self._check_menus(place, layer)
        return self

    @property
    def size(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @cached_property
    def replicas(self) -> tuple[int, ...]:
        """Data-parallel degrees that a stage may have."""
        most = min(self.devices, self.micro_batches)
        return tuple(d for d in range(1, most + 1) if self.micro_batches % d == 0)

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        """Tensor-parallel degrees of any layer that the devices suffice for, ascending."""
        found = {menu.tensor for layer in self.layers for menu in layer.menus}
        return tuple(sorted(tensor for tensor in found if tensor <= self.devices))

    def _check_menus(self, place: int, layer: PipelineLayer) -> None:
        where = f"layers[{place}] ('{layer.name}')"
        degrees = [menu.tensor for menu in layer.menus]
        if degrees != sorted(set(degrees)):
            raise ValueError(f"{where}: degrees of its menus are {degrees}; list each once, ascending")
        for menu in layer.menus:
            names = [option.name for option in menu.options]
            if len(set(names)) < len(names):
                raise ValueError(f"{where}: options of degree {menu.tensor} are named {names}; names must differ")
            for option in menu.options:
                for kind, pairs in (("gathered", option.gathered), ("scattered", option.scattered)):
                    self._check_pairs(f"{where}: {kind} of '{option.name}'", place, kind, pairs)

    def _check_pairs(self, where: str, place: int, kind: str, pairs: tuple[tuple[int, float], ...]) -> None:
        edges = {(edge.maker, edge.user) for edge in self.edges}
        seen = set()
        for other, size in pairs:
            edge = (other, place) if kind == "gathered" else (place, other)
            if edge not in edges:
                raise ValueError(f"{where} names layer {other}, with which it has no such edge")
            if other in seen:
                raise ValueError(f"{where} names layer {other} twice")
            if size < 0:
                raise ValueError(f"{where} has {size:g} bytes for layer {other}; bytes are at least 0")
            seen.add(other)

    def _check_edges(self) -> None:
        before: dict[int, set[int]] = {}
        count = len(self.layers)
        for place, edge in enumerate(self.edges):
            for layer in (edge.maker, edge.user):
                if not 0 <= layer < count:
                    raise ValueError(f"edges[{place}] names layer {layer}, but there are {count} (0..{count - 1})")
            if edge.maker in before.setdefault(edge.user, set()):
                raise ValueError(f"edges[{place}] leads from layer {edge.maker} to {edge.user}, as another one does")
            before[edge.user].add(edge.maker)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as problem:
            cycle = " -> ".join(self.layers[layer].name for layer in problem.args[1])
            raise ValueError(f"the layers form a cycle: {cycle}; a network must be acyclic") from None


class PlanStage(Part):
    """A stage of a plan.

    Parameters
    ----------
    layers : tuple of int
    replicas, tensor : int
        Its data- and its tensor-parallel degree.
    options : tuple of str
        The option of each layer, in the same order.
    """

    layers: tuple[int, ...]
    replicas: int
    tensor: int
    options: tuple[str, ...]


class PipelinePlan(DeploymentAnswer):
    """The stages, in the order in which samples go through them.

    Parameters
    ----------
    stages : tuple of PlanStage
    """

    kind: ClassVar[str] = "pipeline plan"

    problem: Literal["pipeline"] = "pipeline"
    stages: tuple[PlanStage, ...]
