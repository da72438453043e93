"""A graph in parts of about equal weight with little weight of edges between them, by METIS."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pymetis

_LARGEST = 1_000_000
"""Of all weights of nodes together, as METIS takes them in whole numbers; edges likewise."""


def partition(
    node_weights: Sequence[float],
    edges: Sequence[tuple[int, int]],
    edge_weights: Sequence[float],
    parts: int,
    imbalance: float = 0.03,
    seed: int = 0,
) -> npt.NDArray[np.int64]:
    """The part, 0 .. ``parts`` - 1, of each node.

    Parameters
    ----------
    node_weights : sequence of n float
        Not negative.
    edges : sequence of (int, int)
        Without direction; parallel ones count together, loops not at all.
    edge_weights : sequence of float
        Not negative.
    parts : int
    imbalance : float
        By which the heaviest part may exceed the average.
    seed : int

    References
    ----------
    G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM Journal on
    Scientific Computing 20(1), 1998.
    """
    count = len(node_weights)
    if parts <= 1 or count <= 1:
        return np.zeros(count, dtype=np.int64)
    beside: list[dict[int, float]] = [{} for _ in range(count)]
    for (one, other), weight in zip(edges, edge_weights, strict=True):
        if one != other:
            beside[one][other] = beside[one].get(other, 0.0) + weight
            beside[other][one] = beside[other].get(one, 0.0) + weight
    options = pymetis.Options(ufactor=max(1, round(1000 * imbalance)), seed=seed % 2**31)
    starts = np.cumsum([0] + [len(each) for each in beside])
    weights = _whole([weight for each in beside for weight in each.values()])
    _, found = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(starts.tolist(), [other for each in beside for other in each]),
        vweights=_whole(node_weights),
        eweights=weights,
        options=options,
        recursive=parts <= 8,
    )
    return np.array(found, dtype=np.int64)


def _whole(weights: Sequence[float]) -> list[int]:
    total = sum(weights) or 1.0
    return [max(1, round(_LARGEST * weight / total)) for weight in weights]
