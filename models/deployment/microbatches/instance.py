"""Orders of micro-batches: which pass of which micro-batch each device of a pipeline runs next."""

from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.contracts import Part
from ddlopt.models.deployment.family import DeploymentProblem
from ddlopt.models.sizes import require_memory

Objective = Literal["makespan", "span", "barrier"]
"""What is minimised; see :class:`MicroBatchInstance`."""
_PASS_BYTES = 400.0
"""Of a pass in memory, roughly."""


class Chunk(Part):
    """Layers that one device runs, one behind another.

    Parameters
    ----------
    name : str
    device : int
    forward_s, backward_s : float
        F and B of a micro-batch: the forward pass, and the backward pass for the inputs.
    weights_s : float, optional
        W, the backward pass for the weights. None: it is within B.
    held_bytes : float
        Memory of the device that a micro-batch takes from the beginning of F on.
    freed_bytes : float
        What of it is given back at the end of B; the rest is at the end of W. Where W is within B all of it is.
    """

    name: str
    device: int = Field(ge=0)
    forward_s: float = Field(ge=0)
    backward_s: float = Field(ge=0)
    weights_s: float | None = Field(default=None, ge=0)
    held_bytes: float = Field(default=0.0, ge=0)
    freed_bytes: float = Field(default=0.0, ge=0)


class ChunkEdge(Part):
    """A chunk that hands what it made to another; transfers occupy no device.

    Parameters
    ----------
    maker, user : int
        Chunks.
    forward_s, backward_s : float
        Time of the transfer from the maker's F to the user's, and from the user's B to the maker's.
    """

    maker: int
    user: int
    forward_s: float = Field(default=0.0, ge=0)
    backward_s: float = Field(default=0.0, ge=0)


class MicroBatchInstance(DeploymentProblem):
    r"""In which order the devices of a pipeline run the passes of n micro-batches.

    Chunks make one chain, or several that have nothing to do with each other but the devices (two in opposite
    directions make DualPipe's). Every micro-batch has passes F, B and W on every chunk. F of a chunk waits for F of the
    chunk before it, B for B of the chunk behind it (not for W), on the last chunk of a chain for its own F; W waits for
    its own B. A device runs one pass at a time, without pause. F takes memory when it begins, B and W give it back when
    they end; a pass that begins at that very moment may use it. At no time is more taken than the device has.

    What is minimised is one of

    * *makespan*: the time from the first pass of all to the last;
    * *span*: the largest, over devices, of the time from a device's own first pass to its last. Where a step follows
      another one and nobody waits for all others, that is how long it takes;
    * *barrier*: the makespan, and then the longest of the devices' optimizers.

    Parameters
    ----------
    chunks : tuple of Chunk
    edges : tuple of ChunkEdge
        Of a chunk at most one leads away and at most one comes in.
    memory_bytes : tuple of float
        Of each device.
    micro_batches : int
        n, in each chain.
    objective : {"makespan", "span", "barrier"}
    optimizer_s : tuple of float
        Of each device; needed with ``barrier`` only.

    References
    ----------
    P. Qi, X. Wan, G. Huang, M. Lin, "Zero bubble (almost) pipeline parallelism", ICLR 2024, whose passes these are.
    """

    kind: ClassVar[str] = "instance of micro-batches"

    problem: Literal["microbatches"] = "microbatches"
    chunks: tuple[Chunk, ...] = Field(min_length=1)
    edges: tuple[ChunkEdge, ...] = ()
    memory_bytes: tuple[Annotated[float, Field(ge=0)], ...] = Field(min_length=1)
    micro_batches: int = Field(ge=1)
    objective: Objective = "makespan"
    optimizer_s: tuple[Annotated[float, Field(ge=0)], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        devices, n = len(self.memory_bytes), self.micro_batches
        require_memory(f"{n} micro-batches of {len(self.chunks)} chunks", 3 * _PASS_BYTES * n * len(self.chunks))
        if self.optimizer_s and len(self.optimizer_s) != devices:
            raise ValueError(f"optimizer_s has {len(self.optimizer_s)} times, and memory_bytes {devices} devices")
        if self.objective == "barrier" and not self.optimizer_s:
            raise ValueError("objective is 'barrier', which needs optimizer_s, the optimizer's time on each device")
        names: dict[str, int] = {}
        for place, chunk in enumerate(self.chunks):
            where = f"chunks[{place}] ('{chunk.name}')"
            if names.setdefault(chunk.name, place) != place:
                raise ValueError(f"{where} is named like chunks[{names[chunk.name]}]; names must differ")
            if chunk.device >= devices:
                raise ValueError(f"{where} is on device {chunk.device}, but there are {devices} (0..{devices - 1})")
            if chunk.freed_bytes > chunk.held_bytes:
                raise ValueError(
                    f"{where}: freed_bytes is {chunk.freed_bytes:g}, more than held_bytes, {chunk.held_bytes:g}"
                )
        for device in range(devices):
            if all(chunk.device != device for chunk in self.chunks):
                raise ValueError(f"memory_bytes[{device}]: device {device} has no chunk; leave it out")
        self._check_edges()
        return self

    def _check_edges(self) -> None:
        count = len(self.chunks)
        behind: dict[int, int] = {}
        ahead: dict[int, int] = {}
        for place, edge in enumerate(self.edges):
            for chunk in (edge.maker, edge.user):
                if not 0 <= chunk < count:
                    raise ValueError(f"edges[{place}] names chunk {chunk}, but there are {count} (0..{count - 1})")
            for known, key, other, what in (
                (behind, edge.maker, edge.user, "leads away from"),
                (ahead, edge.user, edge.maker, "comes into"),
            ):
                if key in known:
                    raise ValueError(f"edges[{place}] {what} chunk {key}, as another one does; chunks make chains")
                known[key] = other
        on_chains = {chunk for first in range(count) if first not in ahead for chunk in _walk(first, behind)}
        for first in range(count):
            if first not in on_chains:
                loop = " -> ".join(self.chunks[chunk].name for chunk in [*_walk(first, behind), first])
                raise ValueError(f"the chunks form a cycle: {loop}; a micro-batch would never begin")

    @property
    def size(self) -> int:
        """Number of passes."""
        return self.micro_batches * sum(2 + (chunk.weights_s is not None) for chunk in self.chunks)

    @property
    def devices(self) -> int:
        """How many."""
        return len(self.memory_bytes)

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """Chunks of each chain, in the order of forward passes."""
        behind = {edge.maker: edge.user for edge in self.edges}
        users = set(behind.values())
        return tuple(tuple(_walk(chunk, behind)) for chunk in range(len(self.chunks)) if chunk not in users)

    @cached_property
    def transfers(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Seconds forward and backward, by maker and user."""
        return {(edge.maker, edge.user): (edge.forward_s, edge.backward_s) for edge in self.edges}

    @cached_property
    def in_line(self) -> bool:
        """One chain without transfers whose neighbours are on one device or on two that are numbered in turn."""
        if len(self.chains) > 1 or any(edge.forward_s or edge.backward_s for edge in self.edges):
            return False
        places = [self.chunks[chunk].device for chunk in self.chains[0]]
        return all(abs(one - other) <= 1 for one, other in pairwise(places))


def _walk(first: int, behind: dict[int, int]) -> list[int]:
    """A chunk and all behind it, up to the end or the first one again."""
    found = [first]
    while found[-1] in behind and behind[found[-1]] != first:
        found.append(behind[found[-1]])
    return found
