r"""MATCHA's three steps: matchings, their probabilities, and the weight that edges share.

Edges are coloured with at most :math:`\Delta + 1` colours (J. Misra, D. Gries, 1992); probabilities maximise
:math:`\lambda_2(\sum_j p_j L_j)` within the budget; and the weight α minimises
:math:`\rho = \lVert I - 2 \alpha \bar L + \alpha^2 (\bar L^2 + 2 \tilde L) - J \rVert`, with
:math:`\bar L = \sum_j p_j L_j` and :math:`\tilde L = \sum_j p_j (1 - p_j) L_j`: a convex function of one number.

J. Wang, A. K. Sahu, Z. Yang, G. Joshi, S. Kar, "MATCHA: Speeding up decentralized SGD via matching decomposition
sampling", Indian Control Conference 2019.
"""

from typing import NamedTuple

import numpy as np
import rustworkx as rx
from scipy import sparse
from scipy.optimize import minimize_scalar

from ddlopt.models.gossip.laplacians import Floats, Ints, laplacian
from ddlopt.models.gossip.network import Network
from ddlopt.solvers.gossip.interior_point import Block, Iterate, SpectralProgram, solve

_GAP = 1e-7


class Plan(NamedTuple):
    """(k, n, n) Laplacians of matchings, (k,) their probabilities, the weight α, and the factor ρ."""

    laplacians: Floats
    probabilities: Floats
    weight: float
    factor: float


def plan_of(network: Network, budget: float) -> Plan:
    """Random matchings for a network.

    Parameters
    ----------
    network : Network
    budget : float
        Expected part of the matchings that are active in a step.
    """
    colours = _colours(network)
    ones = np.ones(len(network.edges))
    laplacians = np.array(
        [laplacian(network.nodes, network.ends, ones * (colours == colour)) for colour in range(colours.max() + 1)]
    )
    probabilities = _probabilities(network, colours, budget)
    return Plan(laplacians, probabilities, *_weight(laplacians, probabilities))


def _colours(network: Network) -> Ints:
    graph = rx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(network.nodes))
    places = graph.add_edges_from([(i, j, None) for i, j in network.edges])
    found = rx.graph_misra_gries_edge_color(graph)
    colours = np.array([found[place] for place in places], dtype=np.int64)
    return np.unique(colours, return_inverse=True)[1].astype(np.int64)


def _probabilities(network: Network, colours: Ints, budget: float) -> Floats:
    edges, count = len(colours), int(colours.max()) + 1
    spread = sparse.csr_array((np.ones(edges), (np.arange(edges), colours)), shape=(edges, count))
    if budget == 1.0:
        return np.ones(count)
    rows = sparse.vstack([sparse.eye_array(count), -sparse.eye_array(count), np.full((1, count), -1.0)], format="csr")
    offsets = np.concatenate([np.zeros(count), np.ones(count), [budget * count]])
    start = np.full(count, budget / 2)
    program = SpectralProgram(
        network.nodes, network.ends, spread, (Block(0.0, 1.0, -1.0),), sparse.csr_array(rows), offsets, start, -budget
    )

    def stop(at: Iterate) -> bool:
        # The inner products of slacks and multipliers, once multipliers fit, are what t can still grow by.
        inner = sum(float((x * s).sum()) for x, s in zip(at.multipliers, at.slacks, strict=True))
        return inner + float(at.row_multipliers @ at.row_slacks) < _GAP * abs(at.t)

    found: Floats = np.clip(solve(program, stop)[0].y, 0.0, 1.0)
    return found


def _weight(laplacians: Floats, probabilities: Floats) -> tuple[float, float]:
    nodes = laplacians.shape[1]
    mean = np.tensordot(probabilities, laplacians, axes=1)
    spread = np.tensordot(probabilities * (1.0 - probabilities), laplacians, axes=1)
    beside, square = np.eye(nodes) - 1.0 / nodes, mean @ mean + 2.0 * spread

    def factor(weight: float) -> float:
        return float(np.linalg.eigvalsh(beside - 2.0 * weight * mean + weight**2 * square)[-1])

    best = minimize_scalar(factor, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    return float(best.x), float(best.fun)
