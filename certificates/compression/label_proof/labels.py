"""Labels that whole prices leave alive: see :mod:`ddlopt.certificates.compression.label_proof`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ddlopt.certificates.compression.label_proof.lanes import LARGEST, Arcs, Ints, Lanes, Marks, arcs_of
from ddlopt.models.errors import RefutedError

Price = tuple[Ints, int]
"""λ (lanes, n) and μ."""

MOST_PRICE = 2**26
"""Of μ and of all λ together."""
_SATURATED = 2**61
"""No cheapest way is kept dearer, which is beyond whatever it is compared with."""
_BLOCK = 512
"""Labels that are compared with as many at once."""
_MOST_LABELS = 2**19
"""Of a gradient: honest proofs have thousands."""


class TooManyError(RefutedError):
    """More labels are alive than are looked at; with other prices or in parts there may be fewer."""


class Ways:
    """Messages and prices: which of them are on a way that is cheap enough at all prices, and what is left from each.

    Attributes
    ----------
    late : (prices, lanes, n + 1) array
        B.
    rest : (prices, n + 1) array
        V.
    limits : (prices,) array
        A plan of at least so much is not better than the claim.
    """

    def __init__(self, lanes: Lanes, arcs: Arcs, prices: Sequence[Price]) -> None:
        n = len(lanes.ready)
        self.mu = np.array([mu for _, mu in prices], dtype=np.int64)
        self.late = np.zeros((len(prices), len(lanes.busy), n + 1), dtype=np.int64)
        for row, (lambdas, _) in zip(self.late, prices, strict=True):
            row[:, 1:] = lambdas.cumsum(axis=1)
        self.lost = self.late.sum(axis=1)
        whole = self.lost[:, -1]
        self.early = whole[:, None] - self.lost
        weights = whole if lanes.timed else self.mu
        self.limits = whole * lanes.time_most + self.mu * (lanes.error_most or 0) + (weights == 0)
        self.arcs, before = arcs, -1
        while len(self.arcs.tail) != before:  # what is out makes the cheapest ways of the others dearer
            before = len(self.arcs.tail)
            self._leave_out()

    def _leave_out(self) -> None:
        """Leave out messages on no way below all limits."""
        arcs, n = self.arcs, self.late.shape[2] - 1
        costs = (
            (self.lost[:, arcs.head] - self.lost[:, arcs.tail]) * arcs.ready
            + self.early[:, arcs.tail] * arcs.encode
            + (self.late[:, :, arcs.head] * arcs.busy).sum(axis=1)
            + self.mu[:, None] * arcs.error
        )
        nodes = np.arange(n + 2)
        by_tail = np.searchsorted(arcs.tail, nodes)
        self.rest = np.full((len(costs), n + 1), _SATURATED)
        self.rest[:, n] = 0
        for node in range(n - 1, -1, -1):
            leaving = slice(by_tail[node], by_tail[node + 1])
            on = costs[:, leaving] + self.rest[:, arcs.head[leaving]]
            self.rest[:, node] = on.min(axis=1, initial=_SATURATED)
        there = np.full((len(costs), n + 1), _SATURATED)
        there[:, 0] = 0
        order = np.argsort(arcs.head, kind="stable")
        by_head = np.searchsorted(arcs.head[order], nodes)
        for node in range(1, n + 1):
            into = order[by_head[node] : by_head[node + 1]]
            there[:, node] = (costs[:, into] + there[:, arcs.tail[into]]).min(axis=1, initial=_SATURATED)
        # Each of the three is at most 2**61, so that this is below 2**63.
        cheap = there[:, arcs.tail] + np.minimum(costs, _SATURATED) + self.rest[:, arcs.head] < self.limits[:, None]
        self.arcs = arcs.of(cheap.all(axis=0))

    def bounds(self, k: int, node: int, labels: Ints) -> Ints:
        """What the k-th price says that (figures, k) labels of a node come to at least."""
        found: Ints = self.late[k, :, node] @ labels[1:-1] + self.early[k, node] * labels[0] + self.mu[k] * labels[-1]
        found += self.rest[k, node]
        return found

    def alive(self, node: int, labels: Ints) -> Marks:
        """Which of (figures, k) labels of a node may end below all limits."""
        found = np.ones(labels.shape[1], dtype=np.bool_)
        for k, limit in enumerate(self.limits):
            found &= self.bounds(k, node, labels) < limit
        return found


def ways_of(lanes: Lanes, allowed: Marks, prices: Sequence[Price]) -> Ways:
    """With the prices of each lane's end, and of the error, alone: so that no plan ends that is not better."""
    count, n = len(lanes.busy), len(lanes.ready)
    ends = np.zeros((count, count, n), dtype=np.int64)
    ends[range(count), range(count), -1] = 1
    alone = [(each, 0) for each in ends]
    if lanes.error_most is not None:
        alone.append((np.zeros((count, n), dtype=np.int64), 1))
    return Ways(lanes, arcs_of(lanes, allowed), [*prices, *alone])


def count_labels(
    lanes: Lanes, allowed: Marks, prices: Sequence[Price], expired: Callable[[], bool], most: int = 2**62
) -> int:
    """How many labels there are until all of them are dead.

    Raises
    ------
    RefutedError
        If some are alive at the end, or there are more than ``most``.
    """
    total = 0
    for node, labels in follow(lanes, ways_of(lanes, allowed, prices)):
        total += int(labels.shape[1])
        if labels.shape[1] > _MOST_LABELS or total > most:
            raise TooManyError(f"too many labels are alive at gradient {node}")
        if expired():
            return total
        if node == len(lanes.ready) and labels.shape[1]:
            raise RefutedError("a plan that the prices do not refute is left at the end")
    return total


def follow(lanes: Lanes, ways: Ways) -> Iterator[tuple[int, Ints]]:
    """The (figures, k) labels alive at each node: encoding, when each lane is free, error."""
    arcs, n, count = ways.arcs, len(lanes.ready), len(lanes.busy)
    by_tail = np.searchsorted(arcs.tail, np.arange(n + 2))
    pending: list[list[Ints]] = [[] for _ in range(n + 1)]
    pending[0].append(np.zeros((count + 2, 1), dtype=np.int64))
    for node in range(n + 1):
        leaving = slice(by_tail[node], by_tail[node + 1])
        labels = np.concatenate(pending[node], axis=1) if pending[node] else np.zeros((count + 2, 0), dtype=np.int64)
        pending[node] = []
        if node < n and labels.shape[1] and leaving.start < leaving.stop:
            idle = int((arcs.ready[leaving] + arcs.encode[leaving]).min())
            labels[1:-1] = np.maximum(labels[1:-1], labels[0] + idle)  # the next message does not start before
        labels = front(labels[:, ways.alive(node, labels)])
        yield node, labels
        if not labels.shape[1]:
            continue
        for head in np.unique(arcs.head[leaving]).tolist():
            chosen = np.flatnonzero(arcs.head[leaving] == head) + leaving.start
            pending[head].append(_extended(labels, arcs.of(chosen), lanes.error_most is not None))


def _extended(labels: Ints, arcs: Arcs, with_error: bool) -> Ints:
    """(figures, k) labels after each of some messages."""
    spent = labels[0][:, None] + arcs.encode
    encoded = arcs.ready + spent
    lost = labels[-1][:, None] + arcs.error if with_error else np.zeros_like(spent)
    at, free = encoded, []
    for before, busy, used in zip(labels[1:-1], arcs.busy, arcs.used, strict=True):
        at = np.where(used, np.maximum(at, before[:, None]) + busy, at)
        free.append(np.where(used, at, np.maximum(encoded, before[:, None])))
    found: Ints = np.minimum(np.stack([each.ravel() for each in (spent, *free, lost)]), LARGEST)
    return found


def front(labels: Ints) -> Ints:
    """(figures, k) labels without those that another is nowhere larger than."""
    labels = labels[:, np.lexsort(labels[::-1])]
    if not labels.shape[1]:
        return labels
    figures = [row for row in labels[1:] if (row != row[0]).any()]
    if len(figures) <= 1:
        last = figures[0] if figures else labels[1]
        least = np.concatenate(([np.iinfo(np.int64).max], np.minimum.accumulate(last)[:-1]))
        return labels[:, last < least]
    if len(figures) == 2:
        return labels[:, _front_of_three(figures[0].tolist(), figures[1].tolist())]
    return labels[:, _front_of_more(np.stack(figures))]


def _front_of_more(figures: Ints) -> Ints:
    """Places of those that none before is as small as in all (figures, k)."""
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, figures.shape[1], _BLOCK):
        block = figures[:, start : start + _BLOCK]
        beaten = np.zeros(block.shape[1], dtype=np.bool_)
        for at in range(0, len(kept), _BLOCK):
            some = figures[:, kept[at : at + _BLOCK]]
            left = np.flatnonzero(~beaten)
            beaten[left] = (some[:, :, None] <= block[:, None, left]).all(axis=0).any(axis=0)
        left = np.flatnonzero(~beaten)
        before = (block[:, left, None] <= block[:, None, left]).all(axis=0) & ~np.tri(len(left), dtype=np.bool_)
        kept = np.concatenate((kept, start + left[~before.any(axis=0)]))
    return kept


def _front_of_three(finish: list[int], error: list[int]) -> list[int]:
    """Places of those, of labels by increasing encoding, that none before is as small as in both figures."""
    stairs_f: list[int] = []  # increasing, of errors that decrease
    stairs_x: list[int] = []
    kept = []
    for place, (f, x) in enumerate(zip(finish, error, strict=True)):
        at = bisect_right(stairs_f, f)
        if at and stairs_x[at - 1] <= x:
            continue
        kept.append(place)
        # What is as late and as wrong as the new one stands no more.
        end = at = bisect_left(stairs_f, f)
        while end < len(stairs_x) and stairs_x[end] >= x:
            end += 1
        stairs_f[at:end], stairs_x[at:end] = [f], [x]
    return kept
