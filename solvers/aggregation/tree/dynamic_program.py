"""The dynamic program for the utilization of one job in a tree."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.tree.tables import Floats, Ints
from ddlopt.models.errors import NoSolutionError, NotApplicableError
from ddlopt.solvers.aggregation.tree.kernels.dynamic_program import Layout, Store, advance, layout, look_back
from ddlopt.solvers.heuristic import Clock

_SPLITS = 1 << 26
"""Entries of decisions that are kept at once."""
_STEP = 1 << 26
"""Operations, about, between two looks at the clock."""
LARGEST = 1 << 27
"""Entries of the buffer of tables beyond which it is not begun."""


@dataclass(frozen=True)
class JobTree:
    """One job in a tree.

    Parameters
    ----------
    parents, order : int64, shape (n,)
        As in :class:`~ddlopt.models.aggregation.tree.tables.TreeTables`; the order breadth first.
    path : float64, shape (n,)
        Cost of a message from each node to the destination.
    loads : float64, shape (n,)
    useful : bool, shape (n,)
        Nodes that may aggregate.
    limit : int
        Most that aggregate; 0 for any number, which prices hold down.
    """

    parents: Ints
    order: Ints
    path: Floats
    loads: Floats
    useful: npt.NDArray[np.bool_]
    limit: int


class TreeProgram:
    """Tables of a :class:`JobTree` by number of aggregating nodes, and the nodes that are best.

    Decisions where the switches go take a multiple of the room of the tables. So they are kept for a part of the nodes
    at a time, and where there are several parts, the tables at the start of each; parts are calculated again, from the
    last to the first, when the nodes are looked up.

    Parameters
    ----------
    tree : JobTree
    splits : int
        Entries of decisions that are kept at once, about.

    Raises
    ------
    NotApplicableError
        If the tables would not fit into memory.
    """

    def __init__(self, tree: JobTree, splits: int = _SPLITS) -> None:
        self._tree = tree
        self.plan: Layout = layout(tree.parents, tree.order, tree.useful, tree.limit)
        if self.plan.length > LARGEST:
            raise NotApplicableError(f"the tables would have {self.plan.length} entries; at most {LARGEST} are tried")
        post, most = self.plan.post, self.plan.most
        above = np.maximum(tree.parents[post], 0)
        light = (self.plan.heavy[above] != post) & (tree.parents[post] >= 0)
        splitting = np.where(light & (most[post] > 0), self.plan.rows[post] * (most[above] + 1), 0)
        part = (np.cumsum(splitting) - splitting) // splits
        self._starts = [*np.flatnonzero(np.diff(part, prepend=-1)).tolist(), len(post)]
        place, room = np.zeros(len(post), np.int64), 0
        for first, last in zip(self._starts[:-1], self._starts[1:], strict=True):
            lengths = splitting[first:last]
            place[post[first:last]] = np.cumsum(lengths) - lengths
            room = max(room, int(lengths.sum()))
        self._work = np.cumsum(self.plan.rows[post] * (most[post] + 1) * (1 + light * most[post]))
        n, thresholds = len(post), int((most + 1).sum())
        self._kept = Store(
            np.empty(self.plan.length),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(thresholds, np.int32),
            np.empty(room, np.int32),
            place,
        )
        self._saved: list[tuple[Floats, Ints]] = []

    @property
    def parts(self) -> int:
        """Parts for which decisions are kept at a time."""
        return len(self._starts) - 1

    def run(self, price: Floats, clock: Clock | None = None) -> Floats:
        """Make the tables; least cost with at most 0, 1, … aggregating nodes, each of which costs its price more.

        Raises
        ------
        NoSolutionError
            If the time is up before.
        """
        self._saved = []
        for first, last in zip(self._starts[:-1], self._starts[1:], strict=True):
            if self.parts > 1:
                self._saved.append((self._kept.table.copy(), self._kept.last.copy()))
            self._advance(first, last, price, clock)
        self._price, self._has = price, self.parts - 1
        return self._kept.table[: int(self.plan.most[self._tree.order[0]]) + 1].copy()

    def _advance(self, first: int, last: int, price: Floats, clock: Clock | None) -> None:
        while first < last:
            done = self._work[first - 1] if first else 0
            until = min(last, max(first + 1, int(np.searchsorted(self._work, done + _STEP))))
            advance(self.plan, self._kept, self._tree.loads, self._tree.path, price, first, until)
            first = until
            if clock is not None and clock.expired:
                raise NoSolutionError("the time was up before the tables were complete")

    def nodes(self, budget: int) -> Ints:
        """Nodes that aggregate in the best answer of the last :meth:`run` with at most ``budget`` of them."""
        n = len(self.plan.parents)
        row, left, found = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
        root = self._tree.order[0]
        left[root] = min(budget, self.plan.most[root])
        for part in reversed(range(self.parts)):
            first, last = self._starts[part : part + 2]
            if part != self._has:
                self._kept.table[:], self._kept.last[:] = self._saved[part]
                self._advance(first, last, self._price, None)
                self._has = part
            look_back(self.plan, self._kept, row, left, found, first, last)
        return np.flatnonzero(found)
