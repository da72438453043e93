r"""Witnesses of bounds of collectives: sets of nodes, or prices of links, whose bound is counted here from the start.

Nothing of the search is used: no maximum flow, no method for trees. Of a set one adds up what leads out of it. Of
prices one needs what a least spanning tree costs, from below: any amounts :math:`y_S \ge 0` of sets S without the root
do, as long as those of the sets that an arc enters do not add up to more than it costs, because a tree enters each of
them (:func:`least_tree`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any, ClassVar

from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.errors import RefutedError
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance

_LARGEST = 2**256
"""Of a price: honest ones have up to some forty bits."""

Ends = dict[int, list[tuple[int, int]]]
"""Of each node the nodes that links lead to, with the price of each link."""


@dataclass(frozen=True)
class CollectiveCertificate(OwnCertificate):
    r"""A proof that no plan takes less than ``claim`` seconds, by sets of nodes or by prices of links.

    * One set S. All-gather: it has k of N accelerators and leaves one out, so that :math:`\frac{k}{N} M` bytes leave
      it. Reduce-scatter: they enter it. Broadcast: it has the root and leaves one out, M bytes leave it. All-reduce: it
      has some and not all, M bytes leave it. All-to-all: :math:`\frac{k (N - k)}{N} M` bytes leave it.
    * b > 1 sets, which share out all accelerators of an all-reduce: bytes leave them and enter them
      :math:`2 (b - 1) M` times in all.
    * Prices :math:`\pi_e`: what each byte costs at least, over what all bandwidth is worth.

    Parameters
    ----------
    parts : list of lists of int
        Nodes of each set.
    prices : list of [int, int, int]
        From, to, and what a byte there costs, in any unit; other links cost nothing. One of both lists is empty.
    """

    format: ClassVar[str] = "ddlopt collective certificate"
    kind: ClassVar[str] = "collective"
    says: ClassVar[str] = "of the instance, counted on a set of nodes or on prices of links, in rational numbers"
    witness: ClassVar[bool] = True

    parts: list[list[int]]
    prices: list[list[int]]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Lists of whole numbers that are not negative."""
        for name in ("parts", "prices"):
            lists = data[name]
            if not isinstance(lists, list) or not all(isinstance(each, list) and each for each in lists):
                return f"{name} is a list of lists that are not empty"
            if not all(type(number) is int and 0 <= number < _LARGEST for each in lists for number in each):
                return f"{name} has whole numbers from 0 to 2^256"
        if bool(data["parts"]) == bool(data["prices"]):
            return "one of parts and prices is empty, the other is not"
        if any(len(each) != 3 for each in data["prices"]):
            return "prices are triples: from, to, price"
        return None

    def check(self, instance: CollectiveInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless the sets or prices prove the claim."""
        found = proven_by(instance, self.parts, self.prices, expired)
        if not expired() and self.claim > found:
            told = "sets" if self.parts else "prices"
            raise RefutedError(f"the {told} prove {found} s of '{instance.name}', not {self.claim}")
        return 0


def proven_by(
    instance: CollectiveInstance,
    parts: Sequence[Sequence[int]],
    prices: Sequence[Sequence[int]],
    expired: Callable[[], bool] = lambda: False,
) -> Fraction:
    """Seconds that sets of nodes or prices of links prove; what is said when the time has expired means nothing.

    Raises
    ------
    RefutedError
        If they are none of this instance, or prove nothing.
    """
    size = Fraction(instance.collective_bytes)
    return size * (_of_parts(instance, parts) if parts else _of_prices(instance, prices, expired))


def _of_parts(instance: CollectiveInstance, parts: Sequence[Sequence[int]]) -> Fraction:
    """Seconds for each byte of the collective."""
    place: dict[int, int] = {}
    for number, part in enumerate(parts):
        for node in part:
            if node >= instance.nodes or node in place:
                raise RefutedError(f"node {node} is in two sets, or there are only {instance.nodes} nodes")
            place[node] = number
    count = instance.accelerators
    inside = [sum(node < count for node in part) for part in parts]
    if 0 in inside or inside == [count]:
        raise RefutedError("a set has no accelerator, or all of them")
    links = [(place.get(i, -1), place.get(j, -1), Fraction(each)) for (i, j), each in instance.bandwidth.items()]
    out = sum((each for i, j, each in links if i != j and i >= 0), Fraction(0))
    into = sum((each for i, j, each in links if i != j and j >= 0), Fraction(0))
    if len(parts) > 1:
        if instance.collective != "all-reduce" or sum(inside) != count:
            raise RefutedError("several sets speak of an all-reduce, and have all its accelerators")
        return _over(2 * (len(parts) - 1), min(out, into))
    (k,) = inside
    match instance.collective:
        case "all-gather":
            return _over(Fraction(k, count), out)
        case "reduce-scatter":
            return _over(Fraction(k, count), into)
        case "all-to-all":
            return _over(Fraction(k * (count - k), count), out)
        case "broadcast" if instance.root not in place:
            raise RefutedError(f"the set has not the root, accelerator {instance.root}")
    return _over(1, out)


def _over(bytes_out: Fraction | int, bytes_per_s: Fraction) -> Fraction:
    if not bytes_per_s:
        raise RefutedError("no link leads out of the set: it is none of a network whose accelerators reach each other")
    return bytes_out / bytes_per_s


def _of_prices(instance: CollectiveInstance, prices: Sequence[Sequence[int]], expired: Callable[[], bool]) -> Fraction:
    """Seconds for each byte of the collective."""
    known: dict[Arc, int] = {}
    for i, j, price in prices:
        if (i, j) not in instance.bandwidth or (i, j) in known:
            raise RefutedError(f"there is no link from {i} to {j}, or it has two prices")
        known[i, j] = price
    worth = sum((price * Fraction(instance.bandwidth[link]) for link, price in known.items()), Fraction(0))
    if not worth:
        raise RefutedError("no link has a price above 0")
    count, ends = instance.accelerators, Ends()
    for i, j in instance.bandwidth:
        ends.setdefault(i, []).append((j, known.get((i, j), 0)))
    most = 1 + count * sum(known.values())  # of an arc where no path is: no tree has it
    costs = []
    for source in range(count):
        if expired():
            return Fraction(0)
        far = distances(ends, source)
        costs.append([far.get(target, most) for target in range(count)])
    if instance.collective == "all-to-all":
        return Fraction(sum(map(sum, costs)), count) / worth
    return _least_of_trees(instance, costs, expired) / worth


def _least_of_trees(
    instance: CollectiveInstance, costs: Sequence[Sequence[int]], expired: Callable[[], bool]
) -> Fraction:
    """What a byte costs at least: in the mean over its roots, or at the best root of an all-reduce."""
    turned = [list(row) for row in zip(*costs, strict=True)]
    of_roots = []
    for root in range(instance.accelerators) if instance.root is None else (instance.root,):
        if expired():
            return Fraction(0)
        into = least_tree(turned, root) if instance.collective in ("reduce-scatter", "all-reduce") else 0
        out = least_tree(costs, root) if instance.collective != "reduce-scatter" else 0
        of_roots.append(into + out)
    return Fraction(min(of_roots)) if instance.collective == "all-reduce" else Fraction(sum(of_roots), len(of_roots))


def distances(ends: Ends, source: int) -> dict[int, int]:
    """Of each node that can be reached, what the cheapest path there costs."""
    far: dict[int, int] = {}
    waiting = [(0, source)]
    while waiting:
        cost, node = heappop(waiting)
        if node not in far:
            far[node] = cost
            for other, price in ends.get(node, ()):
                if other not in far:
                    heappush(waiting, (cost + price, other))
    return far


def least_tree(costs: Sequence[Sequence[int]], root: int) -> int:
    r"""What every spanning tree out of the root costs at least, by amounts of sets that each tree has to enter.

    A path is grown backwards along the cheapest arc into its end. What that arc costs is an amount of the set at the
    end, and is taken off all arcs into the set: so amounts of the sets that an arc enters never add up to more than it
    costs, and the total holds whatever else is done. Sets that lie on a cycle become one; one that is reached from the
    root is done with. (The total is that of a least tree, but nothing depends on it.)
    """
    count, total = len(costs), 0
    into = {node: {tail: costs[tail][node] for tail in range(count) if tail != node} for node in range(count)}
    where = list(range(count))  # the set, by its number, in which each node is
    members = {node: [node] for node in range(count)}
    path: list[int] = []
    while len(members) > 1:
        if not path:
            path.append(next(each for each in members if each != where[root]))
        end = path[-1]
        tail, least = min(into[end].items(), key=lambda each: each[1])
        total += least
        into[end] = {other: cost - least for other, cost in into[end].items()}
        met = where[tail]
        if met == where[root]:
            joined, path, target = path, [], met
        elif met in path:
            place = path.index(met)
            joined, path, target = path[place + 1 :], path[: place + 1], met
        else:
            path.append(met)
            continue
        _join(joined, target, into, where, members)
    return total


def _join(
    joined: Iterable[int], target: int, into: dict[int, dict[int, int]], where: list[int], members: dict[int, list[int]]
) -> None:
    """Make sets part of the target; arcs into it are those into any of them, from outside."""
    for each in joined:
        for node in members.pop(each):
            where[node] = target
            members[target].append(node)
        for tail, cost in into.pop(each).items():
            if cost < into[target].get(tail, cost + 1):
                into[target][tail] = cost
    into[target] = {tail: cost for tail, cost in into[target].items() if where[tail] != target}
