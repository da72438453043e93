"""The independent check of a plan for a collective, from the statement of the problem."""

import itertools
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Tree, reached

_GATHERS = ("reduce-scatter", "all-reduce")
_SPREADS = ("all-gather", "broadcast", "all-reduce")


def evaluate_collective(instance: CollectiveInstance, solution: CollectivePlan, exact: bool = False) -> Evaluation:
    """Seconds for which the busiest link carries bytes, with steps of the longest way, and what the plan violates.

    Shares are fractions and are added up as such, whatever ``exact`` says; there, times are fractions as well.

    Details are ``bandwidth_bytes_per_s`` (M over the objective), ``trees``, ``hops`` (of the longest way that bytes go
    before they are where they are wanted; ``latency_s`` is what these take, where steps take time) and ``tax`` (bytes
    that links carry over the fewest that accelerators have to receive).
    """
    checker = _Checker(instance)
    for place, tree in enumerate(solution.trees):
        checker.take(f"trees[{place}]", tree)
    checker.compare_shares()
    if checker.broken:
        return Evaluation(None, tuple(checker.violations))
    size = Fraction(instance.collective_bytes)
    busy = max(load * size / Fraction(instance.bandwidth[link]) for link, load in checker.load.items())
    latency = checker.hops * Fraction(instance.step_s)
    busy += latency
    carried, least = sum(checker.load.values()), _least_received(instance)
    details: dict[str, Number] = {
        "bandwidth_bytes_per_s": size / busy if busy else 0,
        "trees": len(solution.trees),
        "hops": checker.hops,
        "tax": carried / least,
    }
    if latency:
        details["latency_s"] = latency
    shown = details if exact else {name: float(value) for name, value in details.items()}
    return Evaluation(busy if exact else float(busy), tuple(checker.violations), shown)


def _least_received(instance: CollectiveInstance) -> Fraction:
    """Parts of M that all accelerators together receive at least."""
    others = instance.accelerators - 1
    return Fraction(2 * others if instance.collective == "all-reduce" else others)


class _Checker:
    """Loads of links, bytes that each root (or pair) has, and what is wrong."""

    def __init__(self, instance: CollectiveInstance) -> None:
        self.instance = instance
        self.load: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        self.violations: list[Violation] = []
        self.broken = False
        self.hops = 0
        self._shares: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)

    def take(self, where: str, tree: Tree) -> None:
        """One tree: its form, its paths, and what it adds to links."""
        instance, share = self.instance, Fraction(tree.share)
        if tree.root >= instance.accelerators:
            self._fail("root is an accelerator", f"{where}.root", tree.root, instance.accelerators - 1)
            return
        before = len(self.violations)
        for name, paths, used in (
            ("gather", tree.gather, instance.collective in _GATHERS),
            ("spread", tree.spread, instance.collective not in ("reduce-scatter",)),
        ):
            if not used and paths:
                self._fail(f"{instance.collective} has no such paths", f"{where}.{name}", len(paths), 0)
            for number, path in enumerate(paths):
                self._path(f"{where}.{name}[{number}]", path, share)
        if instance.collective != "all-to-all":
            self._shares[(tree.root,)] += share
        if len(self.violations) > before:
            return
        down = [(path[0], path[-1], len(path) - 1) for path in tree.spread]
        up = [(path[-1], path[0], len(path) - 1) for path in tree.gather]
        if instance.collective == "all-to-all":
            self._pair(where, tree, share)
            return
        hops = self._spans(f"{where}.gather", tree.root, up) if instance.collective in _GATHERS else 0
        hops += self._spans(f"{where}.spread", tree.root, down) if instance.collective in _SPREADS else 0
        self.hops = max(self.hops, hops)

    def compare_shares(self) -> None:
        """Each root, or pair, has the bytes that the collective gives it."""
        instance, count = self.instance, self.instance.accelerators
        wanted: dict[tuple[int, ...], Fraction]
        if instance.collective == "all-reduce":
            got = sum(self._shares.values(), Fraction(0))
            if got != 1:
                self._fail("shares add up", "all trees", got, 1)
            return
        if instance.collective == "broadcast":
            wanted = {(instance.root or 0,): Fraction(1)}
        elif instance.collective == "all-to-all":
            wanted = {(i, j): Fraction(1, count) for i in range(count) for j in range(count) if i != j}
        else:
            wanted = {(root,): Fraction(1, count) for root in range(count)}
        for key in sorted(wanted.keys() | self._shares.keys()):
            if self._shares[key] != wanted.get(key, 0):
                where = f"root {key[0]}" if len(key) == 1 else f"from {key[0]} to {key[1]}"
                self._fail("shares add up", where, self._shares[key], wanted.get(key, Fraction(0)))

    def _path(self, where: str, path: Iterable[int], share: Fraction) -> None:
        nodes = list(path)
        for end in (nodes[0], nodes[-1]):
            if end >= self.instance.accelerators:
                self._fail("path joins accelerators", where, end, self.instance.accelerators - 1)
        for link in itertools.pairwise(nodes):
            if link not in self.instance.bandwidth:
                self._fail("path follows links", f"{where}: {link[0]} -> {link[1]}", 0, 1)
            else:
                self.load[link] += share

    def _pair(self, where: str, tree: Tree, share: Fraction) -> None:
        if len(tree.spread) != 1:
            self._fail("all-to-all has one path a tree", f"{where}.spread", len(tree.spread), 1)
            return
        (path,) = tree.spread
        if path[0] != tree.root:
            self._fail("path starts at the root", f"{where}.spread[0]", path[0], tree.root)
        self._shares[tree.root, path[-1]] += share
        self.hops = max(self.hops, len(path) - 1)

    def _spans(self, where: str, root: int, edges: list[tuple[int, int, int]]) -> int:
        """Longest way in links, where (nearer to the root, farther, links of the path) are a tree over all."""
        count = self.instance.accelerators
        below: dict[int, list[int]] = defaultdict(list)
        above: dict[int, tuple[int, int]] = {}
        for near, far, links in edges:
            if far in above or far == root:
                self._fail("tree reaches each accelerator once", where, far, far)
                return 0
            above[far] = (near, links)
            below[near].append(far)
        found = reached(below, root)
        if len(found) != count:
            missing = min(set(range(count)) - found)
            self._fail("tree reaches all accelerators", f"{where}: accelerator {missing}", len(found), count)
            return 0
        depth, waiting = {root: 0}, [root]
        for node in waiting:
            for child in below[node]:
                depth[child] = depth[node] + above[child][1]
                waiting.append(child)
        return max(depth.values())

    def _fail(self, kind: str, where: str, lhs: Number, rhs: Number) -> None:
        self.broken = True
        self.violations.append(Violation(kind, where, lhs, rhs))
