r"""Bounds on what weights can reach, from any matrix: nothing is believed of the one who offers it.

For a symmetric Z let :math:`z_e = a_e^\top Z a_e`, after the all-one vector has been projected out of it. Then

* *averaging*: if :math:`z_e = 0` for all edges, :math:`\rho \ge \operatorname{tr} Z / \|Z\|_*` with the sum of
  absolute eigenvalues :math:`\|Z\|_*`, as
  :math:`\|Z\|_* \rho \ge \langle Z, W - J \rangle = \operatorname{tr} Z - \sum_e w_e z_e`. Any Z is made one of
  these by taking away :math:`\sum_e y_e a_e a_e^\top` with :math:`(A^\top A)^{\circ 2} y = z`, whose matrix has no
  eigenvalue below 2, as that of no line graph is below −2;
* *chain*: with :math:`\|Z\|_* = 1`, :math:`\rho \ge \operatorname{tr} Z - \sum_i u_i` for any :math:`u \ge 0` with
  :math:`u_i + u_j \ge z_e` for e = (i, j), as the weights at a node add up to 1 at most. Where Z
  does not keep this, it is changed in the same way;
* *process*: with :math:`Z \succeq 0` and trace 1, :math:`\lambda_2 \le B \max_e z_e / c_e`;
* *pairwise*: with the same, :math:`\lambda_2(\bar W) \ge 1 - \frac{1}{2n} \sum_i \max_{j} z_{ij}`, as what node i
  gives to its neighbours adds up to 1 at most.

What rounding leaves of :math:`z_e` in the first two counts in full: where :math:`\rho \le 1`, no entry of W, so no
weight, is larger than 1.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints, centred, laplacian, on_edges
from ddlopt.models.gossip.weights.instance import WeightsInstance


def spectral_bound(instance: WeightsInstance, matrix: Floats, node_prices: Floats | None = None) -> float:
    """The bound that a symmetric (n, n) ``matrix`` gives, from below, or from above for goal ``process``.

    ``node_prices`` are a suggestion for u of goal ``chain``, at the scale of the matrix; 0 where none is given.
    """
    ends, (z, prices) = instance.network.ends, best_matrix(instance, matrix, node_prices)
    if instance.goal in ("averaging", "chain"):
        return _two_sided(instance, z, prices)
    share = on_edges(unit_positive(z)[0], ends)
    if instance.goal == "process":
        assert instance.budget is not None
        return float(instance.budget * (share / np.array(instance.costs or 1.0)).max())
    best = np.zeros(instance.size)
    np.maximum.at(best, ends.ravel(), np.repeat(share, 2))
    return float(1.0 - best.sum() / (2.0 * instance.size))


def best_matrix(instance: WeightsInstance, matrix: Floats, node_prices: Floats | None) -> tuple[Floats, Floats]:
    """(n, n) the matrix and (n,) the prices from which :func:`spectral_bound` concludes."""
    z, prices = centred(matrix), np.zeros(instance.size)
    if instance.goal not in ("averaging", "chain"):
        return z, prices
    if instance.goal == "chain" and node_prices is not None:
        prices = np.maximum(0.0, node_prices)
    return _corrected(instance, z, prices), prices


def _corrected(instance: WeightsInstance, z: Floats, prices: Floats) -> Floats:
    n, ends = instance.size, instance.network.ends
    share = _Gram(n, ends)
    for _ in range(2):  # the second time takes away what rounding left the first time
        z = z - laplacian(n, ends, share.solved(_excess(instance, z, prices)))
    return z


def _two_sided(instance: WeightsInstance, z: Floats, prices: Floats) -> float:
    n = instance.size
    left = np.abs(_excess(instance, z, prices)).sum()
    scale = np.abs(np.linalg.eigvalsh(z)).sum()
    # ⟨Z, I − J⟩: what is left of the projection is not quite orthogonal to the all-one vector any more.
    reached = np.trace(z) - z.sum() / n - prices.sum() - left
    return max(0.0, float(reached / scale)) if scale > 0 else 0.0


def _excess(instance: WeightsInstance, z: Floats, prices: Floats) -> Floats:
    """(m,) what stands between a matrix and a certificate."""
    i, j = instance.network.ends.T
    excess = on_edges(z, instance.network.ends)
    if instance.goal == "chain":
        excess = np.maximum(0.0, excess - prices[i] - prices[j])
    return excess


class _Gram:
    r"""The (m, m) squares of the products of edge vectors: 4 on the diagonal, 1 where two edges meet.

    That is :math:`2I + B^\top B` with the incidence matrix B without signs, so by the formula of Woodbury it is solved
    with a matrix of n rows.
    """

    def __init__(self, nodes: int, ends: Ints) -> None:
        m = len(ends)
        places = (ends.ravel(), np.repeat(np.arange(m), 2))
        self._incidence = sparse.csr_array((np.ones(2 * m), places), shape=(nodes, m))
        inner = (self._incidence @ self._incidence.T).toarray()
        inner[np.diag_indices(nodes)] += 2.0
        self._factor = cho_factor(inner, overwrite_a=True, check_finite=False)

    def solved(self, values: Floats) -> Floats:
        """(m,) the solution for (m,) ``values``."""
        taken = self._incidence.T @ cho_solve(self._factor, self._incidence @ values, check_finite=False)
        found: Floats = (values - taken) / 2.0
        return found
