"""The combinatorial bound of a topology in whole numbers, as a proof that anybody can recompute.

It is that of :func:`~ddlopt.models.topology.bounds.congestion_bounds`, where each argument is proven; nothing is
taken from there but how many servers, or pairs, are at a distance at most, in whole numbers, and where to look (a
price, a set of servers, a load to exclude), for which any value would do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import lcm

from ddlopt.models.topology.bounds import congestion_bounds, level_sizes, pairs_within
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance

Matrix = list[list[int]]


@dataclass(frozen=True)
class Effort:
    """How far bounds that are looked for are looked for, and why so far."""

    rounds: int = 4
    """Of looking for prices of ports that float arithmetic found: after these the bound hardly moves."""
    priced_levels: int = 3
    """Where prices of rows and columns are looked for: most bytes arrive within the first hops."""
    exhaustive_cuts: int = 10
    """Servers up to which every set of them is tried as a cut: a thousand sets."""


_EFFORT = Effort()

_EASED = (Fraction(0), Fraction(1, 10**15), Fraction(1, 10**14), Fraction(1, 10**12))
"""By how much the load that floats exclude may be too large for the exact argument."""


def exact_lower_bound(instance: TopologyInstance) -> Fraction:
    """Iteration time in seconds that no design can beat, without any rounding.

    Raises
    ------
    InfeasibleError
        If the degree leaves some server without a way to all those that it must reach.
    """
    guides = congestion_bounds(instance)
    return exact_iteration_s(instance, _Exact(instance).busiest_link_bytes(Fraction(guides["multiplicity"])))


def exact_iteration_s(instance: TopologyInstance, busiest_bytes: Fraction) -> Fraction:
    """Time of an iteration where the busiest link carries a number of bytes, without any rounding."""
    communication = busiest_bytes / Fraction(instance.link_bandwidth_bytes_per_s)
    compute = Fraction(instance.compute_s)
    return max(compute, communication) if instance.overlap == "full" else compute + communication


class _Exact:
    """Bytes of an instance in the largest unit of which all of them are multiples."""

    def __init__(self, instance: TopologyInstance) -> None:
        self.instance, n = instance, instance.servers
        rows = [[Fraction(value) for value in row] for row in instance.traffic_bytes.tolist()]
        hops = [_hop_bytes(group) for group in instance.allreduce_groups]
        self.unit = lcm(*(value.denominator for row in rows for value in row), *(each.denominator for each in hops))
        self.traffic: Matrix = [[int(value * self.unit) for value in row] for row in rows]
        self.hops = [int(each * self.unit) for each in hops]
        self.duplex = instance.optics == "duplex"
        self.pairs = [list(row) for row in self.traffic]
        self.reduced, self.all_reduce = [0] * n, [0] * n
        for group, hop in zip(instance.allreduce_groups, self.hops, strict=True):
            for member in group.members:
                self.all_reduce[member] += hop
            if len(group.members) == 2:
                a, b = group.members
                self.pairs[a][b] += hop
                self.pairs[b][a] += hop
            else:
                for member in group.members:
                    self.reduced[member] += hop

    def busiest_link_bytes(self, load: Fraction) -> Fraction:
        """The best of all bounds; ``load`` is the number of bytes that is tried to be excluded first."""
        instance, n, d = self.instance, self.instance.servers, self.instance.degree
        sent = [sum(row) + more for row, more in zip(self.traffic, self.all_reduce, strict=True)]
        received = [sum(row) + more for row, more in zip(_turned(self.traffic), self.all_reduce, strict=True)]
        best = Fraction(max(*sent, *received), d)
        capacity = d * (2 * (n // 2) if self.duplex else n)
        beside = sum(self.reduced) + sum(max(r - s, 0) for s, r in zip(sent, received, strict=True))
        levels = list(level_sizes(n - 1, d, self.duplex))
        views = [(self.pairs, 1), (_turned(self.pairs), 1)]
        if self.duplex:
            both = zip(views[0][0], views[1][0], strict=True)
            views.append(([[a + b for a, b in zip(*rows, strict=True)] for rows in both], 2))
        if self.pairs == views[1][0]:
            views = views[:1]
        within = pairs_within(instance)
        under_way = [_under_way(view, levels, within) for view, _ in views]
        for (_, parts), stages in zip(views, under_way, strict=True):
            best = max(best, (beside + Fraction(sum(stages), parts)) / capacity)
        for eased in _EASED:
            tried = load * self.unit * (1 - eased)
            if tried > best and any(
                self._excluded(view, beside, stages, capacity, tried)
                for (view, _), stages in zip(views[:2], under_way[:2], strict=True)
            ):
                best = tried
                break
        if not instance.host_forwarding:
            best = max(best, self._direct())
        if not instance.parallel_links and n < 2 * d:
            best = max(best, self._cut())
        return best / self.unit

    def _excluded(self, view: Matrix, beside: int, stages: list[int], capacity: int, z: Fraction) -> bool:
        """Whether no design carries at most z on every link, as over one hop a link brings at most z of one pair."""
        d, direct, total = self.instance.degree, Fraction(0), sum(map(sum, view))
        for row in view:
            pieces: list[Fraction] = []
            for amount in row:
                whole = int(amount // z) if self.instance.parallel_links else int(amount >= z)
                pieces += [z] * min(whole, d)
                pieces.append(amount - whole * z if self.instance.parallel_links or not whole else Fraction(0))
            direct += sum(sorted(pieces, reverse=True)[:d])
        after_one = max(total - direct, Fraction(stages[1] if len(stages) > 1 else 0))
        return capacity * z < beside + total + after_one + sum(stages[2:])

    def _direct(self) -> Fraction:
        """What a pair needs for its own traffic where nobody forwards."""
        d, demand = self.instance.degree, self.pairs
        if self.duplex:
            both = zip(demand, _turned(demand), strict=True)
            demand = [[max(pair) for pair in zip(*rows, strict=True)] for rows in both]
        if not self.instance.parallel_links:
            groups = zip(self.instance.allreduce_groups, self.hops, strict=True)
            alone = [Fraction(hop, min(d, len(group.members) - 1)) for group, hop in groups]
            return max(Fraction(max(map(max, demand))), *alone, Fraction(0))
        best = Fraction(0)
        for row in (*demand, *_turned(demand)):
            wanted = [amount for amount in row if amount]
            candidates = sorted({Fraction(amount, k) for amount in wanted for k in range(1, d + 1)})
            low, high = -1, len(candidates) - 1
            while high - low > 1:
                middle = (low + high) // 2
                fits = sum(-(-amount // candidates[middle]) for amount in wanted) <= d
                low, high = (low, middle) if fits else (middle, high)
            # What the last candidate does not fit either is refused elsewhere: there are too many to reach.
            best = max(best, candidates[high]) if wanted else best
        return best

    def _cut(self) -> Fraction:
        """The best ratio of bytes to links over sets of servers, for designs without parallel links."""
        n, d = self.instance.servers, self.instance.degree
        best = Fraction(0)
        for inside in _sets(n):
            outside = [v for v in range(n) if v not in inside]
            bytes_ = sum(self.pairs[i][j] for i in inside for j in outside)
            for group, hop in zip(self.instance.allreduce_groups, self.hops, strict=True):
                within = sum(member in inside for member in group.members)
                bytes_ += hop if len(group.members) > 2 and 0 < within < len(group.members) else 0
            links = min(d * len(inside), d * len(outside), len(inside) * len(outside))
            best = max(best, Fraction(bytes_, links))
        return best


def _hop_bytes(group: AllReduceGroup) -> Fraction:
    """Bytes that each member of an all-reduce group sends to the next one in its rings, in all."""
    members, size = len(group.members), Fraction(group.gradient_bytes)
    return 2 * (members - 1) * size / members


def _turned(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def _under_way(view: Matrix, levels: Sequence[int], pairs_within: Sequence[int]) -> list[int]:
    """Least bytes not yet delivered after 0, 1, 2, … hops."""
    total, stages = sum(map(sum, view)), [sum(map(sum, view))]
    ordered = [sorted(row, reverse=True) for row in view]
    reached = list(accumulate(levels))
    reached += [reached[-1]] * (len(pairs_within) - len(reached))
    for level, reach in enumerate(reached, start=1):
        near = sum(sum(row[:reach]) for row in ordered)
        if level <= _EFFORT.priced_levels and reach < len(view) - 1:
            near = min(near, _within(view, reach))
        if level <= len(pairs_within):
            entries = sorted((each for row in ordered for each in row[:reach]), reverse=True)
            near = min(near, sum(entries[: pairs_within[level - 1]]))
        if total <= near:
            break
        stages.append(total - near)
    return stages


def _within(view: Matrix, reach: int) -> int:
    """What ``reach`` entries of each row and column hold at most: the dual of that problem at some prices."""
    n, best = len(view), sum(map(sum, view))
    columns = _turned(view)
    # From nothing, and where all pairs exchange a_i + a_j from these.
    half = best // (2 * max(1, n - 1))
    parts = [max(0, sum(column) - half) // max(1, n - 2) for column in columns]
    fits = all(view[i][j] == parts[i] + parts[j] for i in range(n) for j in range(n) if i != j)
    for start in ([0] * n, *([parts] if fits else [])):
        v = start
        for _ in range(_EFFORT.rounds):
            u = [_price([value - price for value, price in zip(row, v, strict=True)], reach) for row in view]
            v = [_price([value - price for value, price in zip(column, u, strict=True)], reach) for column in columns]
            rest = sum(max(0, value - u[i] - v[j]) for i, row in enumerate(view) for j, value in enumerate(row))
            best = min(best, reach * (sum(u) + sum(v)) + rest)
    return best


def _price(values: list[int], reach: int) -> int:
    return max(0, sorted(values, reverse=True)[reach])


def _sets(n: int) -> Iterator[set[int]]:
    """Sets of servers: all of few, and intervals of many."""
    if n <= _EFFORT.exhaustive_cuts:
        yield from ({v for v in range(n) if number >> v & 1} for number in range(1, 2**n - 1))
        return
    for size in {1, 2, n // 2, n - 2, n - 1}:
        yield from ({(first + step) % n for step in range(size)} for first in range(n))
