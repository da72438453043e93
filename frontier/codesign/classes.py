"""Load classes: vectors of strategies with equal traffic, listed up to a time and pruned by a lower bound."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ddlopt.frontier.codesign.layer_tree import LayerTree, Sums, Weights, best_weights, is_tree
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, tables_of
from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import BOUND_MARGIN

_GRAIN = 1e-10
"""Bytes that agree in so small a part of the most bytes of a figure are the same; sums come in several orders."""
_TOGETHER = 100
"""Ways that are joined at once, before those with the same bytes are made one."""


class LoadClass(NamedTuple):
    """Choices that send the same.

    Parameters
    ----------
    reduced, moved : (group sets,), (patterns,) arrays
        Bytes as of :meth:`.Tables.bytes_of`; of identical patterns the first counts.
    compute_s : float
        Time that none of the choices computes less than.
    """

    reduced: Floats
    moved: Floats
    compute_s: float


class ClosedPart(NamedTuple):
    """Choices for all layers but some that send the same and compute as long on every server.

    Parameters
    ----------
    reduced, moved : (group sets,), (patterns,) arrays
        Bytes of these layers.
    busy_s : (n,) array
        Seconds that each server computes.
    """

    reduced: Floats
    moved: Floats
    busy_s: Floats


class _Found(NamedTuple):
    """(k, figures) bytes of ways to choose for some layers, with their least seconds and, (k, 2), what they take.

    That is memory, and of the error budget.
    """

    figures: Floats
    seconds: Floats
    taken: Floats


def classes_below(instance: CodesignInstance, most_s: float, most: int) -> list[LoadClass] | None:
    r"""What all choices send whose iterations may take less than ``most_s``.

    Where every layer's output is read by one layer at most, the layers that lead to one are a tree, of which the choice
    for that layer is all that the rest knows. With the work of one server, or of the mean of all, the time is at least
    a sum over layers and edges,

    .. math:: \sum_l t_{l a_l} + \frac 1{\mathcal{C} B} \sum_i H_i m_i ,

    as in :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound`. Going from the inputs to the
    outputs, ways that make the same bytes are one, and those are left out which are too slow even with the best for all
    other layers (dynamic programming; the least of the others is known from a pass in either direction), or take too
    much memory, or too much of the error budget, with the leanest. Of ways that make the same bytes the least time, the
    least memory and the least error are kept, which may be of several, so that these may be more than the choices that
    fit.

    Parameters
    ----------
    instance : CodesignInstance
    most_s : float
    most : int
        Ways to choose for a layer and those that lead to it, beyond which it gives up.

    Returns
    -------
    list of LoadClass, or None
        None if there are too many, or the instance is none for which the bound is a sum over a tree: with full overlap,
        or outputs that several layers read.
    """
    if not is_tree(instance):
        return None
    tree = LayerTree(tables_of(instance))
    of_all = np.eye(len(tree.rows))[-1]
    n = instance.servers
    sums = max(
        (Sums(tree, Weights(servers, of_all)) for servers in (*np.eye(n), np.full(n, 1 / n))),
        key=lambda each: each.least_s,
    )
    whole = _Listing(sums, frozenset()).whole(most_s, most)
    if whole is None:
        return None
    compute = np.maximum(whole.seconds - whole.figures @ sums.byte_s - BOUND_MARGIN * whole.seconds, 0.0)
    parts = zip(whole.figures[:, : tree.sets], whole.figures[:, tree.sets :], compute.tolist(), strict=True)
    return [LoadClass(*each) for each in parts]


def closed_parts_below(
    instance: CodesignInstance, open_layers: Collection[int], readers: Mapping[int, int], most_s: float, most: int
) -> list[ClosedPart] | None:
    """The same of all but the open layers, by bytes and by what every server computes.

    The bound has weights of servers and links for which it is largest (:func:`.best_weights`).

    Parameters
    ----------
    instance : CodesignInstance
    open_layers : collection of int
        Layers that read nothing, of which the best count whatever the others are.
    readers : mapping of int to int
        Strategies of the layers that read these.
    most_s : float
    most : int

    Returns
    -------
    list of ClosedPart, or None
    """
    if not is_tree(instance):
        return None
    tree, weights = _weighted_tree(instance)
    tree = tree.taking(readers)
    if Sums(tree, weights).least_s > most_s:
        return []
    sums = Sums(tree, best_weights(tree))
    listing = _Listing(sums, frozenset(open_layers))
    whole = listing.whole(most_s, most)
    if whole is None:
        return None
    bytes_of, width = whole.figures, tree.figures[0].shape[1]
    busy = bytes_of[:, width:][:, listing.kind] / instance.link_bandwidth_bytes_per_s
    return [
        ClosedPart(*each) for each in zip(bytes_of[:, : tree.sets], bytes_of[:, tree.sets : width], busy, strict=True)
    ]


@remembered
def _weighted_tree(instance: CodesignInstance) -> tuple[LayerTree, Weights]:
    tree = LayerTree(tables_of(instance))
    return tree, best_weights(tree)


class _Listing:
    """Dynamic programming over the tree; with open layers also by what servers compute, in bytes of a link's time."""

    def __init__(self, sums: Sums, open_layers: frozenset[int]) -> None:
        self.sums, self.tree, self.open = sums, sums.tree, open_layers
        self.columns = list(self.tree.figures)
        if open_layers:
            closed = [layer for layer in range(len(self.columns)) if layer not in open_layers]
            busy = {layer: self.tree.busy_s(layer) for layer in closed}
            runs = np.concatenate([each > 0 for each in busy.values()])
            _, first, self.kind = np.unique(runs, axis=1, return_index=True, return_inverse=True)
            self.kind = self.kind.ravel()
            bandwidth = self.tree.instance.link_bandwidth_bytes_per_s
            for layer in closed:
                self.columns[layer] = np.hstack([self.columns[layer], busy[layer][:, first] * bandwidth])

    def whole(self, most_s: float, most: int) -> _Found | None:
        """Ways to choose for all layers that are not open; None if there are more than ``most``."""
        sums, tree, limit = self.sums, self.tree, most_s * (1 + BOUND_MARGIN)
        most_taken = self._most_taken()
        ways: dict[int, list[_Found]] = {}
        width = max(each.shape[1] for each in self.columns)
        whole = _Found(np.zeros((1, width)), np.zeros(1), np.zeros((1, 2)))
        left, lean = sums.least_s, sum((sums.lean[layer] for layer in tree.ends), np.zeros(2))
        room = most_taken - lean
        for layer in tree.instance.order:
            if layer in self.open:
                continue
            before = sums.before(layer)
            ways[layer] = []
            for a in range(tree.tables.sizes[layer]):
                found = _Found(self.columns[layer][[a]], sums.own[layer][[a]], sums.taken[layer][[a]])
                others = float(sums.rest[layer][a]) + sum(float(each[a]) for each in before)
                beside = room + sums.taken[layer].min(axis=0)
                for (source, edge), least in zip(tree.inputs[layer], before, strict=True):
                    others -= float(least[a])
                    beside = beside + sums.lean[source]
                    if source in self.open:
                        found = _Found(found.figures, found.seconds + least[a], found.taken + sums.lean[source])
                    else:
                        found = _joined(found, self._moved(ways[source], edge, a), limit - others, beside, most)
                    if len(found.seconds) > most:
                        return None
                ways[layer].append(_within(found, limit - float(sums.rest[layer][a]), room + sums.lean[layer]))
            if layer in tree.ends:
                left -= float(sums.until[layer].min())
                lean = lean - sums.lean[layer]
                whole = _joined(whole, _together(ways[layer]), limit - left, most_taken - lean, most)
        return None if len(whole.seconds) > most else whole

    def _most_taken(self) -> Floats:
        """(2,) memory and error at most, with room for what sums in another order differ by."""
        instance, errors = self.tree.instance, self.tree.tables.errors
        budget = instance.error_budget
        slack = BOUND_MARGIN * sum(float(each.max()) for each in errors)
        return np.array(
            [
                instance.most_memory_bytes * (1 + BOUND_MARGIN),
                math.inf if budget is None else budget * (1 + BOUND_MARGIN) + slack,
            ]
        )

    def _moved(self, ways: Sequence[_Found], edge: int, a: int) -> _Found:
        """Ways to choose for a source, with what moves on to a strategy of its reader."""
        found, tree = [], self.tree
        for b, each in enumerate(ways):
            figures, pattern = each.figures.copy(), int(tree.tables.moves[edge][b, a])
            if pattern >= 0:
                figures[:, tree.same[tree.sets + pattern]] += tree.tables.edge_bytes[edge]
            found.append(_Found(figures, each.seconds + self.sums.edges[edge][b, a], each.taken))
        return _together(found)


def _together(found: Sequence[_Found]) -> _Found:
    return _Found(*map(np.concatenate, zip(*found, strict=True)))


def _within(found: _Found, seconds: float, taken: Floats) -> _Found:
    few = (found.seconds <= seconds) & (found.taken <= taken).all(axis=1)
    return _Found(found.figures[few], found.seconds[few], found.taken[few])


def _joined(one: _Found, other: _Found, seconds: float, taken: Floats, most: int) -> _Found:
    """One of each, within the limits and those with the same bytes once; it may stop at more than ``most``."""
    other = _least(other)
    order = np.argsort(other.seconds, kind="stable")
    other = _Found(other.figures[order], other.seconds[order], other.taken[order])
    many = np.searchsorted(other.seconds, seconds - one.seconds, side="right").tolist()
    found = _Found(np.zeros((0, other.figures.shape[1])), np.zeros(0), np.zeros((0, 2)))
    for begin in range(0, len(many), _TOGETHER):
        rows = range(begin, min(begin + _TOGETHER, len(many)))
        parts = [_Found(*(mine[i] + each[: many[i]] for mine, each in zip(one, other, strict=True))) for i in rows]
        found = _least(_within(_together([found, *parts]), seconds, taken))
        if len(found.seconds) > most:
            break
    return found


def _least(found: _Found) -> _Found:
    """Those with the same bytes once, with the least time, memory and error of them."""
    if not len(found.seconds):
        return found
    grain = _GRAIN * float(found.figures.max(initial=0.0)) or 1.0
    _, first, inverse = np.unique(np.round(found.figures / grain), axis=0, return_index=True, return_inverse=True)
    seconds, taken = np.full(len(first), math.inf), np.full((len(first), 2), math.inf)
    np.minimum.at(seconds, inverse.ravel(), found.seconds)
    np.minimum.at(taken, inverse.ravel(), found.taken)
    return _Found(found.figures[first], seconds, taken)
