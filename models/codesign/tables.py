"""What formulations, bounds and heuristics read of an instance, as arrays.

The two planes of the problem meet in a few figures only: the gradient bytes of every *set of groups*, and the bytes of
every *pattern*, a pair of layouts between which activations are moved. Both are linear in the strategies chosen.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from ddlopt.models.codesign.instance import CodesignInstance, Layer, Layout, Strategy
from ddlopt.models.remembered import remembered

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pattern:
    """Model-parallel traffic up to a factor.

    Parameters
    ----------
    name : str
    unit : sparse (n, n) array
        Bytes from row to column for each byte of the pattern, zero diagonal. Of two layouts: the part of the activation
        that goes from s to t forward, plus the part whose gradient does so backward; so it is symmetric. Of traffic
        that a strategy names itself: divided by a power of two, so that the largest is from 1/2 to 1.
    """

    name: str
    unit: csr_array

    @cached_property
    def sent(self) -> Floats:
        """(n,) parts that each server sends."""
        return np.asarray(self.unit.sum(axis=1))

    @cached_property
    def received(self) -> Floats:
        """(n,) parts that each server receives."""
        return np.asarray(self.unit.sum(axis=0))


class Tables:
    """Times, memory, bytes and errors of every strategy of every layer, and bytes of every pair along an edge.

    Attributes
    ----------
    instance : CodesignInstance
    sizes : tuple of int
        Number of strategies of each layer.
    compute_s, memory_bytes : tuple of (strategies,) arrays
        By layer: on each server that runs it.
    errors : tuple of (strategies,) arrays
        By layer: what compression loses.
    runs_on : tuple of tuple of int arrays
        By layer and strategy: the servers.
    groups : tuple of tuple of int
        Distinct groups, large ones first, then by members; the groups of every job come in this order.
    groups_of : tuple of tuple of int
        By group set: indices in ``groups``.
    patterns : tuple of Pattern
    own : tuple of tuple of dict
        By layer and strategy: bytes by *figure*. The first figures are group sets, by index in the instance's
        ``group_sets``: gradient bytes in each group. The others are patterns, by ``len(groups_of)`` more than their
        index: the power of two by which the traffic that the strategy names itself is divided.
    moves : tuple of int arrays
        By edge, (strategies of its source, strategies of its target): index in ``patterns``, -1 where nothing moves.
    edge_bytes : (edges,) array
        Bytes of the pattern where something moves: the output of the source.
    """

    def __init__(self, instance: CodesignInstance) -> None:
        layers = instance.layers
        self.instance = instance
        self.sizes = tuple(len(layer.strategies) for layer in layers)
        self.compute_s = tuple(
            np.array([instance.compute_s(place, a) for a in range(size)]) for place, size in enumerate(self.sizes)
        )
        self.memory_bytes = tuple(np.array([each.memory_bytes for each in layer.strategies]) for layer in layers)
        self.errors = tuple(np.array([each.error for each in layer.strategies]) for layer in layers)
        self.runs_on = tuple(
            tuple(np.array(sorted(instance.layouts[each.writes].servers)) for each in layer.strategies)
            for layer in layers
        )
        self.groups = tuple(
            sorted({group for groups in instance.group_sets for group in groups}, key=lambda each: (-len(each), each))
        )
        place_of = {group: place for place, group in enumerate(self.groups)}
        self.groups_of = tuple(tuple(place_of[group] for group in groups) for groups in instance.group_sets)
        known: dict[tuple[object, ...], int] = {}
        patterns: list[Pattern] = []

        def place(key: tuple[object, ...], name: str, unit: csr_array) -> int:
            if key not in known:
                known[key] = len(patterns) if unit.nnz else -1
                if unit.nnz:
                    patterns.append(Pattern(name, unit))
            return known[key]

        n = instance.servers

        def own(layer: Layer, strategy: Strategy) -> dict[int, float]:
            total: dict[int, float] = {}
            for reduction in strategy.reductions:
                total[reduction.groups] = total.get(reduction.groups, 0.0) + reduction.bytes
            sent = _entries(strategy.traffic, n)
            if sent.nnz:
                # Parts of a size like those of layouts: where they are bytes, programs count in what tolerances drop.
                amount = 2.0 ** math.frexp(float(sent.max()))[1]
                pattern = place((strategy.traffic,), f"{layer.name}, {strategy.name}", csr_array(sent / amount))
                total[len(self.groups_of) + pattern] = amount
            return total

        self.own = tuple(tuple(own(layer, each) for each in layer.strategies) for layer in layers)
        moves = []
        for source, target in instance.edges:
            table = np.full((self.sizes[source], self.sizes[target]), -1)
            for a, before in enumerate(layers[source].strategies):
                for b, after in enumerate(layers[target].strategies):
                    assert after.reads is not None
                    key = (before.writes, after.reads)
                    if key not in known:
                        unit = moved_parts(instance.layouts[before.writes], instance.layouts[after.reads], n)
                        place(key, f"layouts {before.writes} to {after.reads}", csr_array(unit + unit.T))
                    table[a, b] = known[key]
            moves.append(table)
        self.moves = tuple(moves)
        self.patterns = tuple(patterns)
        self.edge_bytes = np.array([layers[source].output_bytes for source, _ in instance.edges])

    def moved_figures(self, edge: int) -> list[int]:
        """Figures of the patterns that move along an edge with some strategies of its ends."""
        moves = self.moves[edge]
        return [len(self.groups_of) + pattern for pattern in np.unique(moves[moves >= 0]).tolist()]

    def bytes_of(self, choices: Sequence[int]) -> tuple[Floats, Floats]:
        """(group sets,) gradient bytes in each group of a set and (patterns,) bytes of a choice of strategies."""
        figures = np.zeros(len(self.groups_of) + len(self.patterns))
        reduced, moved = np.split(figures, [len(self.groups_of)])
        for layer, a in enumerate(choices):
            for figure, amount in self.own[layer][a].items():
                figures[figure] += amount
        for edge, (source, target) in enumerate(self.instance.edges):
            pattern = self.moves[edge][choices[source], choices[target]]
            if pattern >= 0:
                moved[pattern] += self.edge_bytes[edge]
        return reduced, moved

    def group_bytes(self, reduced: Floats) -> Floats:
        """(groups,) gradient bytes of every group, given those of every set."""
        total = np.zeros(len(self.groups))
        for groups, amount in zip(self.groups_of, reduced.tolist(), strict=True):
            total[list(groups)] += amount
        return total

    def compute_of(self, choices: Sequence[int]) -> float:
        """Compute time of a choice: the busiest server's, or the longest path's through the layers."""
        path = self.path_s([times[a] for times, a in zip(self.compute_s, choices, strict=True)])
        return max(float(self.busy_of(choices).max()), path)

    def busy_of(self, choices: Sequence[int]) -> Floats:
        """(n,) time that a choice takes on each server."""
        return self._on_servers(self.compute_s, choices)

    def memory_of(self, choices: Sequence[int]) -> Floats:
        """(n,) bytes that a choice takes on each server."""
        return self._on_servers(self.memory_bytes, choices)

    def _on_servers(self, amounts: Sequence[Floats], choices: Sequence[int]) -> Floats:
        """(n,) sums of what strategies take, by layer and strategy, on each of the servers that run them."""
        total = np.zeros(self.instance.servers)
        for layer, a in enumerate(choices):
            total[self.runs_on[layer][a]] += amounts[layer][a]
        return total

    def path_s(self, times: Sequence[float]) -> float:
        """The longest path through the layers, which take these (layers,) times."""
        done = [0.0] * len(times)
        for layer in self.instance.order:
            done[layer] = max((done[source] for source in self._before[layer]), default=0.0) + float(times[layer])
        return max(done)

    @cached_property
    def least_path_s(self) -> float:
        """The longest path through the layers, each with its fastest strategy: no choice computes less."""
        return self.path_s([float(times.min()) for times in self.compute_s])

    @cached_property
    def _before(self) -> list[list[int]]:
        """By layer: those that it reads."""
        before: list[list[int]] = [[] for _ in self.sizes]
        for source, target in self.instance.edges:
            before[target].append(source)
        return before

    def error_of(self, choices: Sequence[int]) -> float:
        """What a choice loses by compression."""
        return sum(float(errors[a]) for errors, a in zip(self.errors, choices, strict=True))

    def fits(self, choices: Sequence[int]) -> bool:
        """Whether a choice of strategies fits into the memory of every server, and loses no more than it may."""
        if not bool(self.memory_of(choices).max() <= self.instance.most_memory_bytes):
            return False
        return self.error_of(choices) <= self.instance.most_error


def moved_parts(written: Layout, read: Layout, servers: int) -> csr_array:
    """(n, n) parts of an activation that must go from the server that wrote them to the one that reads them."""
    rows, columns, parts = [], [], []
    for i, i_read, batch in _overlaps(written.batch_parts, read.batch_parts):
        for j, j_read, channel in _overlaps(written.channel_parts, read.channel_parts):
            source = written.servers[i * written.channel_parts + j]
            target = read.servers[i_read * read.channel_parts + j_read]
            if source != target:
                rows.append(source)
                columns.append(target)
                parts.append(batch * channel)
    return csr_array(coo_array((parts, (rows, columns)), shape=(servers, servers)))


@cache
def _overlaps(parts: int, others: int) -> tuple[tuple[int, int, float], ...]:
    """(part, other part, length) of the pieces that cutting a unit length both ways makes, longest first cut apart."""
    cuts = sorted({Fraction(i, parts) for i in range(parts + 1)} | {Fraction(i, others) for i in range(others + 1)})
    return tuple((int(a * parts), int(a * others), float(b - a)) for a, b in itertools.pairwise(cuts))


def _entries(traffic: tuple[tuple[int, int, float], ...], servers: int) -> csr_array:
    rows, columns, amounts = zip(*traffic, strict=True) if traffic else ((), (), ())
    return csr_array(coo_array((amounts, (rows, columns)), shape=(servers, servers), dtype=np.float64))


@remembered
def tables_of(instance: CodesignInstance) -> Tables:
    """Times, memory and bytes of all strategies of an instance as arrays; made once."""
    return Tables(instance)
