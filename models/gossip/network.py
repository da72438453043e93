"""Who can talk to whom: the connected graph of workers that problems of the family share."""

from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.contracts import Part

if TYPE_CHECKING:
    import networkx as nx
    from scipy import sparse


class Network(Part):
    """A connected graph without self-loops and parallel edges.

    Parameters
    ----------
    nodes : int
        Workers.
    edges : tuple of (int, int)
        Pairs that can exchange their models.
    names : tuple of str, optional
        Of the nodes.
    """

    nodes: int = Field(ge=2)
    edges: tuple[tuple[int, int], ...] = Field(min_length=1)
    names: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.names and len(self.names) != self.nodes:
            raise ValueError(f"names has {len(self.names)} entries, but there are {self.nodes} nodes")
        if len(self.edges) < self.nodes - 1:
            raise ValueError(
                f"the graph is disconnected: {self.nodes} nodes need at least {self.nodes - 1} edges, and there are "
                f"{len(self.edges)}; gossip cannot average over its parts"
            )
        first: dict[tuple[int, int], int] = {}
        for place, (i, j) in enumerate(self.edges):
            for node in (i, j):
                if not 0 <= node < self.nodes:
                    raise ValueError(
                        f"edges[{place}] names node {node}, but there are {self.nodes} nodes (0..{self.nodes - 1})"
                    )
            if i == j:
                raise ValueError(
                    f"edges[{place}] is a self-loop of node {i}; remove it: every node keeps its own share"
                )
            if first.setdefault((min(i, j), max(i, j)), place) != place:
                raise ValueError(f"edges[{place}] joins nodes {i} and {j} again; give each edge once")
        self._refuse_parts()
        return self

    def _refuse_parts(self) -> None:
        import networkx as nx

        parts = sorted(nx.connected_components(self.graph), key=min)
        if len(parts) > 1:
            raise ValueError(
                f"the graph is disconnected: no path joins node {min(parts[0])} and node {min(parts[1])}; gossip "
                "cannot average over its parts"
            )

    @cached_property
    def graph(self) -> "nx.Graph":
        """The same in networkx."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.edges)
        return graph

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """(m, 2) ends of the edges."""
        return np.array(self.edges, dtype=np.int64)

    @cached_property
    def incidence(self) -> "sparse.csr_array":
        """(n, m) vectors of the edges as columns: 1 at the first end, −1 at the second."""
        from scipy import sparse

        m = len(self.edges)
        signs, columns = np.tile([1.0, -1.0], m), np.repeat(np.arange(m), 2)
        return sparse.csr_array((signs, (self.ends.ravel(), columns)), shape=(self.nodes, m))

    @cached_property
    def degrees(self) -> npt.NDArray[np.int64]:
        """(n,) edges at each node."""
        return np.bincount(self.ends.ravel(), minlength=self.nodes)
