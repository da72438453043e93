"""Graphs of workers, by name."""

from collections.abc import Callable, Mapping

import networkx as nx
import numpy as np

from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.network import Network

CVX_EXAMPLE = (
    *((0, 1), (1, 2), (2, 3), (0, 4), (1, 7), (1, 3), (4, 5)),
    *((4, 6), (2, 6), (3, 7), (5, 6), (6, 7), (1, 6)),
)
"""The graph of 8 nodes and 13 edges in the examples ``graph_laplacian`` of CVX, edges in their order."""

ABILENE = (
    *((0, 1), (0, 2), (1, 10), (2, 9), (3, 4), (3, 6), (4, 5)),
    *((4, 6), (5, 8), (6, 7), (7, 8), (7, 10), (8, 9), (9, 10)),
)
NSFNET = (
    *((0, 2), (0, 11), (0, 7), (1, 2), (1, 4), (3, 12), (4, 12), (5, 9)),
    *((5, 6), (6, 12), (6, 7), (8, 9), (9, 11), (10, 11), (11, 12)),
)
ZOO = "the Internet Topology Zoo (S. Knight et al., IEEE JSAC 29, 2011), CC BY 4.0, DOI 10.25909/30153949"


def _side(nodes: int, power: int) -> int:
    side: int = round(nodes ** (1 / power))
    if side**power != nodes:
        raise OptionError(f"nodes is {nodes}; expected the power {power} of a whole number, such as {side**power}")
    return side


def _hypercube(nodes: int, degree: int, seed: int) -> nx.Graph:
    dimension = nodes.bit_length() - 1
    if 2**dimension != nodes:
        raise OptionError(f"nodes is {nodes}; a hypercube has a power of 2, such as {2**dimension}")
    return nx.hypercube_graph(dimension)


def _star(nodes: int, degree: int, seed: int) -> nx.Graph:
    return nx.star_graph(nodes - 1)


def _bipartite(nodes: int, degree: int, seed: int) -> nx.Graph:
    return nx.complete_bipartite_graph(nodes // 2, nodes - nodes // 2)


def _torus(nodes: int, degree: int, seed: int) -> nx.Graph:
    side = _side(nodes, 2)
    return nx.grid_2d_graph(side, side, periodic=True)


def _grid(nodes: int, degree: int, seed: int) -> nx.Graph:
    side = _side(nodes, 2)
    return nx.grid_2d_graph(side, side)


def _regular(nodes: int, degree: int, seed: int) -> nx.Graph:
    if not 0 < degree < nodes or nodes * degree % 2:
        raise OptionError(f"degree is {degree}; a regular graph of {nodes} nodes needs one below that, even in product")
    return nx.random_regular_graph(degree, nodes, seed=seed)


def _random(nodes: int, degree: int, seed: int) -> nx.Graph:
    edges = nodes * degree // 2
    if not nodes - 1 <= edges <= nodes * (nodes - 1) // 2:
        raise OptionError(f"degree is {degree}; {nodes} nodes need at least {nodes - 1} edges, and at most one a pair")
    return nx.gnm_random_graph(nodes, edges, seed=seed)


def _geometric(nodes: int, degree: int, seed: int) -> nx.Graph:
    return nx.random_geometric_graph(nodes, float(np.sqrt(degree / (np.pi * nodes))), seed=seed)


SHAPES: Mapping[str, Callable[[int, int, int], nx.Graph]] = {
    "path": lambda nodes, degree, seed: nx.path_graph(nodes),
    "cycle": lambda nodes, degree, seed: nx.cycle_graph(nodes),
    "star": _star,
    "complete": lambda nodes, degree, seed: nx.complete_graph(nodes),
    "bipartite": _bipartite,
    "grid": _grid,
    "torus": _torus,
    "hypercube": _hypercube,
    "regular": _regular,
    "random": _random,
    "geometric": _geometric,
}
"""Function of nodes, degree (of the drawn ones, the mean for the last two) and a seed."""

# A graph that is connected once in a hundred draws is found with probability 0.87.
_TRIES = 200


def network_of(rng: np.random.Generator, shape: str, nodes: int, degree: int) -> Network:
    """A connected graph; drawn ones are drawn anew until they are.

    Raises
    ------
    OptionError
        If there is no such graph, or none of 200 that were drawn is connected.
    """
    for _ in range(_TRIES):
        graph = SHAPES[shape](nodes, degree, int(rng.integers(2**31)))
        if nx.is_connected(graph):
            graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
            edges = sorted((min(edge), max(edge)) for edge in graph.edges())
            return Network(nodes=len(graph), edges=tuple(edges))
    raise OptionError(f"none of {_TRIES} drawn graphs of shape '{shape}' is connected; ask for a degree above {degree}")
