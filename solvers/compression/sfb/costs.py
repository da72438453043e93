"""What selections of sufficient factors cost, under any costs."""

from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import SfbInstance
from ddlopt.models.compression.sfb.cut_network import Cut, CutNetwork

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Costs(NamedTuple):
    """What a selection of n operators pays for.

    Parameters
    ----------
    extra : (n,) float array
        For duplicating an operator.
    sync : (n,) float array
        For not duplicating it.
    broadcast : (number of tensors,) float array
        For a broadcast.
    """

    extra: Floats
    sync: Floats
    broadcast: Floats

    def plus(self, other: "Costs", times: float = 1.0) -> "Costs":
        """The sum of these costs and ``times`` the others."""
        return Costs(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))

    def only(self, *names: str) -> "Costs":
        """These of the costs; the others are 0."""
        return Costs(*(np.where(name in names, each, 0.0) for name, each in zip(self._fields, self, strict=True)))

    def endless(self) -> "Costs":
        """Infinite where these are not 0."""
        return Costs(*(np.where(each > 0, np.inf, 0.0) for each in self))


def costs_of(instance: SfbInstance) -> Costs:
    """The instance's own costs; the penalty is part of ``extra``."""
    return Costs(instance.extra_s + instance.duplication_penalty_s, instance.sync_s, instance.broadcast_s)


@dataclass(frozen=True, eq=False)
class CostGraph:
    """The graph of an instance, under any costs.

    Parameters
    ----------
    instance : SfbInstance
        Its graph, ``broadcast`` and ``eligible`` count here; its costs and budgets do not.
    """

    instance: SfbInstance

    @cached_property
    def network(self) -> CutNetwork:
        """For minimum cuts."""
        return CutNetwork(self.instance)

    @cached_property
    def reads(self) -> list[list[int]]:
        """For each operator the tensors that it reads."""
        found: list[list[int]] = [[] for _ in self.instance.operators]
        for place, tensor in enumerate(self.instance.tensors):
            for consumer in tensor.consumers:
                found[consumer].append(place)
        return found

    @cached_property
    def writes(self) -> list[list[int]]:
        """For each operator the tensors that it hands to others."""
        found: list[list[int]] = [[] for _ in self.instance.operators]
        for place, tensor in enumerate(self.instance.tensors):
            found[tensor.producer].append(place)
        return found

    def broadcasts(self, duplicated: Bools) -> Floats:
        """(number of tensors,) how often each is broadcast."""
        tensor, consumer = self.instance.edges
        wanting = np.bincount(tensor, duplicated[consumer], len(self.instance.producers))
        if self.instance.broadcast == "per_tensor":
            wanting = np.minimum(wanting, 1.0)
        return np.where(duplicated[self.instance.producers], 0.0, wanting)

    def cost(self, costs: Costs, duplicated: Bools) -> float:
        """What a selection costs."""
        paid = (costs.extra[duplicated], costs.sync[~duplicated], costs.broadcast * self.broadcasts(duplicated))
        return fsum(np.concatenate(paid))

    def change(self, costs: Costs, before: Bools, after: Bools) -> float:
        """What the second selection costs more than the first: only what differs is added up, and rounded once."""
        more, fewer = after & ~before, before & ~after
        broadcast = self.broadcasts(after) - self.broadcasts(before)
        parts = (costs.extra[more], costs.sync[fewer], -costs.extra[fewer], -costs.sync[more])
        return fsum(np.concatenate((*parts, costs.broadcast * broadcast)))

    def alone(self, costs: Costs) -> Floats:
        """(n,) what duplicating each operator and nothing else costs; it never costs more."""
        tensor, consumer = self.instance.edges
        return costs.extra + np.bincount(consumer, costs.broadcast[tensor], len(costs.extra))

    def cheapest(self, costs: Costs) -> Cut:
        """The selection of least cost; of several, the one with the fewest duplicated operators."""
        return self.network.cut(*costs)
