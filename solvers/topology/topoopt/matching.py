"""Links for model-parallel traffic by repeated matching, each further link between a pair being worth less."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.routing import Pair

Floats = npt.NDArray[np.float64]

_STEPS = 2**30
"""rustworkx matches with integer weights: this is the number of steps between nothing and the largest weight, and of
those between two of them for breaking ties."""


def heaviest_matching(
    weights: Floats, allowed: npt.NDArray[np.bool_], rng: np.random.Generator, perfect: bool = False
) -> list[Pair]:
    """A matching of largest total weight, by Edmonds' blossom algorithm; one at random among equals.

    Random ties matter: with equal traffic between all pairs, ties broken by number would join neighbours only.

    Parameters
    ----------
    weights : (n, n) array
        Symmetric and not negative; only i < j is read.
    allowed : (n, n) array
        Pairs that may be matched.
    rng : Generator
        Of the ties.
    perfect : bool
        Match as many servers as possible first, and consider weights only then; otherwise only pairs of positive
        weight are matched.

    Returns
    -------
    list of (int, int)
        Pairs i < j, sorted.
    """
    candidates = np.argwhere(np.triu(allowed & (perfect | (weights > 0)), 1))
    if not len(candidates):
        return []
    import rustworkx as rx  # takes long, and most designs have no matchings

    values = weights[candidates[:, 0], candidates[:, 1]]
    steps = np.rint(values / (values.max() or 1.0) * _STEPS).astype(np.int64)
    # All tie-breakers of a matching together stay below one step of weight.
    scaled = (steps * _STEPS + rng.integers(0, _STEPS // len(weights), len(steps))).tolist()
    graph = rx.PyGraph()
    graph.add_nodes_from(range(len(weights)))
    graph.add_edges_from([(i, j, w) for (i, j), w in zip(candidates.tolist(), scaled, strict=True)])
    matched = rx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matched)


def repeated_matching(
    draft: Draft,
    demand_bytes: Floats,
    rounds: int | None,
    rng: np.random.Generator,
    perfect: bool = False,
    diminishing: Literal["halving", "harmonic"] = "halving",
) -> list[Pair]:
    """Lay one two-way link per pair of a heaviest matching on the free ports, again and again.

    Parameters
    ----------
    draft : Draft
        Gets the links.
    demand_bytes : (n, n) array
        Symmetric worth of a first link.
    rounds : int or None
        Matchings wanted; None goes on until no free port is worth joining.
    rng : Generator
        Of ties between matchings.
    perfect : bool
        As in :func:`heaviest_matching`.
    diminishing : {"halving", "harmonic"}
        A pair's worth after c links is 1/2**c or 1/(c+1) of what it was.

    Returns
    -------
    list of (int, int)
        The pairs joined, in order, repeated where joined again.
    """
    residual: Callable[[int], float] = (lambda c: 0.5**c) if diminishing == "halving" else (lambda c: 1 / (c + 1))
    laid = np.zeros(demand_bytes.shape, dtype=int)
    worth = demand_bytes.astype(float)
    joined: list[Pair] = []
    while rounds is None or rounds > 0:
        pairs = heaviest_matching(worth, draft.joinable(), rng, perfect)
        if not pairs:
            break
        draft.add(draft.two_way(pairs))
        for i, j in pairs:
            laid[i, j] += 1
            worth[i, j] = worth[j, i] = demand_bytes[i, j] * residual(int(laid[i, j]))
        joined += pairs
        rounds = None if rounds is None else rounds - 1
    return joined
