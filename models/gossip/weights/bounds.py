"""Bounds for the problem ``weights`` that need no solver."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ddlopt.models.gossip.spectral.certificates import spectral_bound
from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.models.tolerances import IMPROVEMENT_TOL

_MANY_NODES = 1000
"""From which eigenvectors take too long for a bound that every result has."""


def weights_bound(instance: WeightsInstance) -> float:
    r"""The best of what the graph's distances and two simple certificates prove.

    *Distances*, for goals ``averaging`` and ``chain``: after k rounds the value of node i has reached the b nodes
    within distance k and no other. Of all vectors with sum 1 on b nodes the constant one is nearest to the average, at
    a squared distance of :math:`1/b - 1/n` from it, and the start was at :math:`1 - 1/n`, so

    .. math:: \rho \ge \left( \frac{n/b - 1}{n - 1} \right)^{1/2k} .

    *Certificates*: the projection off the all-one vector, and that of the eigenvectors of the Laplacian for its second
    smallest eigenvalue (:func:`~ddlopt.models.gossip.spectral.certificates.spectral_bound`). With more than 1000 nodes
    these take seconds, which count beyond a time limit: then there are the distances alone for the first two goals, and
    the first certificate for the others.
    """
    n = instance.size
    ends = instance.network.ends
    adjacency = csr_array((np.ones(len(ends)), tuple(ends.T)), shape=(n, n))
    if n > _MANY_NODES:
        if instance.goal in ("averaging", "chain"):
            return _by_distance(shortest_path(adjacency, directed=False, unweighted=True))
        return spectral_bound(instance, np.eye(n))
    laplacian = np.diag(instance.network.degrees.astype(float)) - (adjacency + adjacency.T).toarray()
    values, vectors = np.linalg.eigh(laplacian)
    slow = vectors[:, 1:][:, values[1:] <= values[1] * (1 + IMPROVEMENT_TOL)]
    found = [spectral_bound(instance, np.eye(n)), spectral_bound(instance, slow @ slow.T)]
    if instance.goal == "process":
        return min(found)
    if instance.goal in ("averaging", "chain"):
        found.append(_by_distance(shortest_path(adjacency, directed=False, unweighted=True)))
    return max(found)


def _by_distance(distance: np.ndarray) -> float:
    n, best = len(distance), 0.0
    for rounds in range(1, int(distance.max())):
        within = int((distance <= rounds).sum(axis=1).min())
        best = max(best, ((n / within - 1.0) / (n - 1.0)) ** (0.5 / rounds))
    return best
