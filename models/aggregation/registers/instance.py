"""In which register array of a switch each hot parameter is, so that those of a packet do not collide."""

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.sizes import require_memory

Goal = Literal["packets", "collisions"]
Batches = tuple[tuple[int, ...], ...]


class RegisterInstance(AggregationProblem):
    r"""Which register array each parameter is in.

    A packet that passes a switch reads and writes each register array once, at one index. So of a batch, the set S of
    parameters that a worker updates together, a packet carries at most one parameter of each array, and at most K in
    all. Let :math:`B_r` be the parameters in array r. The goals are

    *packets*: a worker that packs as tightly as this allows sends

    .. math:: \max\Bigl\{\lceil |S| / K \rceil,\ \max_r |S \cap B_r|\Bigr\}

    packets for batch S. Their number, weighted and summed over batches, is minimised;

    *collisions*: the pairs of parameters that are in one array and in one batch, weighted and summed over batches, are
    minimised. That is a minimum partition of a weighted graph into R parts.

    Parameters
    ----------
    parameters : int
        How many there are; they are numbered from 0, as a rule from the hottest on.
    labels : tuple of str, optional
        What each is called; empty: they have no names.
    arrays : int
        R.
    capacity : int or tuple of int
        Parameters that an array holds, for all arrays or for each.
    entries : int
        K, values in a packet: at most R.
    batches : tuple of tuples of int
        The parameters of each batch that counts for the objective, each once.
    weights : tuple of float, optional
        Of the batches, positive; empty: all are 1.
    held_out : tuple of tuples of int, optional
        Batches that count for no objective: the check tells how many packets they take.
    goal : {"packets", "collisions"}
        Packets, or pairs of parameters that share an array in a batch.

    References
    ----------
    "Libra: In-network gradient aggregation for speeding up distributed sparse deep training", arXiv 2205.05243v1, 2022,
    aggregates hot parameters on a switch and orchestrates them there. That a packet reaches each register array once,
    and carries 32 or 64 values, are limits of the released P4 programs of ATP and SwitchML. The count of packets is
    ours.
    """

    kind: ClassVar[str] = "register instance"

    problem: Literal["registers"] = "registers"
    parameters: int = Field(ge=1)
    labels: tuple[str, ...] = ()
    arrays: int = Field(ge=1)
    capacity: int | tuple[int, ...]
    entries: int = Field(ge=1)
    batches: Batches = Field(min_length=1)
    weights: tuple[float, ...] = ()
    held_out: Batches = ()
    goal: Goal = "packets"

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_switch()
        if self.labels and len(self.labels) != self.parameters:
            raise ValueError(
                f"labels has {len(self.labels)} names for {self.parameters} parameters; name each, or none"
            )
        for field in ("batches", "held_out"):
            for place, batch in enumerate(getattr(self, field)):
                self._check_batch(f"{field}[{place}]", batch)
        if self.weights and len(self.weights) != len(self.batches):
            raise ValueError(
                f"weights has {len(self.weights)} numbers for {len(self.batches)} batches; give one for each"
            )
        for place, weight in enumerate(self.weights):
            if not weight > 0:
                raise ValueError(f"weights[{place}] is {weight:g}; it must be positive, or leave the batch out")
        return self

    @property
    def objective_unit(self) -> str:
        """None: packets or pairs."""
        return ""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.parameters

    @cached_property
    def capacities(self) -> tuple[int, ...]:
        """Of each array."""
        return (self.capacity,) * self.arrays if isinstance(self.capacity, int) else self.capacity

    @cached_property
    def batch_weights(self) -> tuple[float, ...]:
        """Of each batch."""
        return self.weights or (1.0,) * len(self.batches)

    def _check_switch(self) -> None:
        require_memory(f"parameters is {self.parameters}: what any two of them share", 8.0 * self.parameters**2)
        require_memory(f"arrays is {self.arrays}: so many register arrays", 100.0 * self.arrays)
        if self.entries > self.arrays:
            raise ValueError(
                f"entries is {self.entries}: a packet larger than the arrays, of which there are {self.arrays}; a "
                f"packet reaches each array once, so entries must be at most {self.arrays}"
            )
        if isinstance(self.capacity, tuple) and len(self.capacity) != self.arrays:
            raise ValueError(f"capacity has {len(self.capacity)} numbers for {self.arrays} arrays; give one for each")
        for place, capacity in enumerate(self.capacities):
            if capacity < 0:
                where = "capacity" if isinstance(self.capacity, int) else f"capacity[{place}]"
                raise ValueError(f"{where} is {capacity}; it must be at least 0")
        if sum(self.capacities) < self.parameters:
            raise ValueError(
                f"the arrays hold {sum(self.capacities)} parameters together, but there are {self.parameters}; raise "
                "capacity or leave the coldest parameters out"
            )

    def _check_batch(self, where: str, batch: tuple[int, ...]) -> None:
        for parameter in batch:
            if not 0 <= parameter < self.parameters:
                last = self.parameters - 1
                raise ValueError(
                    f"{where} names parameter {parameter}, but there are {self.parameters} parameters (0..{last})"
                )
        if len(set(batch)) < len(batch):
            twice = next(parameter for parameter in batch if batch.count(parameter) > 1)
            raise ValueError(f"{where} names parameter {twice} twice; a batch is a set")


class Placement(AggregationAnswer):
    """The register array of each parameter.

    Parameters
    ----------
    arrays : tuple of int
        One for each parameter.
    """

    kind: ClassVar[str] = "register placement"

    problem: Literal["registers"] = "registers"
    arrays: tuple[int, ...]
