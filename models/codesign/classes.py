"""Choices of strategies by what they send: all that may take less than some time, those that send the same as one."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, Tables, tables_of
from ddlopt.models.tolerances import BOUND_MARGIN

_GRAIN = 1e-10
"""Bytes that agree in so small a part of the most bytes of a figure are the same; sums come in several orders."""
_DIGITS = 12
"""Parts of a pattern are one if they agree in so many."""
_TOGETHER = 100
"""Ways that are joined at once, before those with the same bytes are made one."""


class SentAlike(NamedTuple):
    """Choices that send the same.

    Parameters
    ----------
    reduced, moved : (group sets,), (patterns,) arrays
        Bytes as of :meth:`.Tables.bytes_of`; patterns that are alike count as the first.
    compute_s : float
        Time that none of the choices computes less than.
    """

    reduced: Floats
    moved: Floats
    compute_s: float


class _Found(NamedTuple):
    """(k, figures) bytes of ways to choose for some layers, with their least seconds and bytes of memory."""

    figures: Floats
    seconds: Floats
    memory: Floats


def classes_below(instance: CodesignInstance, most_s: float, most: int) -> list[SentAlike] | None:
    r"""What all choices send whose iterations may take less than ``most_s``.

    Where every layer's output is read by one layer at most, the layers that lead to one are a tree, of which the choice
    for that layer is all that the rest knows. With the work of one server, or of the mean of all, the time is at least
    a sum over layers and edges,

    .. math:: \sum_l t_{l a_l} + \frac 1{\mathcal{C} B} \sum_i H_i m_i ,

    as in :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound`. Going from the inputs to the
    outputs, ways that make the same bytes are one, and those are left out which are too slow even with the best for all
    other layers (dynamic programming; the least of the others is known from a pass in either direction), or take too
    much memory with the leanest. Of ways that make the same bytes the least time and the least memory are kept, which
    may be of two, so that these may be more than the choices that fit.

    Parameters
    ----------
    instance : CodesignInstance
    most_s : float
    most : int
        Ways to choose for a layer and those that lead to it, beyond which it gives up.

    Returns
    -------
    list of SentAlike, or None
        None if there are too many, or the instance is none for which the bound is a sum over a tree: with full overlap,
        or outputs that several layers read.
    """
    sources = [source for source, _ in instance.edges]
    if instance.overlap != "none" or len(set(sources)) < len(sources):
        return None
    tables = tables_of(instance)
    trees = [_Tree(tables, weights) for weights in _servers_that_count(instance.servers)]
    return max(trees, key=lambda tree: tree.least_s).classes(most_s, most)


def _servers_that_count(servers: int) -> list[Floats]:
    return [*np.eye(servers), np.full(servers, 1 / servers)]


class _Tree:
    """Sums over layers and edges, with the work of servers by these weights."""

    def __init__(self, tables: Tables, weights: Floats) -> None:
        self.tables, self.instance = tables, tables.instance
        demand = demand_of(tables)
        self.sets = len(tables.groups_of)
        self.hop_s = demand.hop_bytes / (demand.capacity * self.instance.link_bandwidth_bytes_per_s)
        self.same = _first_alike(tables)
        layers = range(len(tables.sizes))
        self.figures = [self._figures(layer) for layer in layers]
        self.own = [
            tables.compute_s[layer] * [float(weights[servers].sum()) for servers in tables.runs_on[layer]]
            + self.figures[layer] @ self.hop_s
            for layer in layers
        ]
        self.edges = [
            np.where(moves >= 0, size * self.hop_s[self.sets + np.maximum(moves, 0)], 0.0)
            for moves, size in zip(tables.moves, tables.edge_bytes.tolist(), strict=True)
        ]
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in layers]
        for edge, (source, target) in enumerate(self.instance.edges):
            self.inputs[target].append((source, edge))
        self.memory = [
            tables.memory_bytes[layer] * [float(weights[servers].sum()) for servers in tables.runs_on[layer]]
            for layer in layers
        ]
        self.limit = self.instance.device.memory_bytes or math.inf
        self.ends = set(layers) - {source for source, _ in self.instance.edges}
        self._pass_both_ways()

    def _figures(self, layer: int) -> Floats:
        rows = np.zeros((self.tables.sizes[layer], self.sets + len(self.tables.patterns)))
        for a, row in enumerate(rows):
            for groups, amount in self.tables.reductions[layer][a].items():
                row[groups] += amount
            for pattern, amount in self.tables.sent[layer][a].items():
                row[self.same[self.sets + pattern]] += amount
        return rows

    def _pass_both_ways(self) -> None:
        """``until``: the least of a layer and those before it, ``rest``: of all others, by the layer's strategy.

        ``lean``: the least memory of a layer and those before it.
        """
        order = self.instance.order
        self.until: dict[int, Floats] = {}
        self.lean: dict[int, float] = {}
        for layer in order:
            self.until[layer] = self.own[layer] + sum(self._before(layer))
            self.lean[layer] = float(self.memory[layer].min()) + sum(self.lean[i] for i, _ in self.inputs[layer])
        of_ends = {layer: float(self.until[layer].min()) for layer in self.ends}
        self.least_s = sum(of_ends.values())
        self.rest = {layer: np.full(len(self.own[layer]), self.least_s - own) for layer, own in of_ends.items()}
        for layer in reversed(order):
            before = self._before(layer)
            for place, (source, edge) in enumerate(self.inputs[layer]):
                others = self.rest[layer] + self.own[layer] + sum(before) - before[place]
                self.rest[source] = (self.edges[edge] + others).min(axis=1)

    def _before(self, layer: int) -> list[Floats]:
        """The least of each input's part, by the layer's strategy."""
        return [(self.until[source][:, None] + self.edges[edge]).min(axis=0) for source, edge in self.inputs[layer]]

    def classes(self, most_s: float, most: int) -> list[SentAlike] | None:
        """See :func:`classes_below`."""
        limit, memory = most_s * (1 + BOUND_MARGIN), self.limit * (1 + BOUND_MARGIN)
        ways: dict[int, list[_Found]] = {}
        whole = _Found(np.zeros((1, len(self.hop_s))), np.zeros(1), np.zeros(1))
        left, lean = self.least_s, sum(self.lean[layer] for layer in self.ends)
        room = memory - lean
        for layer in self.instance.order:
            before = self._before(layer)
            ways[layer] = []
            for a in range(self.tables.sizes[layer]):
                found = _Found(self.figures[layer][[a]], self.own[layer][[a]], self.memory[layer][[a]])
                others = float(self.rest[layer][a]) + sum(float(each[a]) for each in before)
                beside = room + float(self.memory[layer].min())
                for (source, edge), least in zip(self.inputs[layer], before, strict=True):
                    others -= float(least[a])
                    beside += self.lean[source]
                    found = _joined(found, self._moved(ways[source], edge, a), limit - others, beside, most)
                    if len(found.seconds) > most:
                        return None
                ways[layer].append(_within(found, limit - float(self.rest[layer][a]), room + self.lean[layer]))
            if layer in self.ends:
                left -= float(self.until[layer].min())
                lean -= self.lean[layer]
                whole = _joined(whole, _together(ways[layer]), limit - left, memory - lean, most)
        if len(whole.seconds) > most:
            return None
        compute = np.maximum(whole.seconds - whole.figures @ self.hop_s - BOUND_MARGIN * whole.seconds, 0.0)
        parts = zip(whole.figures[:, : self.sets], whole.figures[:, self.sets :], compute.tolist(), strict=True)
        return [SentAlike(*each) for each in parts]

    def _moved(self, ways: Sequence[_Found], edge: int, a: int) -> _Found:
        """Ways to choose for a source, with what moves on to a strategy of its reader."""
        found = []
        for b, each in enumerate(ways):
            figures, pattern = each.figures.copy(), int(self.tables.moves[edge][b, a])
            if pattern >= 0:
                figures[:, self.same[self.sets + pattern]] += self.tables.edge_bytes[edge]
            found.append(_Found(figures, each.seconds + self.edges[edge][b, a], each.memory))
        return _together(found)


def _together(found: Sequence[_Found]) -> _Found:
    return _Found(*map(np.concatenate, zip(*found, strict=True)))


def _within(found: _Found, seconds: float, memory: float) -> _Found:
    few = (found.seconds <= seconds) & (found.memory <= memory)
    return _Found(found.figures[few], found.seconds[few], found.memory[few])


def _joined(one: _Found, other: _Found, seconds: float, memory: float, most: int) -> _Found:
    """One of each, within the limits and those with the same bytes once; it may stop at more than ``most``."""
    other = _least(other)
    order = np.argsort(other.seconds, kind="stable")
    other = _Found(other.figures[order], other.seconds[order], other.memory[order])
    many = np.searchsorted(other.seconds, seconds - one.seconds, side="right").tolist()
    found = _Found(np.zeros((0, other.figures.shape[1])), np.zeros(0), np.zeros(0))
    for begin in range(0, len(many), _TOGETHER):
        rows = range(begin, min(begin + _TOGETHER, len(many)))
        parts = [_Found(*(mine[i] + each[: many[i]] for mine, each in zip(one, other, strict=True))) for i in rows]
        found = _least(_within(_together([found, *parts]), seconds, memory))
        if len(found.seconds) > most:
            break
    return found


def _least(found: _Found) -> _Found:
    """Those with the same bytes once, with the least time and the least memory of them."""
    if not len(found.seconds):
        return found
    grain = _GRAIN * float(found.figures.max(initial=0.0)) or 1.0
    _, first, inverse = np.unique(np.round(found.figures / grain), axis=0, return_index=True, return_inverse=True)
    least = [np.full(len(first), math.inf) for _ in range(2)]
    for each, values in zip(least, (found.seconds, found.memory), strict=True):
        np.minimum.at(each, inverse.ravel(), values)
    return _Found(found.figures[first], *least)


def _first_alike(tables: Tables) -> npt.NDArray[np.int64]:
    """(sets + patterns,) the figure itself, for patterns the first with the same parts."""
    sets = len(tables.groups_of)
    known: dict[bytes, int] = {}
    parts = [np.round(pattern.unit.toarray(), _DIGITS).tobytes() for pattern in tables.patterns]
    same = [known.setdefault(part, sets + place) for place, part in enumerate(parts)]
    return np.array([*range(sets), *same], dtype=np.int64)
