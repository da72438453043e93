"""The edges of a graph split into matchings: by Misra and Gries, exactly where wanted, and from one to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
import rustworkx

from ddlopt.models.gossip.matchings.edge_colouring import EdgeColouring
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status

Matchings = tuple[tuple[int, ...], ...]

_SMALL = 2000
"""Variables up to which the integer program is asked where an edge colouring takes one colour more than needed."""
# Seconds for one colour less; without an answer the decomposition found before is kept.
_ASKED_S = 5.0


class Decomposition(NamedTuple):
    """Matchings, and the number that no decomposition is below."""

    matchings: Matchings
    fewest: int


def coloured(network: Network) -> Matchings:
    """At most Δ + 1 matchings (J. Misra, D. Gries 1992); Δ for bipartite graphs (N. Alon 2003)."""
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(network.nodes))
    graph.add_edges_from([(i, j, None) for i, j in network.edges])
    bipartite = rustworkx.is_bipartite(graph)
    colouring = rustworkx.graph_bipartite_edge_color if bipartite else rustworkx.graph_misra_gries_edge_color
    colours = colouring(graph)
    return grouped([colours[edge] for edge in range(len(network.edges))])


def grouped(colours: Sequence[int]) -> Matchings:
    """Edges by colour, without colours that no edge has."""
    groups: dict[int, list[int]] = {}
    for edge, colour in enumerate(colours):
        groups.setdefault(int(colour), []).append(edge)
    return tuple(tuple(groups[colour]) for colour in sorted(groups))


def fewest_matchings(network: Network, time_s: float | None = None) -> Decomposition:
    """As few matchings as possible, as far as that is proven within a time limit.

    Where the colouring takes Δ + 1 and the graph is small,
    :class:`~ddlopt.models.gossip.matchings.edge_colouring.EdgeColouring` decides whether Δ will do. More than Δ⌊n/2⌋
    edges never do.
    """
    found, degree = coloured(network), int(network.degrees.max())
    if len(found) == degree:
        return Decomposition(found, degree)
    if len(network.edges) > degree * (network.nodes // 2):
        return Decomposition(found, degree + 1)
    if len(network.edges) * degree > _SMALL:
        return Decomposition(found, degree)
    model = pyo.ConcreteModel()
    model.colouring = pyo.Block()
    formulation = EdgeColouring(degree)
    instance = MatchingsInstance(name="colouring", network=network, budget=1.0)
    formulation.build(model.colouring, instance)
    model.objective = pyo.Objective(expr=model.colouring.objective, sense=pyo.maximize)
    outcome = Highs().solve(model, Limits(_ASKED_S if time_s is None else max(1e-3, min(_ASKED_S, time_s))))
    better = None if outcome.objective is None else formulation.read(model.colouring, instance)
    if better is not None:
        return Decomposition(better, degree)
    # An optimum below the number of edges, or a bound that rules the number out
    ruled_out = outcome.status is Status.OPTIMAL or (
        outcome.bound is not None and outcome.bound < len(network.edges) - 0.5
    )
    return Decomposition(found, degree + 1 if ruled_out else degree)


@dataclass(frozen=True)
class Kempe:
    """Moves from one colouring of edges to another.

    Parameters
    ----------
    network : Network
    """

    network: Network

    def moved(self, colours: np.ndarray, rng: np.random.Generator, most: int) -> np.ndarray:
        """Two colours, exchanged along one path or cycle of their edges.

        Parameters
        ----------
        colours : (m,) array of int
        rng : numpy.random.Generator
        most : int
            Colours that may be used; one that no edge has yet is new.
        """
        first = int(rng.integers(len(colours)))
        one = int(colours[first])
        other = int(rng.choice([colour for colour in range(most) if colour != one]))
        touching: dict[int, list[int]] = {}
        for edge in np.flatnonzero((colours == one) | (colours == other)).tolist():
            for node in self.network.edges[edge]:
                touching.setdefault(node, []).append(edge)
        chain, waiting = {first}, [first]
        while waiting:
            for node in self.network.edges[waiting.pop()]:
                for edge in touching[node]:
                    if edge not in chain:
                        chain.add(edge)
                        waiting.append(edge)
        found = colours.copy()
        for edge in chain:
            found[edge] = other if colours[edge] == one else one
        return found


def colours_of(matchings: Matchings, edges: int) -> np.ndarray:
    """(m,) number of the matching of each edge."""
    found = np.zeros(edges, dtype=np.int64)
    for number, matching in enumerate(matchings):
        found[list(matching)] = number
    return found
