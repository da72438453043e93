"""Labels that whole prices leave alive: see :mod:`ddlopt.models.compression.label_proof`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from ddlopt.models.compression.label_proof.wire import LARGEST, Arcs, Ints, Marks, Wire, arcs_of
from ddlopt.models.errors import RefutedError

Price = tuple[Ints, int]
"""λ (n,) and μ."""

MOST_PRICE = 2**26
"""Of μ and of all λ together."""
_SATURATED = 2**61
"""No cheapest way is kept dearer, which is beyond whatever it is compared with."""
_MOST_LABELS = 2**19
"""Of a gradient: honest proofs have thousands."""


class TooManyError(RefutedError):
    """More labels are alive than are looked at; with other prices or in parts there may be fewer."""


class _Ways:
    """Messages and prices: which of them are on a way that is cheap enough at all prices, and what is left from each.

    Attributes
    ----------
    rest : (prices, n + 1) array
        V.
    limits : (prices,) array
        A plan of at least so much is not better than the claim.
    """

    def __init__(self, wire: Wire, arcs: Arcs, prices: Sequence[Price]) -> None:
        n = len(wire.ready)
        self.mu = np.array([mu for _, mu in prices], dtype=np.int64)
        self.late = np.zeros((len(prices), n + 1), dtype=np.int64)
        for row, (lambdas, _) in zip(self.late, prices, strict=True):
            row[1:] = lambdas.cumsum()
        self.early = self.late[:, -1:] - self.late
        weights = self.late[:, -1] if wire.timed else self.mu
        self.limits = self.late[:, -1] * wire.time_most + self.mu * (wire.error_most or 0) + (weights == 0)
        self.arcs, before = arcs, -1
        while len(self.arcs.tail) != before:  # what is out makes the cheapest ways of the others dearer
            before = len(self.arcs.tail)
            self._leave_out()

    def _leave_out(self) -> None:
        """Leave out messages on no way below all limits."""
        arcs, n = self.arcs, self.late.shape[1] - 1
        costs = (
            (self.late[:, arcs.head] - self.late[:, arcs.tail]) * arcs.ready
            + self.early[:, arcs.tail] * arcs.encode
            + self.late[:, arcs.head] * arcs.busy
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
        self.arcs = Arcs._make(each[cheap.all(axis=0)] for each in arcs)

    def alive(self, node: int, labels: Ints) -> Marks:
        """Which of (3, k) labels of a node may end below all limits."""
        encode, finish, error = labels
        found = np.ones(len(encode), dtype=np.bool_)
        for k in range(len(self.mu)):
            bound = self.late[k, node] * finish + self.early[k, node] * encode + self.mu[k] * error
            found &= bound + self.rest[k, node] < self.limits[k]
        return found


def count_labels(
    wire: Wire, allowed: Marks, prices: Sequence[Price], expired: Callable[[], bool], most: int = 2**62
) -> int:
    """How many labels there are until all of them are dead.

    Raises
    ------
    RefutedError
        If some are alive at the end, or there are more than ``most``.
    """
    n = len(wire.ready)
    alone = [(np.eye(1, n, n - 1, dtype=np.int64)[0], 0)]
    if wire.error_most is not None:
        alone.append((np.zeros(n, dtype=np.int64), 1))
    ways = _Ways(wire, arcs_of(wire, allowed), [*prices, *alone])
    arcs, by_tail = ways.arcs, np.searchsorted(ways.arcs.tail, np.arange(n + 2))
    pending: list[list[Ints]] = [[] for _ in range(n + 1)]
    pending[0].append(np.zeros((3, 1), dtype=np.int64))
    total = 0
    for node in range(n + 1):
        leaving = slice(by_tail[node], by_tail[node + 1])
        labels = np.concatenate(pending[node], axis=1) if pending[node] else np.zeros((3, 0), dtype=np.int64)
        pending[node] = []
        if node < n and labels.shape[1] and leaving.start < leaving.stop:
            idle = int((arcs.ready[leaving] + arcs.encode[leaving]).min())
            labels[1] = np.maximum(labels[1], labels[0] + idle)  # the next message does not start before
        labels = front(labels[:, ways.alive(node, labels)])
        total += int(labels.shape[1])
        if labels.shape[1] > _MOST_LABELS or total > most:
            raise TooManyError(f"too many labels are alive at gradient {node}")
        if expired():
            return total
        if node == n or not labels.shape[1]:
            continue
        for head in np.unique(arcs.head[leaving]).tolist():
            chosen = np.flatnonzero(arcs.head[leaving] == head) + leaving.start
            pending[head].append(_extended(labels, arcs, chosen, wire.error_most is not None))
    if labels.shape[1]:
        raise RefutedError("a plan that the prices do not refute is left at the end")
    return total


def _extended(labels: Ints, arcs: Arcs, chosen: Ints, with_error: bool) -> Ints:
    """(3, k) labels after each of the messages ``chosen``."""
    encode, finish, error = (each[:, None] for each in labels)
    spent = encode + arcs.encode[chosen]
    done = np.maximum(finish, arcs.ready[chosen] + spent) + arcs.busy[chosen]
    lost = error + arcs.error[chosen] if with_error else np.zeros_like(spent)
    found: Ints = np.minimum(np.stack([spent.ravel(), done.ravel(), lost.ravel()]), LARGEST)
    return found


def front(labels: Ints) -> Ints:
    """(3, k) labels without those that another is nowhere larger than."""
    labels = labels[:, np.lexsort(labels[::-1])]
    _, finish, error = labels
    if not error.any():
        if not len(finish):
            return labels
        least = np.concatenate(([np.iinfo(np.int64).max], np.minimum.accumulate(finish)[:-1]))
        return labels[:, finish < least]
    return labels[:, _front_of_three(finish.tolist(), error.tolist())]


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
