"""Rings and routes on links with symmetries, all translates in equal parts: a linear program with a row for each kind.

If every ring and every path is used together with all its translates, each to the same part, all links of one kind
carry the same. What counts of a ring is then how many links of each kind it takes. The program over such counts has as
many rows as there are kinds, however many servers; its duals are lengths of the kinds, under which short rings (a
travelling salesman's, by local search) and shortest paths are generated as columns.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.frontier.topology.symmetric_rings.orbits import Orbits
from ddlopt.frontier.topology.symmetric_rings.sight import Floats, Ints
from ddlopt.models.errors import SolverError
from ddlopt.models.topology import Path
from ddlopt.solvers.topology.balance.ring_kernels import shorten_ring

_IDLE = 1e-9
"""Length of a kind whose links are not full, in parts of the longest: nothing wanders over them for nothing."""
_GAIN = 1e-9
"""Relative gain of the program below which a column is not worth a round."""


class Column(NamedTuple):
    """A ring of a group, or a path from the first server of an orbit.

    Parameters
    ----------
    row : int
        The groups, or behind all groups the place of orbit and offset.
    loads : (kinds,) array
        Bytes on the links of each kind at one server, if all goes this way.
    ring : (k,) array
        Members in order; for a path orbit and offset.
    before : (orbits, n) array
        Of the shortest-path trees from the first servers: predecessors, for the paths of hops.
    """

    row: int
    loads: Floats
    ring: Ints
    before: Ints


class OrbitProgram:
    """The program of a job on given links.

    Parameters
    ----------
    orbits : Orbits
        Of the translations that keep the links.
    links : (m, 2) array
        Orbit and element: every server x of the orbit has a link to x + element; an entry for each of parallel links.
    """

    def __init__(self, orbits: Orbits, links: Ints) -> None:
        self.orbits, self.sight = orbits, orbits.sight
        group, n = orbits.group, orbits.group.order
        kinds, self.counts = np.unique(links, axis=0, return_counts=True)
        self.origin, self.element = kinds.T
        self.columns: list[Column] = []
        self.shares: Floats = np.zeros(0)
        self.length: Floats = np.ones(len(kinds)) / self.counts.sum()
        members = group.translations[orbits.moves]  # [k, x] is x moved
        self._tails = members[:, orbits.first[self.origin]].ravel()
        self._kinds = np.tile(np.arange(len(kinds)), len(orbits.moves))
        self._heads = group.translations[self.element[self._kinds], self._tails]
        self._kind = np.full((n, n), -1, dtype=np.int64)
        self._kind[self._tails, self._heads] = self._kinds
        self._known: list[set[bytes]] = [set() for _ in range(len(orbits.wanted) + len(orbits.pairs))]
        self._unit = float(self.sight.instance.node_bytes.max()) / self.sight.instance.degree or 1.0
        self._master = self._empty_program()

    def solve(self, rounds: int, kicks: int, enough: float, hopeless: float) -> float:
        """Bytes on the busiest link after ``rounds`` of columns at most; infinite where something has no path.

        ``kicks`` of the search for each ring. A load of ``enough`` ends it, and so do lengths under which all that is
        generated takes more than ``hopeless``; infinite, too, if that is before there is a program.
        """
        found = np.inf
        for _ in range(rounds):
            least, new = self._generate(kicks)
            if not new or least > hopeless:
                break
            before, found = found, self._program()
            if not np.isfinite(found):  # HiGHS gave up; what it solved before still holds
                return before
            if found <= enough or found - least <= _GAIN * found:
                break
        return found

    def _generate(self, kicks: int) -> tuple[float, bool]:
        """Add a short ring for every group, and a shortest path for every pair.

        Returns
        -------
        least : float
            Bytes on the busiest link at least, as the lengths say, if no ring is shorter.
        new : bool
            Whether any column is.
        """
        orbits = self.orbits
        n, first, seen = orbits.group.order, orbits.first, orbits.seen
        length = np.maximum(self.length, _IDLE * self.length.max())
        links = csr_array(coo_array((length[self._kinds], (self._tails, self._heads)), shape=(n, n)))
        distance, before = dijkstra(links, indices=first, return_predecessors=True)
        if not np.isfinite(distance).all():
            return np.inf, False
        hops, label = self._hops(before), orbits.label
        between = np.ascontiguousarray(distance[label[:, None], seen])
        rings = [
            (row, ring, hops[label[ring], seen[ring, np.append(ring[1:], ring[0])]].sum(axis=0) * each.ring_bytes)
            for row, each in enumerate(orbits.wanted)
            for ring in self._rings(row, each.members, between, kicks)
        ]
        orbit, offset = orbits.pairs.T
        to = orbits.group.translations[offset, first[orbit]]
        loads = hops[orbit, to] * self.sight.offset_bytes[offset][:, None]
        ways = [(len(orbits.wanted) + place, orbits.pairs[place], loads[place]) for place in range(len(loads))]
        least = np.full(len(self._known), np.inf)
        new = []
        for row, ring, load in (*rings, *ways):
            least[row] = min(least[row], float(load @ self.length))
            key = load.tobytes()
            if key not in self._known[row]:
                self._known[row].add(key)
                new.append(Column(row, load, ring, before))
        self._add(new)
        return float(least.sum() / (self.length @ self.counts)), bool(new)

    def _hops(self, before: Ints) -> Floats:
        """(orbits, n, kinds) links of each kind on the way from the first server of each orbit."""
        hops = np.zeros((*before.shape, len(self.counts)))
        done = before < 0
        while not done.all():
            orbit, to = np.nonzero(~done & np.take_along_axis(done, np.maximum(before, 0), axis=1))
            last = before[orbit, to]
            hops[orbit, to] = hops[orbit, last]
            hops[orbit, to, self._kind[last, to]] += 1
            done[orbit, to] = True
        return hops

    def _rings(self, row: int, members: Ints, between: Floats, kicks: int) -> list[Ints]:
        """A ring found from the best one so far, and one from scratch."""
        if len(members) <= 3:
            return [members, members[::-1].copy()][: len(members) - 1]
        known = [column for column in self.columns if column.row == row]
        begins = [np.full(len(members), -1, dtype=np.int64)]
        if known:
            begins.append(min(known, key=lambda column: float(column.loads @ self.length)).ring.copy())
        for ring in begins:
            shorten_ring(between, members, ring, False, kicks)
        return begins

    def _add(self, columns: list[Column]) -> None:
        self.columns += columns
        for column in columns:
            used = np.flatnonzero(column.loads)
            rows = np.append(used + len(self._known), column.row)
            self._master.add(0.0, rows, np.append(column.loads[used] / self._unit, 1.0))

    def _empty_program(self) -> RestrictedMaster:
        """Everything is sent once, and the load of every kind is at most that of the busiest, the first column."""
        master = RestrictedMaster("rings and paths")
        sent, kinds = len(self._known), len(self.counts)
        master.add_rows(sent, 1.0, 1.0)
        master.add_rows(kinds, -INF, 0.0)
        master.add(1.0, range(sent, sent + kinds), -self.counts.astype(np.float64))
        return master

    def _program(self) -> float:
        try:
            optimum = self._master.solve()
        except SolverError:
            del self.columns[len(self.shares) :]
            return np.inf
        self.shares = np.maximum(0.0, optimum.values[1:])
        self.length = np.maximum(0.0, -optimum.duals[len(self._known) :])
        loads = np.column_stack([column.loads for column in self.columns])
        return float((loads @ self.shares / self.counts).max())

    def path(self, before: Ints, source: int, target: int) -> Path:
        """Servers from one to another along the trees."""
        tree, found = before[self.orbits.label[source]], [int(self.orbits.seen[source, target])]
        while tree[found[-1]] >= 0:
            found.append(int(tree[found[-1]]))
        return tuple(self.orbits.group.translations[self.orbits.shift[source], found[::-1]].tolist())
