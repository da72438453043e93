"""All circulant graphs of a degree, up to multiplication by units."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.circulant.bounds import circulant_bound
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.gossip.circulant.symmetry import leaders, smallest_images, unit_images
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.circulant.kernels import extend
from ddlopt.solvers.gossip.circulant.rules import exchanged
from ddlopt.solvers.gossip.circulant.weights import best_weights, graph_of
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_MOST = {"gap": 20_000_000_000, "averaging": 60_000}


@dataclass(frozen=True)
class CirculantEnumeration(CertifiedMethod, uses=()):
    """Exact: every set of generators, unless what remains cannot be better; one linear program each for weights.

    A set has the leader of the first orbit under multiplication by units that it uses. For goal ``averaging`` only the
    lexicographically smallest image of a set is looked at.

    Parameters
    ----------
    most_sets : int, optional
        Instances with more sets are refused; 2e10 for goal ``gap``, where most are never visited, and 60 000 for goal
        ``averaging`` unless given.
    """

    most_sets: int | None = None

    name: ClassVar[str] = "circulant-enumeration"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.circulant.kernels",)
    covers: ClassVar[type[Any]] = CirculantInstance

    def refuses(self, instance: Any) -> str | None:
        """Too many sets."""
        sets = sum(comb(len(pool), count - 1) for _, pool, count, _ in _cases(instance))
        most = self.most_sets or _MOST[instance.goal]
        return f"there are {sets} sets of generators, more than {most}" if sets > most else None

    def find(self, instance: CirculantInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best graph; without a bound of its own when the time is up."""
        search = _gaps if instance.goal == "gap" else _factors
        graph, bound, sets = search(instance, clock)
        if graph is None:
            raise NoSolutionError("time limit before the first graph")
        return MethodOutput(graph, {"sets": sets}, bound, message="" if bound is not None else "time limit")


def _cases(instance: CirculantInstance) -> Iterator[tuple[int, list[int], int, bool]]:
    """Leader, what else may be in a set, generators with two links, whether n/2 is in it."""
    n, degree = instance.nodes, instance.degree
    first = leaders(n)
    pool = range(1, (n + 1) // 2)
    for half in (False, True):
        count = min((degree - half) // 2, len(pool))
        if count < 1 or (half and n % 2) or (not half and n % 2 == 0 and degree % 2):
            continue
        for leader in sorted({int(first[g]) for g in pool}):
            rest = [g for g in pool if first[g] >= leader and g != leader]
            if len(rest) >= count - 1:
                yield leader, rest, count, half


def _gaps(instance: CirculantInstance, clock: Clock) -> tuple[CirculantGraph | None, float | None, int]:
    characters = instance.characters
    best: tuple[int, ...] = exchanged(instance, 0, clock)
    least = float(characters[:, [g - 1 for g in best]].sum(axis=1).min())
    clock.report(least)
    sets, ceiling = 0, circulant_bound(instance) * (1.0 - BOUND_MARGIN)
    for leader, rest, count, half in _cases(instance):
        base = characters[:, leader - 1] + (characters[:, -1] if half else 0.0)
        fixed = (leader, instance.nodes // 2) if half else (leader,)
        if count == 1:
            rest = []
        table = np.ascontiguousarray(characters[:, [g - 1 for g in rest]].T)
        # Of suffixes; nothing remains after the last.
        highest = np.vstack([np.maximum.accumulate(table[::-1], axis=0)[::-1], np.zeros((1, len(characters)))])
        if count == 1:
            sets += 1
            if base.min() > least:
                least, best = float(base.min()), fixed
        for second in range(len(rest) - count + 2 if count > 1 else 0):
            if least >= ceiling:
                return _graph(instance, best), circulant_bound(instance), sets
            if clock.expired:
                return _graph(instance, best), None, sets
            begun = base + table[second]
            picks = np.full(max(1, count - 2), -1, dtype=np.int64)
            if count == 2:
                value, visited = float(begun.min()), 1
            else:
                value, visited = extend(table, highest, second + 1, begun, count - 2, least, picks)
            sets += visited
            if value > least:
                least = value
                best = (*fixed, rest[second], *(rest[place] for place in picks if place >= 0))
                clock.report(least)
    return _graph(instance, best), least + ROUNDING * instance.degree, sets


def _graph(instance: CirculantInstance, generators: tuple[int, ...]) -> CirculantGraph:
    return CirculantGraph(instance=instance.name, generators=tuple(sorted(generators)))


def _factors(instance: CirculantInstance, clock: Clock) -> tuple[CirculantGraph | None, float | None, int]:
    characters, images = instance.characters, unit_images(instance.nodes)
    best, factor, bound, sets = None, 2.0, 2.0, 0
    for leader, rest, count, half in _cases(instance):
        listed = np.array([(leader, *others) for others in combinations(rest, count - 1)], dtype=np.int64)
        if half:
            listed = np.column_stack([listed, np.full(len(listed), instance.nodes // 2)])
        listed = np.sort(listed, axis=1)
        for row in listed[(smallest_images(listed, images) == listed).all(axis=1)]:
            if clock.expired:
                return (None if best is None else graph_of(instance, best)), None, sets
            sets += 1
            weights, proven = best_weights(characters[:, row - 1])
            bound = min(bound, proven)
            value = float(np.abs(1.0 - characters[:, row - 1] @ weights).max())
            if value < factor:
                factor, best = value, tuple(row.tolist())
                clock.report(factor)
    return graph_of(instance, best) if best else None, bound, sets
