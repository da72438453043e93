"""The independent check of a topology design, written from the problem statement; it knows no formulation."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import Path, TopologyDesign

SHARE_TOLERANCE = 1e-6
"""How far shares and fractions may sum from one; the largest of them then takes what the others leave."""

Loads = dict[tuple[int, int], Number]


def evaluate(instance: TopologyInstance, solution: TopologyDesign, exact: bool = False) -> Evaluation:
    """Iteration time of a design and every constraint that it violates.

    Parameters
    ----------
    exact : bool
        Calculate in rational numbers: the exact objective of the design whose shares sum exactly to one.

    Returns
    -------
    Evaluation
        Objective in seconds (None where a path leaves the links); details ``max_link_load_bytes`` (per link, bytes),
        ``communication_s``, and ``bandwidth_tax``: bytes carried by links over bytes asked for (mean number of hops).

    Raises
    ------
    SolutionError
        If the design says that it answers another instance.
    """
    solution.belongs_to(instance)
    number: type[Fraction] | type[float] = Fraction if exact else float
    checker = _Checker(instance, solution)
    checker.links()
    checker.planes()
    demands = [*_ring_demands(checker, number), *_route_demands(checker, number)]
    if checker.broken:
        return Evaluation(None, tuple(checker.violations))

    loads: Loads = defaultdict(lambda: number(0))
    asked, carried = number(0), number(0)
    for path, amount in demands:
        asked += amount
        carried += amount * (len(path) - 1)
        for link in itertools.pairwise(path):
            loads[link] += amount
    worst = max((load / checker.counts[link] for link, load in loads.items()), default=number(0))
    communication = worst / number(instance.link_bandwidth_bytes_per_s)
    compute = number(instance.compute_s)
    time = max(compute, communication) if instance.overlap == "full" else compute + communication
    details = {
        "max_link_load_bytes": worst,
        "communication_s": communication,
        "bandwidth_tax": carried / asked if asked else number(0),
    }
    return Evaluation(time, tuple(checker.violations), details)


def link_violations(instance: TopologyInstance, design: TopologyDesign) -> tuple[Violation, ...]:
    """What is wrong with the links, the planes and the groups of rings of a design, whatever it is to carry."""
    checker = _Checker(instance, design)
    checker.links()
    checker.planes()
    checker.ring_groups()
    return tuple(checker.violations)


class _Checker:
    """Collects violations; ``broken`` once the loads can no longer be computed."""

    def __init__(self, instance: TopologyInstance, design: TopologyDesign) -> None:
        self.instance = instance
        self.design = design
        self.counts = design.link_counts(instance)
        self.violations: list[Violation] = []
        self.broken = False

    def fail(self, kind: str, where: str, lhs: Number, rhs: Number, breaks: bool = False) -> None:
        self.violations.append(Violation(kind, where, lhs, rhs))
        self.broken |= breaks

    def links(self) -> None:
        """Ends in range, no loops, degrees, parallel links."""
        n, duplex = self.instance.servers, self.instance.optics == "duplex"
        leaving, entering = Counter[int](), Counter[int]()
        for place, (i, j, count) in enumerate(self.design.links):
            where = f"links[{place}] = ({i}, {j}, {count})"
            for end in (i, j):
                if not 0 <= end < n:
                    self.fail("server_exists", where, end, n - 1, breaks=True)
            if i == j:
                self.fail("no_link_to_itself", where, i, j)
            if duplex and i > j:
                self.fail("duplex_pair_is_ordered", where, i, j)
            if count < 1:
                self.fail("count_is_positive", where, count, 1, breaks=True)
            leaving[i] += count
            entering[j] += count
        for server in range(n):
            if duplex:
                self._degree("degree", server, leaving[server] + entering[server])
            else:
                self._degree("out_degree", server, leaving[server])
                self._degree("in_degree", server, entering[server])
        if not self.instance.parallel_links:
            for (i, j), count in self.counts.items():
                if count > 1 and (i < j or not duplex):
                    self.fail("no_parallel_links", f"servers {i} and {j}", count, 1)

    def _degree(self, kind: str, server: int, used: int) -> None:
        if used > self.instance.degree:
            self.fail(kind, f"server {server}", used, self.instance.degree)

    def planes(self) -> None:
        """Each plane a matching (duplex) or partial permutation (one-way), all planes together exactly the links.

        One-way designs need not show planes: a multigraph with in- and out-degrees of at most d always splits into d
        permutations (König).
        """
        planes, duplex = self.design.planes, self.instance.optics == "duplex"
        if not planes and not duplex:
            return
        if len(planes) > self.instance.degree:
            self.fail("planes_suffice", "planes", len(planes), self.instance.degree)
        for place, plane in enumerate(planes):
            tails, heads = Counter(i for i, _ in plane), Counter(j for _, j in plane)
            for ends in [tails + heads] if duplex else [tails, heads]:
                for server, uses in ends.items():
                    if uses > 1:
                        self.fail("plane_is_a_matching", f"planes[{place}], server {server}", uses, 1)
        shown = Counter(pair for plane in planes for pair in plane)
        laid = Counter[tuple[int, int]]()
        for i, j, count in self.design.links:
            laid[i, j] += count
        for i, j in sorted(shown.keys() | laid.keys()):
            if shown[i, j] != laid[i, j]:
                self.fail("planes_hold_the_links", f"pair ({i}, {j})", shown[i, j], laid[i, j])

    def ring_groups(self) -> dict[int, list[int]]:
        """Places of the rings of each group; every ring has one."""
        groups, found = self.instance.allreduce_groups, defaultdict[int, list[int]](list)
        for place, ring in enumerate(self.design.rings):
            if ring.group < len(groups):
                found[ring.group].append(place)
            else:
                self.fail("ring_has_a_group", f"rings[{place}].group", ring.group, len(groups) - 1)
        return found

    def path(self, path: Path, source: int, target: int, where: str) -> None:
        """The path leads from source to target over links, in one hop where nobody forwards."""
        if len(path) < 2 or path[0] != source or path[-1] != target:
            end = path[-1] if path else -1
            self.fail(
                "path_joins_its_ends",
                f"{where}: {list(path)} should lead {source} -> {target}",
                end,
                target,
                breaks=True,
            )
            return
        for i, j in itertools.pairwise(path):
            if not self.counts.get((i, j)):
                self.fail("path_follows_links", f"{where}: hop {i} -> {j} of {list(path)}", 0, 1, breaks=True)
        if not self.instance.host_forwarding and len(path) > 2:
            self.fail("nobody_forwards", f"{where}: {list(path)}", len(path) - 1, 1)

    def shares(
        self, kind: str, values: Sequence[float], where: str, number: type[Fraction] | type[float]
    ) -> list[Number]:
        """The values as parts of one: checked, and the largest takes what the others leave."""
        parts: list[Number] = [number(value) for value in values]
        for value in parts:
            if value < 0:
                self.fail("share_is_not_negative", where, value, 0)
        total = sum(parts, start=number(0))
        if abs(float(total - 1)) > SHARE_TOLERANCE:
            self.fail(kind, where, total, 1, breaks=not parts)
        if parts:
            parts[max(range(len(parts)), key=parts.__getitem__)] += 1 - total
        return parts


def _ring_demands(checker: _Checker, number: type[Fraction] | type[float]) -> Iterable[tuple[Path, Number]]:
    """Paths with the bytes they carry for the all-reduce groups."""
    groups, rings_of = checker.instance.allreduce_groups, checker.ring_groups()
    for index, group in enumerate(groups):
        places = rings_of[index]
        k = len(group.members)
        hop_bytes = number(group.gradient_bytes) * 2 * (k - 1) / k
        rings = [checker.design.rings[place] for place in places]
        shares = checker.shares(
            "ring_shares_sum_to_one", [ring.share for ring in rings], f"allreduce_groups[{index}]", number
        )
        for place, ring, share in zip(places, rings, shares, strict=True):
            if sorted(ring.members) != list(group.members):
                distinct = len(set(ring.members) & set(group.members))
                checker.fail(
                    "ring_visits_its_group_once", f"rings[{place}]: {list(ring.members)}", distinct, k, breaks=True
                )
                continue
            if len(ring.paths) != k:
                checker.fail("ring_has_a_path_per_hop", f"rings[{place}]", len(ring.paths), k, breaks=True)
                continue
            for hop, path in enumerate(ring.paths):
                source, target = ring.members[hop], ring.members[(hop + 1) % k]
                checker.path(path, source, target, f"rings[{place}].paths[{hop}]")
                yield path, share * hop_bytes


def _route_demands(checker: _Checker, number: type[Fraction] | type[float]) -> Iterable[tuple[Path, Number]]:
    """Paths with the bytes they carry of the model-parallel traffic."""
    n, traffic = checker.instance.servers, checker.instance.traffic_bytes
    paths_of: dict[tuple[int, int], list[tuple[Path, float]]] = defaultdict(list)
    for place, route in enumerate(checker.design.routes):
        if not (0 <= route.source < n and 0 <= route.target < n):
            checker.fail("server_exists", f"routes[{place}]", max(route.source, route.target), n - 1)
            continue
        if len(route.paths) != len(route.fractions):
            checker.fail("path_has_a_fraction", f"routes[{place}]", len(route.fractions), len(route.paths), breaks=True)
            continue
        for index, path in enumerate(route.paths):
            checker.path(path, route.source, route.target, f"routes[{place}].paths[{index}]")
        paths_of[route.source, route.target].extend(zip(route.paths, route.fractions, strict=True))
    for source in range(n):
        for target in range(n):
            if not traffic[source, target]:
                continue
            taken = paths_of[source, target]
            where = f"traffic {source} -> {target}"
            fractions = checker.shares("traffic_is_routed", [fraction for _, fraction in taken], where, number)
            for (path, _), fraction in zip(taken, fractions, strict=True):
                yield path, fraction * number(float(traffic[source, target]))
