"""Rings: a single one, and the best mixture."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.frontier.topology.collective.columns import seconds_of
from ddlopt.frontier.topology.collective.shares import (
    SAME,
    Column,
    Generation,
    roundings,
)
from ddlopt.frontier.topology.collective.single_ring import MOST, best_order
from ddlopt.frontier.topology.collective.tours import EXACT, Floats, good_tour, least_tour
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.bounds import bandwidth_bound
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, CollectivePlan, Path
from ddlopt.models.topology.collective.paths import loads, shortest, through_switches
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.topology.collective.baselines import ring_trees

Ring = tuple[Path, ...]
"""Paths from each accelerator to the next one, all around."""


@dataclass(frozen=True)
class Rings(CertifiedMethod, uses=("seed",)):
    """Rings over all accelerators with the best shares, by column generation; or the one ring that it begins with.

    A byte goes once around, from its root to all others but the last one; in an all-reduce once more before that, to be
    added up. Prices of links ask for the closed tour that costs least, which is exact up to 12 accelerators: then the
    best mixture of rings is proven (``scope_bound``). Beyond, tours are those of a local search.

    Parameters
    ----------
    mixture : bool
        Many rings at once; or one, whose hops may be over several paths. Of up to nine accelerators the best order is
        found and proven (:mod:`~ddlopt.frontier.topology.collective.single_ring`), of more the one that takes the least
        time over all its hops together.
    forwarding : bool
        Whether accelerators forward between neighbours of the ring, or only switches do.
    orders : {"all", "generators"}
        ``generators``: only rings "+p", in which each accelerator is followed by the one p numbers further on, p
        coprime to their number. Of these the best mixture is proven, however many accelerators there are.
    rounds : int
        Linear programs at most.

    References
    ----------
    P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel
    and Distributed Computing 69, 2009, for one ring.
    """

    mixture: bool = True
    forwarding: bool = True
    orders: Literal["all", "generators"] = "all"
    rounds: int = 300

    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    @property
    def name(self) -> str:
        """``rings``, ``generator-rings``, or ``ring``."""
        return ("generator-rings" if self.orders == "generators" else "rings") if self.mixture else "ring"

    def refuses(self, instance: Any) -> str | None:
        """All-to-all has no rings."""
        return "all-to-all is sent along paths, not rings" if instance.collective == "all-to-all" else None

    def find(self, instance: CollectiveInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Rings, with the bound on mixtures of rings where tours are exact."""
        rng, once = np.random.default_rng(seed), passes(instance)
        by_generators = self.orders == "generators"
        if not self.mixture and not by_generators and instance.accelerators <= MOST:
            return self._single(instance, once, clock)
        rings: dict[Hashable, Ring] = {}
        exact = by_generators or instance.accelerators <= EXACT

        def priced(prices: Mapping[Arc, float]) -> tuple[float, bool, Mapping[Hashable, Column]]:
            cost, ring = self._priced(instance, prices, rng)
            rings[ring] = ring
            used = [path for path in ring if path[-1] != instance.root]
            load = {link: times * once for link, times in loads(used).items()}
            return cost * float(once), exact, {ring: Column((), load)}

        floor = float(bandwidth_bound(instance)) / instance.collective_bytes
        generation = Generation(instance.bandwidth, {(): Fraction(1)})
        shares = generation.run(priced, self.rounds if self.mixture else 1, floor, lambda: clock.expired)
        columns = [rings[key] for key in generation.columns]
        if not self.mixture:
            return MethodOutput(_plan(instance, columns, [Fraction(1)]))
        plans = [
            _plan(instance, [columns[place] for place in told], told.values())
            for told in roundings(list(generation.columns.values()), instance.bandwidth, {(): Fraction(1)}, shares)
        ]
        best = min(plans, key=lambda plan: seconds_of(instance, plan.trees))
        scope = ("generator rings" if by_generators else "rings") + ("" if self.forwarding else " without forwarding")
        bound = max(generation.proven, floor) * instance.collective_bytes * (1 - SAME) if exact else None
        details = {"rounds": generation.rounds, "rings": len(shares.weights)}
        return MethodOutput(best, details, scope=scope, scope_bound=bound)

    def _single(self, instance: CollectiveInstance, once: Fraction, clock: Clock) -> MethodOutput:
        """The best order, with the bound on all orders."""

        def hops(prices: Mapping[Arc, float]) -> tuple[Floats, list[list[Path]]]:
            return self._hops(instance, prices)

        floor = float(bandwidth_bound(instance)) / instance.collective_bytes
        told, bound = best_order(instance, hops, once, floor, lambda: clock.expired)
        plans = [_plan(instance, [ring for _, ring in each], [share for share, _ in each]) for each in told]
        best = min(plans, key=lambda plan: seconds_of(instance, plan.trees))
        scope = "one ring" if self.forwarding else "one ring without forwarding"
        return MethodOutput(best, scope=scope, scope_bound=bound * instance.collective_bytes * (1 - SAME))

    def _priced(
        self, instance: CollectiveInstance, prices: Mapping[Arc, float], rng: np.random.Generator
    ) -> tuple[float, Ring]:
        """The ring that costs least, or nearly so, and what it costs."""
        matrix, paths = self._hops(instance, prices)
        exact = instance.accelerators <= EXACT or self.orders == "generators"
        if self.orders == "generators":
            cost, order = _least_of_generators(matrix)
        else:
            cost, order = least_tour(matrix) if exact else good_tour(matrix, rng)
        if not np.isfinite(cost):
            seen = "exists" if exact else "was found"
            raise NoSolutionError(f"no ring of direct links over all accelerators {seen}")
        return cost, tuple(paths[a][b] or (a, b) for a, b in zip(order, [*order[1:], order[0]], strict=True))

    def _hops(self, instance: CollectiveInstance, prices: Mapping[Arc, float]) -> tuple[Floats, list[list[Path]]]:
        """What hops between accelerators cost, infinite where there is no path, and their paths."""
        costs, paths = shortest(instance, prices) if self.forwarding else through_switches(instance, prices)
        matrix: Floats = np.array(costs, dtype=np.float64)
        matrix[[[not path for path in row] for row in paths]] = np.inf
        if instance.root is not None:
            matrix[:, instance.root] = 0.0  # a broadcast ends before it would be back
        return matrix, paths


def _least_of_generators(costs: Floats) -> tuple[float, list[int]]:
    """The ring "+p" that costs least, and what it costs; infinite where each has a hop without a path."""
    count = len(costs)
    numbers = np.arange(count)
    rings = [p for p in range(1, count) if gcd(p, count) == 1]
    values = [float(costs[numbers, (numbers + p) % count].sum()) for p in rings]
    best = int(np.argmin(values))
    return values[best], (numbers * rings[best] % count).tolist()


def passes(instance: CollectiveInstance) -> Fraction:
    """Bytes over each hop of a ring for each byte of the collective; a broadcast does not use the hop to its root."""
    around = Fraction(instance.accelerators - 1, instance.accelerators)
    return {"all-reduce": 2 * around, "broadcast": Fraction(1)}.get(instance.collective, around)


def _plan(instance: CollectiveInstance, rings: Iterable[Ring], shares: Iterable[Fraction]) -> CollectivePlan:
    pairs = zip(rings, shares, strict=True)
    trees = [tree for ring, share in pairs for tree in ring_trees(instance, ring, share)]
    return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees))
