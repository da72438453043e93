"""Uniform plans for training large models: degrees, micro-batches, interleaving, sharded state, recomputed blocks."""

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Part, without
from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.sizes import require_memory

Dimension = Literal["tensor", "context", "data", "pipeline"]
DIMENSIONS: tuple[Dimension, ...] = ("tensor", "context", "data", "pipeline")
"""Of a device's place; experts are spread over tensor, context and data."""
FULL = "full"
"""The option of a block that keeps its input alone."""
ORDERS: tuple[tuple[Dimension, ...], ...] = (DIMENSIONS, ("tensor", "context", "pipeline", "data"))
"""Those of Megatron-LM: by default, and with ``--use-tp-pp-dp-mapping``."""


class StepOption(Part):
    """A way to run a block on a device, for a micro-batch; with its activations made again, for instance.

    Parameters
    ----------
    name : str
        The same for all blocks; ``full`` is what a plan's recomputed blocks have.
    forward_s, backward_s : float
        Of computing; what is made again is part of the latter.
    kept_bytes, transient_bytes : float
        Memory: from forward to backward pass, and while the block itself runs.
    tensor_bytes, context_bytes, expert_bytes : float
        Sent by a device inside its group of that dimension in both passes: over a ring that gathers or adds up, and of
        experts what all devices of a group have for others and themselves.
    messages : int
        How many of each; a latency each.
    """

    name: str
    forward_s: float = Field(ge=0)
    backward_s: float = Field(ge=0)
    kept_bytes: float = Field(default=0.0, ge=0)
    transient_bytes: float = Field(default=0.0, ge=0)
    tensor_bytes: float = Field(default=0.0, ge=0)
    context_bytes: float = Field(default=0.0, ge=0)
    expert_bytes: float = Field(default=0.0, ge=0)
    messages: int = Field(default=0, ge=0)


class Way(Part):
    """Options of a block at certain degrees.

    Parameters
    ----------
    tensor, context, expert, micro_batch : int
        Devices that share the block's products, its sequence and its experts, and samples of a micro-batch.
    sequence_parallel : bool
        Whether devices that share products also share the sequence elsewhere.
    parameters, expert_parameters : float
        Of a device: those of which context and data have copies, and those of experts.
    options : tuple of StepOption
    """

    tensor: int = Field(ge=1)
    context: int = Field(default=1, ge=1)
    expert: int = Field(default=1, ge=1)
    micro_batch: int = Field(ge=1)
    sequence_parallel: bool = False
    parameters: float = Field(ge=0)
    expert_parameters: float = Field(default=0.0, ge=0)
    options: tuple[StepOption, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[int, int, int, int, bool]:
        """What tells ways apart."""
        return self.tensor, self.context, self.expert, self.micro_batch, self.sequence_parallel


class StepBlock(Part):
    """Identical blocks, one behind another.

    Parameters
    ----------
    name : str
    count : int
        1 for an embedding or a head.
    experts : bool
        Whether it has experts; ways of blocks without have an expert degree of 1.
    ways : tuple of Way
    """

    name: str
    count: int = Field(default=1, ge=1)
    experts: bool = False
    ways: tuple[Way, ...] = Field(min_length=1)


class Tier(Part):
    """A level of the network.

    Parameters
    ----------
    name : str
    size : int
        Devices of a unit, e.g. of a server.
    bandwidth_bytes_per_s : float
        Of a device to others of its unit, per direction.
    latency_s : float
        Of a message or a collective operation.
    collective : {"ring", "switch"}
        Whether collectives go around rings, or switches add up and copy.
    """

    name: str
    size: int = Field(ge=1)
    bandwidth_bytes_per_s: float = Field(gt=0)
    latency_s: float = Field(default=0.0, ge=0)
    collective: Literal["ring", "switch"] = "ring"


class StepInstance(DeploymentProblem):
    r"""How a large model is trained with the same degrees for all of its blocks, and how long a step takes.

    A plan has degrees t (tensor), c (context), d (data), p (pipeline), with :math:`t c d p \le K`, and e (expert),
    which divides t c d; a micro-batch of b samples, so :math:`n = N / (b d)` micro-batches a step, whole; v chunks of
    blocks a device, with n a multiple of p if v > 1; a level of sharding z; an option for all blocks, or the first
    option for all but r of every chunk, which are made again in full; and an order of dimensions, which tells who is in
    one unit of a tier.

    The L blocks are cut into p v chunks one behind another, of :math:`\lfloor L / (p v) \rfloor` blocks or one more;
    the shorter ones are the last, the first, and others from the back. Stage s has chunks s, s + p, …; the first chunk
    has the embedding besides, the last one the head. With :math:`\tau_s` the time of stage s for a micro-batch,

    .. math::
        T = n \max_s \tau_s + \lambda \Bigl( \sum_s \tau_s - \max_s \tau_s \Bigr)
        + \max_s \bigl( \text{exposed}_s + \text{optimizer}_s \bigr) .

    where :math:`\lambda = \lceil L / (p v) \rceil / \lceil L / p \rceil` is the longest chunk's part of the longest
    stage. :math:`\tau_s` is the time of its blocks' options, of what they send, and of 2 v messages to neighbours if
    p > 1. With :math:`m_j` members of a group of x in a unit of tier j (:math:`m_{-1} = 1`), S bytes that a ring sends
    take :math:`\max_j S / (m_{j-1} B_j)` over tiers that the group spans, experts' bytes
    :math:`\max_j S (x - m_{j-1}) / (x B_j)`, and every message a latency of the outermost. A ring that gathers or
    scatters sends (x - 1) / x of the whole, an all-reduce twice that; where switches add up, it is the whole.

    State of a device is w + g + o bytes a parameter, of which o is divided by the copies (c d; t c d / e for experts)
    from z = 1 on, g from z = 2 on, w at z = 3. With W and G a stage's bytes of weights and gradients: for z = 0 G is
    all-reduced in the end; for z = 1 it is scattered, and W gathered; for z = 2 W is gathered in the end and G
    scattered with every micro-batch; for z = 3 G is scattered and W gathered twice with every micro-batch. Of what is
    sent in the end a share ``overlap`` of a micro-batch's backward computation is hidden, of what is sent with every
    micro-batch as much of all its computation. The optimizer takes ``optimizer_s`` for each parameter that a device
    updates.

    Stage s of p keeps :math:`\min(n, p - s)` micro-batches of its blocks' activations if v = 1, else
    :math:`\min(n v, 2 (p - 1 - s) + (v - 1) p + 1)` times a share :math:`\lambda` of them; the ends keep
    one. Besides it needs the
    most that one of its blocks needs while it runs, and for z = 3 the weights of the two largest.

    Parameters
    ----------
    embedding, head : StepBlock
    blocks : tuple of StepBlock
        One behind another, unless ``places`` says otherwise.
    devices : int
        K.
    memory_bytes : float
        Of a device.
    tiers : tuple of Tier
        The innermost first; the last one holds all devices.
    global_batch : int
        N.
    handed_bytes : float
        What a sample hands from block to block; devices that share its sequence share it.
    weight_bytes, gradient_bytes, optimizer_bytes : float
        w, g and o.
    optimizer_s : float
        Of a parameter.
    overlap : float
        Of the backward pass, for what copies send each other.
    sharding : tuple of int
        Levels that a plan may have.
    interleaving : int
        The most chunks of a device.
    orders : tuple of tuple of str
        Orders that a plan may have.
    places : tuple of int
        For every block, in order, which of ``blocks`` it is.
    tied : bool
        Whether the head has the weights of the embedding, so that one stage for both holds them once.
    slower_inside : bool
        That a tier is slower than the one around it is meant so.

    References
    ----------
    D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021;
    V. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023;
    S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020.
    """

    kind: ClassVar[str] = "step instance"

    problem: Literal["step"] = "step"
    embedding: StepBlock
    blocks: tuple[StepBlock, ...] = Field(min_length=1)
    head: StepBlock
    devices: int = Field(ge=1)
    memory_bytes: float = Field(gt=0)
    tiers: tuple[Tier, ...] = Field(min_length=1)
    global_batch: int = Field(ge=1)
    handed_bytes: float = Field(default=0.0, ge=0)
    weight_bytes: float = Field(default=2.0, ge=0)
    gradient_bytes: float = Field(default=4.0, ge=0)
    optimizer_bytes: float = Field(default=12.0, ge=0)
    optimizer_s: float = Field(default=0.0, ge=0)
    overlap: float = Field(default=1.0, ge=0, le=1)
    sharding: tuple[int, ...] = Field(default=(0, 1, 2, 3), min_length=1)
    interleaving: int = Field(default=8, ge=1)
    orders: tuple[tuple[Dimension, ...], ...] = Field(default=ORDERS, min_length=1)
    places: tuple[int, ...] = ()
    tied: bool = False
    slower_inside: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_memory(f"{self.size} blocks", 1000.0 * self.size)
        self._check_tiers()
        if sorted(set(self.sharding)) != list(self.sharding) or not set(self.sharding) <= {0, 1, 2, 3}:
            raise ValueError(f"sharding is {list(self.sharding)}; list levels 0 to 3, each once, ascending")
        counts = [self.places.count(place) for place in range(len(self.blocks))]
        if self.places and (counts != [block.count for block in self.blocks] or sum(counts) != len(self.places)):
            raise ValueError(f"places has the blocks {counts} times, and their counts are others, or names another one")
        for order in self.orders:
            if sorted(order) != sorted(DIMENSIONS):
                raise ValueError(f"orders has {list(order)}; an order has {', '.join(DIMENSIONS)}, each once")
        for name, end in (("embedding", self.embedding), ("head", self.head)):
            if end.count != 1:
                raise ValueError(f"{name}.count is {end.count}; the first chunk has one embedding, the last one a head")
        parts = (self.embedding, *self.blocks, self.head)
        for block in parts:
            _check_block(block)
            samples = sorted({way.micro_batch for way in block.ways})
            if all(self.global_batch % each for each in samples):
                raise ValueError(
                    f"block '{block.name}' has micro-batches of {', '.join(map(str, samples))} samples, and none of "
                    f"these divides global_batch {self.global_batch}"
                )
        return self

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "slower_inside")

    def _check_tiers(self) -> None:
        for place, (tier, above) in enumerate(zip(self.tiers, self.tiers[1:], strict=False)):
            if above.size <= tier.size or above.size % tier.size:
                raise ValueError(
                    f"tiers[{place + 1}] ('{above.name}') has units of {above.size} devices, no multiple of the "
                    f"{tier.size} of '{tier.name}'"
                )
            slower = tier.size > 1 and tier.bandwidth_bytes_per_s < above.bandwidth_bytes_per_s
            if slower and not self.slower_inside:
                raise ValueError(
                    f"tiers[{place}] ('{tier.name}') is slower than what is around it: a device has "
                    f"{tier.bandwidth_bytes_per_s:g} bytes/s there and {above.bandwidth_bytes_per_s:g} in "
                    f"tiers[{place + 1}] ('{above.name}'); if it is meant so, set slower_inside to true"
                )
        if self.tiers[-1].size < self.devices:
            raise ValueError(
                f"tiers[{len(self.tiers) - 1}] ('{self.tiers[-1].name}') holds {self.tiers[-1].size} of {self.devices} "
                "devices; a tier that connects them all is missing"
            )

    @property
    def size(self) -> int:
        """Number of blocks."""
        return sum(block.count for block in self.blocks)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """For every block, in order, which of ``blocks`` it is."""
        return self.places or tuple(place for place, block in enumerate(self.blocks) for _ in range(block.count))


def _check_block(block: StepBlock) -> None:
    keys = [way.key for way in block.ways]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"block '{block.name}' has two ways for degrees {twice}")
    for way in block.ways:
        if not block.experts and (way.expert > 1 or way.expert_parameters):
            raise ValueError(f"block '{block.name}' has no experts, but a way with expert degree {way.expert}")
        names = [option.name for option in way.options]
        if len(set(names)) < len(names):
            raise ValueError(f"block '{block.name}': options at {way.key} are named {names}; names must differ")


class StepPlan(DeploymentAnswer):
    """A plan with the same degrees for all blocks; symbols as in :class:`StepInstance`.

    Parameters
    ----------
    tensor, context, expert, data, pipeline : int
        t, c, e, d and p.
    interleaving, micro_batch, sharding : int
        v, b and z.
    sequence_parallel : bool
    option : str
        Of the blocks that are not recomputed in full.
    recomputed : int
        Blocks of every chunk that are, besides others of their first option; of a shorter chunk all.
    order : tuple of str
        Dimensions, from those whose members are next to each other.
    """

    kind: ClassVar[str] = "step plan"

    problem: Literal["step"] = "step"
    tensor: int = 1
    context: int = 1
    expert: int = 1
    data: int = 1
    pipeline: int = 1
    interleaving: int = 1
    micro_batch: int = 1
    sharding: int = 0
    sequence_parallel: bool = False
    option: str = "none"
    recomputed: int = 0
    order: tuple[Dimension, ...] = DIMENSIONS

    @property
    def devices(self) -> int:
        """How many it uses."""
        return self.tensor * self.context * self.data * self.pipeline
