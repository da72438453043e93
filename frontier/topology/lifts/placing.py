"""Which server is where on given links: so that all send and forward about as much."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints

_EVEN = 1e-9
"""Relative difference of bytes, or of a sum of squares, that counts as rounding."""


def line_heads(heads: Ints) -> Ints:
    """(n d, d) far ends of the links of a line digraph: the link v d + a leads to those out of ``heads[v, a]``.

    Where few walks of ``heads`` meet, fewer do here, as there is one way from a link to all out of one server.

    References
    ----------
    M. A. Fiol, J. L. A. Yebra, I. Alegre, "Line digraph iterations and the (d, k) digraph problem", IEEE Trans.
    Computers C-33(5), 1984.
    """
    return np.ascontiguousarray(heads.reshape(-1, 1) * heads.shape[1] + np.arange(heads.shape[1]))


def placed(heads: Ints, traffic: Floats, rng: np.random.Generator) -> Ints:
    """The same links under names of servers that make the bytes which each sends and forwards equal.

    What a server exchanges with all others is taken for the same with each, along all shortest paths. From random
    places on, two servers change theirs as long as the sum of squares of what is sent and forwarded falls. Nothing
    changes where traffic is the same from all, or where some server cannot reach another.
    """
    weight = traffic.sum(axis=0) + traffic.sum(axis=1)
    n, d = heads.shape
    links = np.zeros((n, n))
    np.add.at(links, (np.repeat(np.arange(n), d), heads.ravel()), 1.0)
    hops = shortest_path(csr_array(links), unweighted=True)
    if np.ptp(weight) <= _EVEN * weight.max() or not np.isfinite(hops).all():
        return heads
    # Bytes that the second sends out if the first exchanges one with everybody, each way.
    back = _passed_on(links.T, hops.T) + 1.0
    np.fill_diagonal(back, 0.0)
    sends = _passed_on(links, hops) + back
    gram = sends @ sends.T
    distance = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
    server = rng.permutation(n)
    while True:
        there = weight[server]
        volume = there @ sends
        along = sends @ volume
        more = there[None, :] - there[:, None]
        rise = 2 * more * (along[:, None] - along[None, :]) + more**2 * distance
        i, j = np.unravel_index(rise.argmin(), rise.shape)
        if rise[i, j] >= -_EVEN * float(volume @ volume):
            break
        server[[i, j]] = server[[j, i]]
    names = np.empty_like(heads)
    names[server] = server[heads]
    return names


def _passed_on(links: Floats, hops: Floats) -> Floats:
    """(n, n) bytes that the second hands on of what the first sends to everybody, split over all shortest paths."""
    levels = range(1, int(hops.max()) + 1)
    paths = np.eye(len(links))
    for level in levels:
        paths += np.where(hops == level, (paths * (hops == level - 1)) @ links, 0.0)
    passed = np.zeros_like(paths)
    for level in reversed(levels):
        due = np.where(hops == level, (1.0 + passed) / paths, 0.0)
        passed += np.where(hops == level - 1, paths * (due @ links.T), 0.0)
    return passed
