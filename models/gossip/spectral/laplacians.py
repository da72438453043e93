"""Laplacians of weighted graphs as arrays, and quadratic forms in the vectors of edges."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def laplacian(nodes: int, ends: Ints, weights: Floats) -> Floats:
    r"""(n, n) :math:`\sum_e w_e a_e a_e^\top`, with :math:`a_e = e_i - e_j` for edge e = (i, j)."""
    i, j = ends.T
    found = np.zeros((nodes, nodes))
    found[i, j] = found[j, i] = -weights
    found[np.arange(nodes), np.arange(nodes)] = np.bincount(
        ends.ravel(), weights=np.repeat(weights, 2), minlength=nodes
    )
    return found


def between(matrix: Floats, ends: Ints) -> Floats:
    r"""(m, m) :math:`a_e^\top X a_f` of an (n, n) matrix for all pairs of edges."""
    first, second = ends.T
    rows = np.ascontiguousarray((matrix[first] - matrix[second]).T)
    found: Floats = (rows[first] - rows[second]).T
    return found


def on_edges(matrix: Floats, ends: Ints) -> Floats:
    r"""(m,) :math:`a_e^\top M a_e` of a symmetric matrix M."""
    i, j = ends.T
    found: Floats = matrix[i, i] + matrix[j, j] - 2.0 * matrix[i, j]
    return found


def centred(matrix: Floats) -> Floats:
    """P M P with P = I − 11ᵀ/n, of a symmetric matrix M; symmetric in spite of rounding."""
    rows = matrix - matrix.mean(axis=0)
    rows = rows - rows.mean(axis=1)[:, None]
    found: Floats = (rows + rows.T) / 2.0
    return found
