"""Least bytes times hops of a traffic over any links of a degree: what hops bring where within a number of them.

Bytes are floats, or whole multiples of a unit (:mod:`ddlopt.certificates.topology.exact_bounds`): whole numbers stand
in arrays of Python's own, so that no step may bring a float in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.models.topology.instance import TopologyInstance

Array = npt.NDArray[Any]
"""Of floats, or of Python's integers."""


@dataclass(frozen=True)
class Effort:
    """How far prices are looked for, and why so far."""

    rounds: int = 4
    """Descent steps on the prices of :func:`_bytes_within`: each keeps the bound valid, more of them hardly move it."""
    priced_levels: int = 3
    """Hops whose prices are looked for: most bytes arrive near the first levels."""
    priced_servers: int = 512
    """Most servers that are priced: it sorts n figures for each of n servers in every round."""
    branching: int = 2
    """Ports from which servers can forward."""
    servers_with_sums: int = 3
    """Least servers whose traffic may be sums: of two there is one sum, whose parts cannot be told."""


_EFFORT = Effort()


def level_sizes(others: int, degree: int, duplex: bool) -> Iterator[int]:
    """Most servers at distance 1, 2, … from a server, until there are ``others`` in all or no more can be reached."""
    left, size = others, degree
    while left and size:
        size = min(size, left)
        yield size
        left -= size
        size *= degree - 1 if duplex else degree


def pairs_within(instance: TopologyInstance) -> list[int]:
    r"""Most ordered pairs within 1, 2, … hops, where they are fewer than what every server can reach alone.

    A duplex plane leaves one of an odd number n of servers out, so degrees add up to d (n - 1). As many ordered pairs
    are joined, and at most :math:`\sum_v \deg_v (\deg_v - 1)` are two hops apart: a convex sum, which is largest where
    one server lacks as many links as it can, one if it has bytes to send or to receive, and another one the rest. At
    h hops there are at most d (n - 1) (d - 1)^(h - 1), a way for each first link. All pairs are left out of the list.
    """
    n, d = instance.servers, instance.degree
    if instance.optics == "one_way" or n % 2 == 0 or d < _EFFORT.branching or not instance.host_forwarding:
        return []
    joined, needed = d * (n - 1), bool((instance.node_bytes.max(axis=0) > 0).all())
    two_apart = ((n - 2) * d + d - 2) * (d - 1) if needed else (n - 1) * d * (d - 1)
    found, last, apart = [joined], joined + two_apart, joined * (d - 1) ** 2
    while last < n * (n - 1):
        found.append(last)
        last, apart = last + apart, apart * (d - 1)
    return found


def hop_bytes_out(rows: Array, degree: int, duplex: bool) -> float:
    """Least bytes times hops of what some servers send, (k, n): the largest pieces of each to the nearest others."""
    levels = list(level_sizes(rows.shape[1] - 1, degree, duplex))
    hops = np.repeat(np.arange(1, len(levels) + 1), levels)
    return float((-np.sort(-rows, axis=1)[:, : len(hops)] @ hops).sum())


def least_hop_bytes(traffic: Array, degree: int, duplex: bool) -> float:
    """Least sum of bytes times hops of an (n, n) traffic, as under ``moore`` in :func:`congestion_bounds`.

    It holds for all links of that degree, and so does, for a sum of traffics, the sum of theirs: no links are better
    for all of them than the best for each.
    """
    levels = list(level_sizes(len(traffic) - 1, degree, duplex))
    least = float(max(sum(bytes_under_way(view, levels)) for view in views_of(traffic, duplex)))
    to_many = (traffic > 0).sum(axis=1, keepdims=True) > degree
    if len(traffic) <= _EFFORT.priced_servers or to_many.all() or not to_many.any():
        return least
    # There are no prices on rows and columns at once: what few send to many is taken apart from the rest.
    parts = np.where(to_many, traffic, 0.0), np.where(to_many, 0.0, traffic).T
    return max(least, float(sum(sum(bytes_under_way(part, levels)) for part in parts)))


def views_of(pairs: Array, duplex: bool) -> list[Array]:
    """Traffic as its senders and as its receivers see it, and for duplex optics, where hops are symmetric, the mean."""
    if np.array_equal(pairs, pairs.T):
        return [pairs]
    return [pairs, pairs.T, *([_parts(pairs + pairs.T, 2)] if duplex else [])]


def _parts(values: Any, number: int) -> Any:
    """Values over a number, rounded down where they are whole numbers."""
    return values // number if isinstance(values, int) or values.dtype == object else values / number


def bytes_under_way(traffic: Array, levels: list[int], within: Sequence[int] = ()) -> list[Any]:
    """Least bytes not yet delivered after 0, 1, 2, … hops, with :func:`pairs_within` of all servers together."""
    total = traffic.sum()
    if total == 0:
        return [total]
    most_receivers = int((traffic > 0).sum(axis=1).max())
    descending = -np.sort(-traffic, axis=1)
    delivered = np.cumsum(descending.sum(axis=0))
    reached = list(accumulate(levels))
    reached += [reached[-1]] * (len(within) - len(reached))
    stages = [total]
    for level, reach in enumerate(reached, start=1):
        all_reached = reach >= min(most_receivers, len(traffic) - 1)
        if all_reached and level > len(within):
            break
        near = delivered[reach - 1]
        if level <= _EFFORT.priced_levels and len(traffic) <= _EFFORT.priced_servers and not all_reached:
            near = min(near, _bytes_within(traffic, reach))
        if level <= len(within):
            near = min(near, -np.sort(-descending[:, :reach], axis=None)[: within[level - 1]].sum())
        stages.append(max(total - near, 0))
    return stages


def _bytes_within(traffic: Array, reach: int) -> Any:
    r"""Upper bound on the bytes that ``reach`` entries of each row and each column can hold.

    For any prices u, v >= 0 of rows and columns the dual of that transportation problem,
    :math:`K Σ_i u_i + K Σ_j v_j + Σ_{ij} (T_{ij} - u_i - v_j)^+`, is such a bound; u and v descend in turn.
    """
    best, parts = traffic.sum(), _parts_of_sums(traffic)
    for v in (traffic[0] * 0, *([] if parts is None else [parts])):
        for _ in range(_EFFORT.rounds):
            u = _price(traffic - v[None, :], reach)
            v = _price((traffic - u[:, None]).T, reach)
            rest = np.maximum(traffic - u[:, None] - v[None, :], 0).sum()
            best = min(best, reach * (u.sum() + v.sum()) + rest)
    return best


def _parts_of_sums(traffic: Array) -> Array | None:
    """The :math:`a_j` where all pairs exchange :math:`T_{ij} = a_i + a_j`, which are prices to begin with; else None.

    So do embedding tables, of which server i has some and gets from all others as much as it sends to each. Descent
    from zero stays far above the least there, as rows alone seem to have room for the largest.
    """
    n = len(traffic)
    if n < _EFFORT.servers_with_sums:
        return None
    half = _parts(traffic.sum(), 2 * (n - 1))
    parts = _parts(np.maximum(traffic.sum(axis=0) - half, 0), n - 2)
    sums = parts[:, None] + parts
    np.fill_diagonal(sums, 0)
    fits = np.abs(sums - traffic).max() <= OBJECTIVE_TOL * float(traffic.max())
    return np.asarray(parts) if fits else None


def _price(values: Array, reach: int) -> Array:
    """Row prices that minimise the dual while the others are held: each row's (reach + 1)-th largest value, or 0."""
    position = values.shape[1] - 1 - reach
    return np.asarray(np.maximum(np.partition(values, position, axis=1)[:, position], 0))
