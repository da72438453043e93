"""Instances whose layers are a tree: sums over layers and edges that are least for every choice at once."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, Tables
from ddlopt.models.tolerances import TINY

_DIGITS = 12
"""In which parts of patterns are compared."""


@dataclass(frozen=True)
class Effort:
    """When the search for weights ends."""

    steps: int = 200
    """Cutting planes at most: most instances take half as many."""
    close: float = 1e-5
    """Part of the least sum that the best weights may gain: a tenth of the gap at which methods stop by default."""
    near: float = 0.3
    """Part of the way from the best weights to those that the planes propose; every third step goes all the way."""


_EFFORT = Effort()


class Weights(NamedTuple):
    """How much servers count for compute time, and rows of :attr:`.LayerTree.rows` for communication; sums are 1."""

    servers: Floats
    rows: Floats


def is_tree(instance: CodesignInstance) -> bool:
    """Whether every output is read by one layer at most, and communication adds to compute time."""
    sources = [source for source, _ in instance.edges]
    return instance.overlap == "none" and len(set(sources)) == len(sources)


class LayerTree:
    """Layers, what leads to them, and bytes of their strategies.

    Parameters
    ----------
    tables : Tables
        Of an instance that :func:`is_tree`.

    Attributes
    ----------
    figures : list of (strategies, sets + patterns) arrays
        Bytes by layer; of identical patterns the first counts, see ``same``.
    rows : (rows, sets + patterns) array
        Seconds that a byte takes at least: of each server's links, and last of all links together.
    inputs : list of lists of (layer, edge)
    ends : set of int
        Layers that nothing reads.
    only : mapping of int to int
        Strategies that some layers take.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables, self.instance = tables, tables.instance
        demand = demand_of(tables)
        self.sets = len(tables.groups_of)
        self.same = _first_identical(tables)
        layers = range(len(tables.sizes))
        self.figures = [self._figures(layer) for layer in layers]
        rows = np.concatenate([demand.server_rows, demand.hop_bytes[None] / demand.capacity])
        self.rows = rows / self.instance.link_bandwidth_bytes_per_s
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in layers]
        for edge, (source, target) in enumerate(self.instance.edges):
            self.inputs[target].append((source, edge))
        self.ends = set(layers) - {source for source, _ in self.instance.edges}
        self.only: Mapping[int, int] = {}

    def taking(self, only: Mapping[int, int]) -> "LayerTree":
        """The same where some layers take these strategies."""
        other = copy(self)
        other.only = only
        return other

    def _figures(self, layer: int) -> Floats:
        rows = np.zeros((self.tables.sizes[layer], self.sets + len(self.tables.patterns)))
        for a, row in enumerate(rows):
            for figure, amount in self.tables.own[layer][a].items():
                row[self.same[figure]] += amount
        return rows

    @cached_property
    def never_s(self) -> float:
        """More seconds than any choice takes."""
        own = sum(float(each.max()) for each in self.tables.compute_s)
        sent = sum(float((each @ self.rows.T).max(initial=0.0)) for each in self.figures)
        return 2 * (own + sent + float(self.tables.edge_bytes.sum()) * float(self.rows.max(initial=0.0)))

    def busy_s(self, layer: int) -> Floats:
        """(strategies, n) seconds that each server computes."""
        busy = np.zeros((self.tables.sizes[layer], self.instance.servers))
        for a, servers in enumerate(self.tables.runs_on[layer]):
            busy[a, servers] = self.tables.compute_s[layer][a]
        return busy


class Sums:
    r"""The least of :math:`\sum_s w_s C_s + \sum_i v_i r_i f`, with weights w, v of servers and rows, bytes f.

    Attributes
    ----------
    own, edges : lists of (strategies,) and (strategies of the source, of the target) arrays
        Seconds by layer and by edge.
    until, rest : dict of int to (strategies,) array
        The least of a layer and those before it, and of all others.
    least_s : float
        No choice's iteration takes less.
    taken : list of (strategies, 2) arrays
        Bytes of memory by layer, with the same weights of servers, and what compression loses.
    lean : dict of int to (2,) array
        The least of both of a layer and those before it.
    """

    def __init__(self, tree: LayerTree, weights: Weights) -> None:
        self.tree = tree
        tables, sets, same = tree.tables, tree.sets, tree.same
        self.byte_s = weights.rows @ tree.rows
        self.own = [
            tables.compute_s[layer] * [float(weights.servers[servers].sum()) for servers in tables.runs_on[layer]]
            + tree.figures[layer] @ self.byte_s
            for layer in range(len(tables.sizes))
        ]
        for layer, taken in tree.only.items():
            self.own[layer] += np.where(np.arange(tables.sizes[layer]) == taken, 0.0, tree.never_s)
        of_moves = np.append(self.byte_s[same[sets:]], 0.0)  # the last one is of what is not sent
        self.edges = [
            size * of_moves[moves] for moves, size in zip(tables.moves, tables.edge_bytes.tolist(), strict=True)
        ]
        held = [
            tables.memory_bytes[layer] * [float(weights.servers[servers].sum()) for servers in tables.runs_on[layer]]
            for layer in range(len(tables.sizes))
        ]
        self.taken = [np.stack(both, axis=1) for both in zip(held, tables.errors, strict=True)]
        self._pass_both_ways()

    def _pass_both_ways(self) -> None:
        order, inputs = self.tree.instance.order, self.tree.inputs
        self.until: dict[int, Floats] = {}
        self.lean: dict[int, Floats] = {}
        for layer in order:
            self.until[layer] = self.own[layer] + sum(self.before(layer))
            self.lean[layer] = self.taken[layer].min(axis=0) + sum(self.lean[source] for source, _ in inputs[layer])
        of_ends = {layer: float(self.until[layer].min()) for layer in self.tree.ends}
        self.least_s = sum(of_ends.values())
        self.rest = {layer: np.full(len(self.own[layer]), self.least_s - own) for layer, own in of_ends.items()}
        for layer in reversed(order):
            before = self.before(layer)
            for place, (source, edge) in enumerate(inputs[layer]):
                others = self.rest[layer] + self.own[layer] + sum(before) - before[place]
                self.rest[source] = (self.edges[edge] + others).min(axis=1)

    def before(self, layer: int) -> list[Floats]:
        """The least of each input's part, by the layer's strategy."""
        return [
            (self.until[source][:, None] + self.edges[edge]).min(axis=0) for source, edge in self.tree.inputs[layer]
        ]

    def choices(self) -> tuple[int, ...]:
        """Choices of the least sum."""
        chosen = {layer: int(self.until[layer].argmin()) for layer in self.tree.ends}
        for layer in reversed(self.tree.instance.order):
            for source, edge in self.tree.inputs[layer]:
                chosen[source] = int((self.until[source] + self.edges[edge][:, chosen[layer]]).argmin())
        return tuple(chosen[layer] for layer in range(len(chosen)))


def best_weights(tree: LayerTree) -> Weights:
    """Weights for which the least of :class:`Sums` is largest, or near that, by cutting planes.

    That is the linear relaxation of
    :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound`, as the local polytope of a tree is
    integral. Any weights give a bound, so that nothing depends on how near they are.
    """
    n, k = tree.instance.servers, len(tree.rows)
    best = weights = Weights(np.full(n, 1 / n), np.eye(k)[-1])
    least_s = -np.inf
    planes: list[Floats] = []
    sums_are_1 = np.array([[1.0] * n + [0.0] * (k + 1), [0.0] * n + [1.0] * k + [0.0]])
    for step in range(_EFFORT.steps):
        sums = Sums(tree, weights)
        if sums.least_s > least_s:
            best, least_s = weights, sums.least_s
        choices = sums.choices()
        busy = sum(tree.busy_s(layer)[a] for layer, a in enumerate(choices))
        figures = np.concatenate(tree.tables.bytes_of(choices))
        planes.append(np.concatenate([busy, tree.rows @ figures]))
        unit = max(float(planes[0].max()), TINY)
        answer = linprog(
            [0.0] * (n + k) + [-1.0],
            A_ub=np.column_stack([-np.array(planes) / unit, np.ones(len(planes))]),
            b_ub=np.zeros(len(planes)),
            A_eq=sums_are_1,
            b_eq=[1.0, 1.0],
            bounds=[(0, None)] * (n + k) + [(None, None)],
            method="highs",
        )
        if answer.x is None or -answer.fun * unit - least_s <= _EFFORT.close * least_s:
            break
        share = 1.0 if step % 3 == 2 else _EFFORT.near
        servers, rows = np.maximum(answer.x[:n], 0), np.maximum(answer.x[n : n + k], 0)
        servers, rows = (
            share * new / new.sum() + (1 - share) * old for new, old in zip((servers, rows), best, strict=True)
        )
        weights = Weights(servers / servers.sum(), rows / rows.sum())
    return best


def _first_identical(tables: Tables) -> npt.NDArray[np.int64]:
    """(sets + patterns,) the figure itself, for patterns the first with the same parts."""
    sets = len(tables.groups_of)
    known: dict[bytes, int] = {}
    parts = [np.round(pattern.unit.toarray(), _DIGITS).tobytes() for pattern in tables.patterns]
    same = [known.setdefault(part, sets + place) for place, part in enumerate(parts)]
    return np.array([*range(sets), *same], dtype=np.int64)
