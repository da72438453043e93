"""Exact maximum flows and minimum cuts on 64-bit integers, by capacity scaling around SciPy's Dinic.

SciPy's maximum flow takes 32-bit capacities (and wraps larger ones around without a word). So the leading bits are
solved first, and what is left of every capacity goes on: the flow still missing is at most what the arcs of the last
cut have left, which shortens the numbers by about 20 bits in each round.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BITS = 30
"""Of the capacities in a round: the sum of those of an arc and its reverse must fit into 32 bits with sign."""
LARGEST_TOTAL = 2**61
"""What all capacities out of the source may add up to."""


@dataclass(frozen=True)
class MinimumCut:
    """A minimum cut and its capacity.

    Parameters
    ----------
    value : int
        Of the maximum flow, which is the capacity of the cut.
    source_side : (nodes,) bool array
    """

    value: int
    source_side: Bools


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """Arcs from a source to a sink, prepared once for any number of capacities.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tails, heads : (arcs,) int array
        Parallel arcs are allowed; their capacities add up.
    source, sink : int
        Two nodes.
    """

    nodes: int
    tails: Ints
    heads: Ints
    source: int
    sink: int

    @cached_property
    def _pattern(self) -> tuple[Any, Any, Ints, Ints]:
        """Rows' beginnings and columns of all arcs and their reverses; tail of each entry; entry of each arc."""
        ahead, back = self.tails * self.nodes + self.heads, self.heads * self.nodes + self.tails
        keys, entries = np.unique(np.concatenate((ahead, back)), return_inverse=True)
        rows = keys // self.nodes
        begins = np.searchsorted(rows, np.arange(self.nodes + 1)).astype(np.int32)
        return begins, (keys % self.nodes).astype(np.int32), rows, entries[: len(self.tails)]

    def _matrix(self, data: Any) -> Any:
        begins, columns, _, _ = self._pattern
        return sparse.csr_array((data, columns, begins), shape=(self.nodes, self.nodes))

    def minimum_cut(self, capacities: Ints, largest: bool = False) -> MinimumCut:
        """Solve for the capacities, exactly.

        Parameters
        ----------
        capacities : (arcs,) int array
            Not negative; those out of the source add up to at most :data:`LARGEST_TOTAL`.
        largest : bool
            Whether to return the minimum cut with the most nodes on the source's side rather than that with the
            fewest. Each is unique, and contains or is contained in every other minimum cut.

        Returns
        -------
        MinimumCut

        Raises
        ------
        ValueError
            If a capacity is negative, or too much leaves the source.
        """
        _, _, rows, entries = self._pattern
        supply = capacities[self.tails == self.source]
        if (capacities < 0).any() or float(supply.sum(dtype=np.float64)) > LARGEST_TOTAL:
            raise ValueError("capacities must not be negative and must add up to 2^61 at most")
        left = int(supply.sum())
        residual = np.zeros(len(rows), dtype=np.int64)
        np.add.at(residual, entries, capacities)
        # More than the supply never flows; sums of parallel capacities that are much more may have wrapped around.
        residual[np.bincount(entries, capacities, len(rows)) > 1.5 * left + 1] = left + 1
        value = 0
        while left > 0:
            shift = max(0, left.bit_length() - _BITS)
            scaled = (np.minimum(residual, left) >> shift).astype(np.int32)
            flow = csgraph.maximum_flow(self._matrix(scaled), self.source, self.sink).flow.data
            pushed = flow.astype(np.int64) << shift
            residual -= pushed
            amount = int(pushed[rows == self.source].sum())
            value += amount
            if shift == 0:
                break
            beyond = self._reached(scaled > flow)
            _, columns, _, _ = self._pattern
            crossing = residual[beyond[rows] & ~beyond[columns]]
            left = min(left - amount, int(np.minimum(crossing, left).sum()))
        side = ~self._reaching(residual > 0) if largest else self._reached(residual > 0)
        return MinimumCut(value, side)

    def _reached(self, open_entries: Bools) -> Bools:
        """Nodes that the source reaches over the entries."""
        return self._search(self._matrix(open_entries), self.source)

    def _reaching(self, open_entries: Bools) -> Bools:
        """Nodes that reach the sink over the entries."""
        return self._search(self._matrix(open_entries).T.tocsr(), self.sink)

    def _search(self, graph: Any, node: int) -> Bools:
        graph = graph.astype(np.float64)
        graph.eliminate_zeros()
        found = np.zeros(self.nodes, dtype=np.bool_)
        found[csgraph.breadth_first_order(graph, node, return_predecessors=False)] = True
        return found
