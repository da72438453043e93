"""A job as every server sees it: groups of translations that leave all-reduce groups and traffic as they are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sympy import divisors

from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.topology import TopologyInstance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SAME = 1e-9
"""Relative difference of bytes that counts as rounding."""
_LITTLE = 0.1
"""Part of all bytes up to which traffic may differ from server to server: its mean is close enough to choose links."""


class Family(NamedTuple):
    """All-reduce groups that are the cosets of one subgroup and reduce the same bytes.

    Parameters
    ----------
    subgroup : (k,) array
        Increasing; the identity is the first.
    hop_bytes : float
        On each hop of a ring that carries the whole gradient.
    numbers : tuple of int
        Places of the groups in the instance.
    """

    subgroup: Ints
    hop_bytes: float
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Sight:
    """An instance as seen from server 0.

    Parameters
    ----------
    instance : TopologyInstance
    group : AbelianGroup
        Server x is its element x.
    families : tuple of Family
    offset_bytes : (n,) array
        Traffic from every server x to x + v, in the mean.
    """

    instance: TopologyInstance
    group: AbelianGroup
    families: tuple[Family, ...]
    offset_bytes: Floats


def sights(instance: TopologyInstance) -> Iterator[Sight]:
    """The instance under every direct product of cycles, in mixed radix, that leaves it as it is; few factors first."""
    sent, received = instance.traffic_bytes.sum(axis=1), instance.traffic_bytes.sum(axis=0)
    uneven = any((np.abs(each - each[0]) > _SAME * each[0]).any() for each in (sent, received))
    if uneven and not _is_little(instance):
        return
    for group in products_of_cycles(instance.servers):
        found = seen_under(instance, group)
        if found is not None:
            yield found


def products_of_cycles(n: int) -> list[AbelianGroup]:
    """Direct products of cycles of n elements, factors in every order; few factors first."""
    return [AbelianGroup(orders) for orders in sorted(_factorisations(n), key=lambda orders: (len(orders), orders))]


def subgroup_of(group: AbelianGroup, groups: Iterable[Sequence[int]]) -> Ints | None:
    """The subgroup whose cosets the groups of servers are, increasing; None if there is none."""
    found = {np.sort(group.add(members, group.negate(members[0]))).tobytes() for members in map(np.array, groups)}
    subgroup = np.frombuffer(found.pop(), dtype=np.int64).copy()
    closed = not found and np.isin(group.translations[np.ix_(subgroup, subgroup)], subgroup).all()
    return subgroup if closed else None


def _is_little(instance: TopologyInstance) -> bool:
    return float(instance.traffic_bytes.sum()) <= _LITTLE * float(instance.node_bytes[0].sum())


def _factorisations(n: int) -> Iterator[tuple[int, ...]]:
    """Ordered factorisations of n into factors of at least 2."""
    if n == 1:
        yield ()
    for first in divisors(n)[1:]:
        for rest in _factorisations(n // first):
            yield (first, *rest)


def seen_under(instance: TopologyInstance, group: AbelianGroup) -> Sight | None:
    """The instance under a group; None if it does not leave it as it is, or nearly."""
    n = instance.servers
    aligned = instance.traffic_bytes[np.arange(n)[:, None], group.translations.T]
    if not _is_little(instance) and (np.abs(aligned - aligned[0]) > _SAME * np.abs(aligned[0])).any():
        return None
    families = _families(instance, group)
    return None if families is None else Sight(instance, group, families, aligned.mean(axis=0))


def _families(instance: TopologyInstance, group: AbelianGroup) -> tuple[Family, ...] | None:
    found: dict[tuple[bytes, float], tuple[Ints, list[int]]] = {}
    for number, each in enumerate(instance.allreduce_groups):
        members = np.array(each.members, dtype=np.int64)
        around = np.sort(group.add(members, group.negate(members[0])))
        _, numbers = found.setdefault((around.tobytes(), float(f"{each.hop_bytes:.9g}")), (around, []))
        numbers.append(number)
    families = []
    for subgroup, numbers in found.values():
        closed = np.isin(group.translations[np.ix_(subgroup, subgroup)], subgroup).all()
        if not closed or len(numbers) * len(subgroup) % instance.servers:
            return None
        covered = np.bincount(np.concatenate([instance.allreduce_groups[i].members for i in numbers]))
        if len(covered) < instance.servers or covered.min() != covered.max():
            return None
        bytes_of = float(np.mean([instance.allreduce_groups[i].hop_bytes for i in numbers]))
        families.append(Family(subgroup, bytes_of, tuple(numbers)))
    return tuple(families)
