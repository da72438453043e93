"""Strategies whose bytes suit the ports: local search under an estimate of what columns of rings carry."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, Ints, tables_of
from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.models.topology.permutations import ring, totients
from ddlopt.solvers.heuristic import Clock

Choices = tuple[int, ...]


@dataclass(frozen=True)
class Effort:
    """How exact an estimate is."""

    most_compositions: int = 400
    """Estimates are calculated for all of them at once; the rarest kinds of rings are left out beyond."""
    bisections: int = 14
    """To a ten-thousandth of the range: an estimate is no more exact."""
    sources: int = 32
    """Servers from which distances are found, drawn at random where there are more."""
    better: float = 1e-5
    """Relative gain that is worth another start: estimates are coarser than this."""


_EFFORT = Effort()

_SLACK = 1.1
"""Hops in a random network over the least possible number, about."""
_GENERATED = 5
"""Groups up to this size have rings from generators, which reach different servers, as links are made."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Iteration time of strategies, were every column of links closed rings of one set of groups.

    A set with m of the d columns sends up to m z bytes over links of its own; what it sends beyond that goes where
    there is room and takes ``detour_hops``. Sets without a column take as many hops as there are between servers in a
    random network. Other traffic takes as many as there are over such columns, in random order.
    """

    instance: CodesignInstance
    detour_hops: float = 6.0

    @cached_property
    def _sets(self) -> tuple[list[int], Floats]:
        """Sets of groups of all servers, and (sets,) bytes a server sends per byte of each set."""
        demand = demand_of(tables_of(self.instance))
        count = len(tables_of(self.instance).groups_of)
        spanning = [q for q in range(count) if (demand.sent[:, q] > 0).all()]
        return spanning, demand.sent[:, :count].mean(axis=0)

    @cached_property
    def far(self) -> float:
        """Mean hops in a random network."""
        instance = self.instance
        sizes = list(level_sizes(instance.servers - 1, instance.degree, instance.optics == "duplex"))
        return _SLACK * sum(hops * size for hops, size in enumerate(sizes, start=1)) / sum(sizes)

    @cached_property
    def compositions(self) -> Ints:
        """(compositions, sets) columns of each set of groups, where these join all servers."""
        instance, (spanning, _) = self.instance, self._sets
        ports = 2 if instance.optics == "duplex" else 1
        columns = instance.degree // ports
        while len(spanning) > 1:
            rows = list(itertools.combinations_with_replacement(range(len(spanning)), columns))
            if len(rows) <= _EFFORT.most_compositions:
                break
            spanning = spanning[:-1]
        table = np.zeros((0, len(tables_of(instance).groups_of)), dtype=np.int64)
        if not spanning or not columns:
            return table
        kept = []
        for row in itertools.combinations_with_replacement(spanning, columns):
            if self._joins(frozenset(row)):
                kept.append(ports * np.bincount(row, minlength=table.shape[1]))
        return np.array(kept, dtype=np.int64).reshape(-1, table.shape[1])

    @cached_property
    def pattern_hops(self) -> Floats:
        """(compositions, patterns) bytes times hops a server, per byte of each pattern, over rings in random order."""
        tables, rng = tables_of(self.instance), np.random.default_rng(0)
        n = self.instance.servers
        sources = np.arange(n) if n <= _EFFORT.sources else np.sort(rng.choice(n, _EFFORT.sources, replace=False))
        patterns = [(pattern.unit[sources].tocoo(), float(pattern.unit.sum()) / n) for pattern in tables.patterns]
        hops = np.zeros((len(self.compositions), len(patterns)))
        for row, columns in zip(hops, self.compositions, strict=True):
            distance = shortest_path(self._links(columns, rng), unweighted=True, indices=sources)
            for place, (seen, amount) in enumerate(patterns):
                travelled = float(seen.data @ distance[seen.row, seen.col])
                sent = float(seen.data.sum())  # a pattern may have entries of 0
                row[place] = amount * (travelled / sent if sent > 0 else self.far)
        return hops

    def _links(self, columns: Ints, rng: np.random.Generator) -> csr_array:
        """(n, n) links of columns of closed rings."""
        tables, n = tables_of(self.instance), self.instance.servers
        duplex = self.instance.optics == "duplex"
        tails, heads = list[int](), list[int]()
        for q in np.flatnonzero(columns).tolist():
            for turn in range(int(columns[q]) // (2 if duplex else 1)):
                for members in (tables.groups[group] for group in tables.groups_of[q]):
                    steps = totients(len(members)) if len(members) <= _GENERATED else []
                    known = turn < len(steps)
                    order = ring(members, steps[turn]) if known else rng.permutation(members).tolist()
                    tails += [*order]
                    heads += [*order[1:], order[0]]
        ends = ([*tails, *heads], [*heads, *tails]) if duplex else (tails, heads)
        return csr_array(coo_array((np.ones(len(ends[0])), ends), shape=(n, n)))

    def _joins(self, sets: frozenset[int]) -> bool:
        tables = tables_of(self.instance)
        groups = [tables.groups[group] for q in sets for group in tables.groups_of[q]]
        tails = [server for group in groups for server in group]
        heads = [group[0] for group in groups for _ in group]
        n = self.instance.servers
        links = coo_array((np.ones(len(tails)), (tails, heads)), shape=(n, n))
        return bool(connected_components(links, directed=False)[0] == 1)

    def load_bytes(self, choices: Choices) -> float:
        """Bytes on the busiest link, about."""
        tables, d = tables_of(self.instance), self.instance.degree
        reduced, moved = tables.bytes_of(choices)
        _, per_byte = self._sets
        rings = per_byte * reduced
        elsewhere = self.pattern_hops @ moved
        whole = float(rings.sum()) + elsewhere
        low = whole / d
        hops = np.where(self.compositions > 0, max(self.far, self.detour_hops), self.far)
        high = (hops @ rings + elsewhere) / d
        for _ in range(_EFFORT.bisections):
            middle = (low + high) / 2
            own = np.minimum(rings, self.compositions * middle[:, None])
            needed = own.sum(axis=1) + (hops * (rings - own)).sum(axis=1) + elsewhere
            fits = needed <= d * middle
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return float(high.min())

    def time_s(self, choices: Choices) -> float:
        """Iteration time, about; infinite where memory does not suffice."""
        tables = tables_of(self.instance)
        if not tables.fits(choices):
            return np.inf
        return self.instance.iteration_time_s(tables.compute_of(choices), self.load_bytes(choices))

    def improved(self, choices: Choices, clock: Clock, seed: int, most: int) -> Choices:
        """Local search from a choice: single layers, and the two ends of an edge, in random order.

        Parameters
        ----------
        choices : tuple of int
        clock : Clock
        seed : int
        most : int
            Choices to look at.
        """
        if not len(self.compositions):
            return choices
        rng = np.random.default_rng(seed)
        best, best_s = choices, self.time_s(choices)
        moves = list(self._moves())
        failed, left = 0, most
        while moves and failed < len(moves) and left > 0:
            for place in rng.permutation(len(moves)).tolist():
                if clock.expired or left <= 0 or failed >= len(moves):
                    return best
                trial = list(best)
                for layer, strategy in moves[place]:
                    trial[layer] = strategy
                changed = tuple(trial)
                failed += 1
                if changed == best:
                    continue
                left -= 1
                time_s = self.time_s(changed)
                if time_s < best_s * (1 - _EFFORT.better):
                    best, best_s, failed = changed, time_s, 0
        return best

    def _moves(self) -> Iterator[tuple[tuple[int, int], ...]]:
        sizes = tables_of(self.instance).sizes
        for layer, size in enumerate(sizes):
            for a in range(size):
                yield ((layer, a),)
        for source, target in self.instance.edges:
            for a, b in itertools.product(range(sizes[source]), range(sizes[target])):
                yield ((source, a), (target, b))
