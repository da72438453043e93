"""Networks that look the same from many accelerators: trees of a few roots, shifted to all the others.

A tree that is shifted in all ways loads the links of an orbit equally; so the linear program over trees is left with a
row for each orbit of links, and with a root of each orbit of accelerators: a single one in a torus, and in boxes whose
accelerators are all joined in the same way.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.frontier.topology.collective.shares import Column, Generation, roundings
from ddlopt.frontier.topology.collective.shifts import Shifts, shifts
from ddlopt.models.topology.collective.bounds import bandwidth_bound
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, CollectivePlan, Path, Tree
from ddlopt.models.topology.collective.paths import loads
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.collective.spanning import least_spanning, over_switches, path_of


@dataclass(frozen=True)
class Shifted(Heuristic, uses=()):
    r"""The linear program over trees on a network that looks the same from many accelerators.

    .. math::
        \max R \quad \text{s. t.} \quad \sum_{\tau \in g} w_\tau = f_g R \ \text{for each part g}, \quad
        \sum_\tau n_{\tau o} w_\tau \le |o|\, B_o \ \text{for each orbit o of links}, \quad w \ge 0

    with :math:`n_{\tau o}` links of the orbit in tree :math:`\tau`, out of a root that stands for its orbit
    (reduce-scatter: into it; all-reduce: one of each). Parts are such roots, or everything in an all-reduce. Nothing is
    lost, as the mean of all that a plan is shifted to is no worse. The bound is that of cuts, and what is found is
    checked as a plan for the whole network.

    Parameters
    ----------
    rounds : int
        Linear programs at most.
    """

    rounds: int = 300

    name: ClassVar[str] = "shifted"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    def refuses(self, instance: Any) -> str | None:
        """Collectives without a tree of each root, and networks that differ from one accelerator to the next."""
        if instance.collective in ("broadcast", "all-to-all"):
            return f"it shifts trees to all roots, and this is {instance.collective}"
        return None if shifts(instance) else "no digit of the accelerators' numbers can be shifted so that links stay"

    def answer(self, instance: CollectiveInstance, seed: int, clock: Clock, start: Any) -> Answer[CollectivePlan]:
        """Trees of all roots."""
        known = shifts(instance)
        assert known is not None
        room = {orbit: size * instance.bandwidth[orbit] for orbit, size in Counter(known.orbits.values()).items()}
        either = instance.collective == "all-reduce"
        parts: dict[Hashable, Fraction] = {(): Fraction(1)}
        if not either:
            parts = {(root,): Fraction(1, len(known.roots)) for root in known.roots}

        def priced(prices: Mapping[Arc, float]) -> tuple[float, bool, Mapping[Hashable, Column]]:
            found = _cheapest(instance, known, {link: prices[orbit] for link, orbit in known.orbits.items()})
            columns: dict[Hashable, Column] = {}
            for _, root, gather, spread in found:
                load: dict[Arc, float | Fraction] = defaultdict(int)
                for link, times in loads((*gather, *spread)).items():
                    load[known.orbits[link]] += times
                columns[root, gather, spread] = Column(() if either else (root,), dict(load))
            costs = [cost for cost, *_ in found]
            return min(costs) if either else sum(costs) / len(costs), False, columns

        floor = float(bandwidth_bound(instance)) / instance.collective_bytes
        generation = Generation(room, parts)
        shares = generation.run(priced, self.rounds, floor, lambda: clock.expired)
        columns = list(generation.columns.values())
        told = min(
            roundings(columns, room, parts, shares), key=lambda each: _busiest(instance, known, columns, parts, each)
        )
        keys: list[Any] = list(generation.columns)
        trees = [
            tree
            for place, share in told.items()
            for tree in _shifted(known, share * parts[columns[place].part], *keys[place])
        ]
        details = {"rounds": generation.rounds, "shifts": len(known.images), "orbits": len(room)}
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees)), details


def _busiest(
    instance: CollectiveInstance,
    known: Shifts,
    columns: Sequence[Column],
    parts: Mapping[Hashable, Fraction],
    shares: Mapping[int, Fraction],
) -> Fraction:
    """Of all bytes, what the busiest orbit carries over its bytes per second."""
    sizes = Counter(known.orbits.values())
    carried: dict[Arc, Fraction] = defaultdict(Fraction)
    for place, share in shares.items():
        for orbit, times in columns[place].load.items():
            carried[orbit] += share * parts[columns[place].part] * Fraction(times)
    return max(each / (sizes[orbit] * Fraction(instance.bandwidth[orbit])) for orbit, each in carried.items())


def _cheapest(
    instance: CollectiveInstance, known: Shifts, prices: Mapping[Arc, float]
) -> list[tuple[float, int, tuple[Path, ...], tuple[Path, ...]]]:
    """Of each root what its trees cost, and their paths: into it and out of it, as the collective has them."""
    costs, before = over_switches(instance, prices)
    found = []
    for root in known.roots:
        cost, gather, spread = 0.0, list[Path](), list[Path]()
        if instance.collective != "all-gather":
            for node, near in enumerate(least_spanning(costs.T, root)):
                if node != root:
                    gather.append(path_of(instance, before, node, near))
                    cost += float(costs[node, near])
        if instance.collective != "reduce-scatter":
            for node, near in enumerate(least_spanning(costs, root)):
                if node != root:
                    spread.append(path_of(instance, before, near, node))
                    cost += float(costs[near, node])
        found.append((cost, root, tuple(gather), tuple(spread)))
    return found


def _shifted(
    known: Shifts, share: Fraction, root: int, gather: Iterable[Path], spread: Iterable[Path]
) -> Iterator[Tree]:
    """A tree, shifted in all ways."""
    each = str(share / len(known.images))
    for row in known.images:
        image = row.tolist()
        yield Tree(
            share=each,
            root=image[root],
            gather=tuple(tuple(image[node] for node in path) for path in gather),
            spread=tuple(tuple(image[node] for node in path) for path in spread),
        )
