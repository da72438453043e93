"""All-gather, reduce-scatter and broadcast at the bound of the worst cut: trees packed into the network."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.cuts import (
    Capacities,
    broadcast_cut,
    capacities,
    least_out,
    whole,
    worst_cut,
)
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Tree
from ddlopt.models.topology.collective.kernels import Ints
from ddlopt.models.topology.collective.packing import gathering, joined, packed_trees
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.collective.blink import blink_trees

_LARGEST_NUMBER = 2**40
"""Of whole capacities: sums of all stay within 64 bits."""
_ROUNDED = Fraction(1, 2**20)
"""Part of the least bandwidth by which bandwidths without a common unit are rounded down."""


@dataclass(frozen=True)
class Forest(Heuristic, uses=()):
    """Trees that attain the worst cut's bound, as fractions.

    1. The rate x of each root is 1 over the ratio of the worst cut (of a broadcast, the capacity of the narrowest).
    2. Capacities and x are made whole numbers in the same proportions: the number of trees of each root.
    3. Switches are split off (:mod:`~ddlopt.models.topology.collective.splitting`).
    4. Trees are grown link by link, all copies of one at a time. A link is added to as many copies as leaves it
       possible to complete all others, which is a maximum flow (Edmonds' theorem in the form of Bérczi and Frank).

    Reduce-scatter is an all-gather backwards: the same on links turned round. All-reduce is the one after the other,
    over the same trees where the network is the same in both directions.

    The time grows with :math:`N^2` maximum flows on a dense matrix: about :math:`N^4`.

    References
    ----------
    J. Edmonds, "Edge-disjoint branchings", 1973. K. Bérczi, A. Frank, "Packing arborescences", 2009. L. Zhao et al.,
    "ForestColl", arXiv 2402.06787, for collectives and switches.
    """

    name: ClassVar[str] = "forest"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.topology.collective.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """All-to-all has no trees."""
        if instance.collective == "all-to-all":
            return "all-to-all is sent along paths; use all-to-all"
        return None

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """Trees of all roots."""
        trees = planned(instance, lambda: clock.expired)
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees)), {}


@dataclass(frozen=True)
class OneRoot(Heuristic, uses=()):
    """Trees out of one root, as many as fit, for a broadcast; for an all-reduce the same trees there and back.

    For an all-reduce the root is that from which most can be sent.

    Parameters
    ----------
    weights : {"published", "optimal"}
        ``published``: trees by multiplicative weights, and few of these by an integer program
        (:mod:`~ddlopt.solvers.topology.collective.blink`). ``optimal``: as much as fits (Edmonds), packed as
        :class:`Forest` does.

    References
    ----------
    G. Wang, S. Venkataraman, A. Phanishayee, J. Thelin, N. Devanur, I. Stoica, "Blink: Fast and generic collectives for
    distributed ML", MLSys 2020.
    """

    weights: Literal["published", "optimal"] = "published"

    name: ClassVar[str] = "blink"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.topology.collective.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Collectives whose bytes have many roots, and sums over links without a way back."""
        if instance.collective not in ("broadcast", "all-reduce"):
            return f"its trees have one root, and this is an {instance.collective}"
        if instance.collective == "all-reduce" and any(
            instance.bandwidth.get((j, i)) != each for (i, j), each in instance.bandwidth.items()
        ):
            return "sums come back over the same links, and some have another bandwidth there, or none"
        return None

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """The trees of the root from which most can be sent."""
        packed = blink_trees if self.weights == "published" else planned
        if instance.collective == "broadcast":
            trees = packed(instance, lambda: clock.expired)
        else:
            size = instance.collective_bytes
            casts = [
                CollectiveInstance(
                    name=instance.name, accelerators=instance.accelerators, switches=instance.switches,
                    links=instance.links, collective="broadcast", collective_bytes=size, root=root,
                )
                for root in range(instance.accelerators)
            ]  # fmt: skip
            best = max(casts, key=lambda each: (broadcast_cut(each).value, -(each.root or 0)))
            trees = [
                Tree(share=tree.share, root=tree.root, gather=tuple(p[::-1] for p in tree.spread), spread=tree.spread)
                for tree in packed(best, lambda: clock.expired)
            ]
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees)), {}


def planned(instance: CollectiveInstance, expired: Callable[[], bool]) -> list[Tree]:
    """The trees; raises NoSolutionError where numbers are too large, switches are unbalanced or the time is up."""
    each = [Fraction(1, instance.accelerators)] * instance.accelerators
    if instance.collective == "broadcast":
        each = [Fraction(node == instance.root) for node in range(instance.accelerators)]
    down, up = list[Tree](), list[Tree]()
    if instance.collective != "reduce-scatter":
        down = _spread(instance, False, each, expired)
    if instance.collective in ("reduce-scatter", "all-reduce"):
        up = [gathering(tree) for tree in _spread(instance, True, each, expired)]
    return joined(up, down) if up and down else up or down


def _spread(
    instance: CollectiveInstance, backwards: bool, parts: list[Fraction], expired: Callable[[], bool]
) -> list[Tree]:
    """Trees out of all roots at the bound of the worst cut, of which each root has a part."""
    network = _in_common_units(capacities(instance, backwards))
    if instance.collective == "broadcast":
        per_part = least_out(instance.nodes, instance.accelerators, network, instance.root or 0).value
    else:
        per_part = 1 / worst_cut(instance.nodes, instance.accelerators, network).value
    (*numbers, count), _ = whole([*network.values(), per_part])
    if max(*numbers, count) > _LARGEST_NUMBER:
        raise NoSolutionError("bandwidths are too far apart for whole numbers of trees")
    matrix: Ints = np.zeros((instance.nodes, instance.nodes), dtype=np.int64)
    for (i, j), number in zip(network, numbers, strict=True):
        matrix[i, j] = number
    counts = np.array([count if each else 0 for each in parts], dtype=np.int64)
    return packed_trees(matrix, counts, expired)


def _in_common_units(network: Capacities) -> Capacities:
    """The network, or, where bandwidths have no common unit, one with a little less in which they have."""
    numbers, _ = whole(network.values())
    if max(numbers) <= _LARGEST_NUMBER:
        return network
    unit = min(network.values()) * _ROUNDED
    return {link: int(each / unit) * unit for link, each in network.items()}
