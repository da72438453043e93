r"""A lower bound on the factor over a box of probabilities: a program that is convex in them and in the weights.

With :math:`y_e = p_e w_e` the factor of independent matchings is the largest eigenvalue of

.. math:: P - 2 L(y) + L(y)^2 + 2 \sum_e \frac{1 - p_e}{p_e} y_e^2\, a_e a_e^\top .

It is not convex in p and y together, as :math:`p / (1 - p)` is convex in p. Where :math:`l \le p \le u`, its secant
:math:`\phi(p) \ge p / (1 - p)` is affine, and :math:`y^2 / \phi(p)` is convex in both: a relaxation, which is exact at
the ends of the box, so that a branch and bound over boxes converges. With :math:`l = 0` the term is
:math:`(1 - u)\, y^2 / p`; with :math:`u = 1` it is 0. Ours.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints, between, laplacian, on_edges


@dataclass(frozen=True)
class RelaxedMoment:
    r"""The convex problem of a box: variables p in :math:`l \le p \le u`, :math:`D p \le f`, and y.

    Parameters
    ----------
    nodes : int
    ends : (m, 2) array
    owners : (m,) array of int
        The variable that is the probability of each edge.
    low, high : (q,) array
    rows : (r, q) sparse array
        D.
    limits : (r,) array
        f.
    """

    nodes: int
    ends: Ints
    owners: Ints
    low: Floats
    high: Floats
    rows: sparse.csr_array
    limits: Floats

    @cached_property
    def secants(self) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """(m,) slopes and offsets of φ for each edge, and where φ is infinite."""
        low, high = self.low[self.owners], self.high[self.owners]
        infinite = high >= 1.0
        top = np.divide(high, 1.0 - high, out=np.ones(len(high)), where=~infinite)
        bottom = np.divide(low, 1.0 - low, out=np.ones(len(high)), where=~infinite)
        wide = ~infinite & (high > low)
        slopes = np.divide(top - bottom, high - low, out=np.zeros(len(high)), where=wide)
        return slopes, np.where(wide, bottom - slopes * low, top), infinite

    def inverses(self, point: Floats) -> Floats:
        """(m,) 1/φ at (q,) variables."""
        slopes, offsets, infinite = self.secants
        found: Floats = np.where(infinite, 0.0, 1.0 / (slopes * point[self.owners] + offsets))
        return found

    def matrix(self, y: Floats, point: Floats) -> Floats:
        """(n, n) the relaxed E[W²] − J."""
        mean = laplacian(self.nodes, self.ends, y)
        found = mean @ mean - 2.0 * mean + laplacian(self.nodes, self.ends, 2.0 * self.inverses(point) * y**2)
        found[np.diag_indices(self.nodes)] += 1.0
        found -= 1.0 / self.nodes
        return (found + found.T) / 2.0

    def bound(self, matrix: Floats, point: Floats, prices: Floats) -> float:
        r"""At most the factor of all probabilities of the box and all weights, from any matrix and any prices.

        :math:`f(p, y) = \langle X, \cdot \rangle` is convex: it is at least its value at a point, and what the
        derivatives by p and y lose from there. The former lose at most
        :math:`\sum_j \min_{l_j \le p_j \le u_j} (c + D^\top \pi)_j p_j - f^\top \pi - c^\top p` with prices
        :math:`\pi \ge 0`; the latter are 0 but for rounding, and y of which one exceeds 1 have a factor above 1.

        Parameters
        ----------
        matrix : (n, n) array
            Made positive semidefinite with trace 1.
        point : (q,) array
            Within the box.
        prices : (r,) array
            π at the scale of the matrix.
        """
        positive, scale = unit_positive(matrix)
        own, inverse = on_edges(positive, self.ends), self.inverses(point)
        quadratic = between(np.eye(self.nodes), self.ends) * between(positive, self.ends)
        quadratic[np.diag_indices(len(own))] += 2.0 * inverse * own
        # As for given probabilities: the bound holds whatever is found.
        y: Floats = np.linalg.lstsq(quadratic, own, rcond=1e-14)[0].astype(np.float64)
        left = own - quadratic @ y
        value = 1.0 - 2.0 * own @ y + y @ quadratic @ y - 2.0 * np.abs(left) @ (1.0 + np.abs(y))
        slopes = -2.0 * own * (y * inverse) ** 2 * self.secants[0]
        change = np.bincount(self.owners, weights=slopes, minlength=len(self.low))
        kept = np.maximum(0.0, prices) / scale
        reduced = change + self.rows.T @ kept
        value += np.minimum(reduced * self.low, reduced * self.high).sum() - kept @ self.limits - change @ point
        # Rounding of sums of this many terms, as large as these
        rounding = 1e-15 * (len(own) + len(kept)) * (1.0 + kept @ np.abs(self.limits) + np.abs(change).sum())
        return max(0.0, min(1.0, float(value - rounding)))
