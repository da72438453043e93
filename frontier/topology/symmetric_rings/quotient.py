"""Rings and routes on a Cayley graph, all translates in equal parts: a linear program with a row for each generator.

If every ring and every path is used together with all its translates, each to the same part, all links of one generator
carry the same. What counts of a ring is then how many links of each generator it takes. The program over such counts
has as many rows as there are generators, however many servers; its duals are lengths of the generators, under which
short rings (a travelling salesman's, by local search) and shortest paths are generated as columns.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from ddlopt.frontier.topology.symmetric_rings.sight import Floats, Ints, Sight
from ddlopt.frontier.topology.symmetric_rings.ways import CayleyGraph
from ddlopt.models.topology import Path

_GAIN = 1e-9
"""Relative gain of the program below which a round of columns is idle."""
_PATIENCE = 10
"""Rounds for each of which one more idle round in a row is allowed: prices wander where the program is degenerate."""


class Column(NamedTuple):
    """A ring of a family, or a path to an offset.

    Parameters
    ----------
    row : int
        The family, or behind all families the offset's place.
    loads : (g,) array
        Bytes on a link of each generator, if all goes this way.
    ring : (k,) array
        Members in order; for a path its two ends.
    before : (n,) array
        Of a shortest-path tree from server 0: predecessors, for the paths of hops.
    """

    row: int
    loads: Floats
    ring: Ints
    before: Ints


class Quotient:
    """The program of a sight on given generators.

    Parameters
    ----------
    sight : Sight
    generators : (g,) array
        Different elements; links go from x to x + generator.
    counts : (g,) array
        Links of each at a server.
    """

    def __init__(self, sight: Sight, generators: Ints, counts: Ints) -> None:
        self.sight, self.generators, self.counts = sight, generators, counts
        self.offsets = np.flatnonzero(sight.offset_bytes > 0)
        self.columns: list[Column] = []
        self.shares: Floats = np.zeros(0)
        self.length: Floats = np.ones(len(generators)) / counts.sum()
        self._graph = CayleyGraph(sight.group, generators)
        self._unit = max([float(sight.offset_bytes.max()), *(family.hop_bytes for family in sight.families)])
        self._known: list[set[bytes]] = [set() for _ in range(len(sight.families) + len(self.offsets))]

    def solve(self, rounds: int, kicks: int, enough: float, hopeless: float) -> float:
        """Bytes on the busiest link after ``rounds`` of columns at most; infinite where something has no path.

        ``kicks`` of the search for each ring. A load of ``enough`` ends it, and one above ``hopeless`` after two.
        """
        found, idle = np.inf, 0
        for turn in range(rounds):
            if not self._generate(kicks):
                break
            before, found = found, self._program()
            if not np.isfinite(found):  # HiGHS gave up; what it solved before still holds
                return before
            idle = idle + 1 if before - found <= _GAIN * found else 0
            if found <= enough or (turn >= 2 and (found > hopeless or idle > rounds // _PATIENCE)):
                break
        return found

    def _generate(self, kicks: int) -> bool:
        """Add a short ring for every family, and a shortest path for every offset; whether any is new."""
        ways = self._graph.ways(self.length)
        if ways is None:
            return False
        new = False
        for row, family in enumerate(self.sight.families):
            known = [column for column in self.columns if column.row == row]
            best = min(known, key=lambda column: float(column.loads @ self.length)).ring if known else None
            for ring in self._graph.rings(ways, self.length, family.subgroup, best, kicks):
                loads = self._graph.ring_links(ways, ring) * family.hop_bytes
                new |= self._add(Column(row, loads, ring, ways.before))
        for place, v in enumerate(self.offsets.tolist()):
            loads = ways.links[v] * self.sight.offset_bytes[v]
            new |= self._add(Column(len(self.sight.families) + place, loads, np.array([0, v]), ways.before))
        return new

    def _add(self, column: Column) -> bool:
        key = np.round(column.loads / self._unit, 12).tobytes()
        if key in self._known[column.row]:
            return False
        self._known[column.row].add(key)
        self.columns.append(column)
        return True

    def _program(self) -> float:
        rows, width = len(self._known), len(self.columns)
        loads = np.column_stack([column.loads for column in self.columns])
        unit = float(loads.max())
        choice = coo_array(
            (np.ones(width), ([column.row for column in self.columns], np.arange(width))), (rows, width + 1)
        )
        cost = np.zeros(width + 1)
        cost[-1] = 1.0
        answer = linprog(
            cost,
            A_ub=np.column_stack((loads / unit, -self.counts)),
            b_ub=np.zeros(len(self.counts)),
            A_eq=csr_array(choice),
            b_eq=np.ones(rows),
            bounds=(0, None),
            method="highs",
        )
        if answer.status != 0:
            del self.columns[len(self.shares) :]
            return np.inf
        self.shares, self.length = answer.x[:-1], np.maximum(0.0, -answer.ineqlin.marginals)
        return float((loads @ self.shares / self.counts).max())

    def path(self, before: Ints, source: int, offset: int) -> Path:
        """Servers from a source to source + offset along a tree."""
        found = [offset]
        while found[-1] != 0:
            found.append(int(before[found[-1]]))
        return tuple(self.sight.group.translations[source, found[::-1]].tolist())
