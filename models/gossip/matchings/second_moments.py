r"""The matrix whose largest eigenvalue is the factor of gossip on matchings, and bounds on it from any matrix.

With :math:`y_e = p_e w_e`, where :math:`p_e` is the probability of the matching that edge e is in, matchings that are
active independently have

.. math:: \mathbb{E}[W^2] = I - 2 L(y) + L(y)^2 + 2 \sum_e p_e (1 - p_e) w_e^2\, a_e a_e^\top ,

as edges of one matching do not meet, so that :math:`L_j(w)^2 = 2 \sum_{e \in M_j} w_e^2 a_e a_e^\top`. Where a single
matching is active,

.. math:: \mathbb{E}[W^2] = I - 2 \sum_e p_e (w_e - w_e^2)\, a_e a_e^\top .

Either is convex in w (in the order of positive semidefinite matrices): it is a mean of squares of matrices affine in w.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ddlopt.models.gossip.spectral.laplacians import Floats, Ints, between, centred, laplacian, on_edges
from ddlopt.models.tolerances import ROUNDING


@dataclass(frozen=True)
class SecondMoment:
    """E[W²] − J for given probabilities, as a function of weights.

    Parameters
    ----------
    nodes : int
    ends : (m, 2) array
    chances : (m,) array
        Of each edge: the probability of its matching.
    independent : bool
        Or a single matching is active in a round.
    """

    nodes: int
    ends: Ints
    chances: Floats
    independent: bool = True

    @property
    def spread(self) -> Floats:
        """(m,) with what half of the squares of weights count on single edges."""
        return self.chances * (1.0 - self.chances) if self.independent else self.chances

    def matrix(self, weights: Floats) -> Floats:
        """(n, n) E[W²] − J."""
        mean = laplacian(self.nodes, self.ends, self.chances * weights)
        found = -2.0 * mean + laplacian(self.nodes, self.ends, 2.0 * self.spread * weights**2)
        if self.independent:
            found += mean @ mean
        found[np.diag_indices(self.nodes)] += 1.0
        found -= 1.0 / self.nodes
        return (found + found.T) / 2.0

    def factor(self, weights: Floats) -> float:
        """Its largest eigenvalue."""
        return float(np.linalg.eigvalsh(self.matrix(weights))[-1])

    @cached_property
    def meeting(self) -> Floats:
        r"""(m, m) :math:`p_e p_f\, a_e^\top a_f`, or 0 where matchings are not active together."""
        if not self.independent:
            return np.zeros((len(self.ends),) * 2)
        return between(np.eye(self.nodes), self.ends) * np.outer(self.chances, self.chances)

    def quadratic(self, matrix: Floats) -> tuple[Floats, Floats]:
        r"""Coefficients b and Q of :math:`\langle X, \mathbb{E}[W^2] - J \rangle = 1 - 2 b^\top w + w^\top Q w`.

        Parameters
        ----------
        matrix : (n, n) array
            X: symmetric, trace 1, without a share of the all-one vector.
        """
        own = on_edges(matrix, self.ends)
        quadratic = self.meeting * between(matrix, self.ends)
        quadratic[np.diag_indices(len(own))] += 2.0 * self.spread * own
        return self.chances * own, quadratic

    def slopes(self, weights: Floats, matrix: Floats) -> Floats:
        r"""(m,) derivatives of :math:`\langle X, \mathbb{E}[W^2] - J \rangle` by the chance of each edge.

        Those of the edges of a matching add up to that by its probability: with independent matchings
        :math:`\sum_e w_e (2 a_e^\top X L(y) a_e - 2 x_e + 2 (1 - 2 p_e) w_e x_e)`, where
        :math:`x_e = a_e^\top X a_e`.
        """
        own = on_edges(matrix, self.ends)
        if not self.independent:
            return 2.0 * own * (weights**2 - weights)
        mean = laplacian(self.nodes, self.ends, self.chances * weights)
        product = matrix @ mean
        both = on_edges((product + product.T) / 2.0, self.ends)
        return 2.0 * weights * (both - own + (1.0 - 2.0 * self.chances) * weights * own)

    def best_for(self, matrix: Floats, mixing: Floats | None = None) -> tuple[float, Floats]:
        r"""The least :math:`\langle X, \mathbb{E}[W^2] - J \rangle` of all weights, which is below all their factors.

        Any matrix gives a bound: it is made positive semidefinite with trace 1 first. For weights y with residual
        :math:`r = b - Qy` the bound is :math:`f(y) - 2 |r|^\top (k + |y|)`, as the function is convex, and weights of
        which one exceeds :math:`k_e = p_e^{-1/2}` have a factor above 1: then
        :math:`p_e w_e^2 \le \mathbb{E}[W_{ij}^2] \le \mathbb{E}[W^2]_{ii}` would be above 1.

        Parameters
        ----------
        matrix : (n, n) array
        mixing : (m, q) array, optional
            Weights of edges from fewer variables, each of which is the weight of the edges in its column.

        Returns
        -------
        bound : float
            At most the factor of any weights, and at most 1.
        variables : (q,) array
        """
        b, quadratic = self.quadratic(unit_positive(matrix)[0])
        most = np.divide(1.0, np.sqrt(self.chances), out=np.zeros(len(b)), where=self.chances > 0)
        if mixing is not None:
            b, quadratic = mixing.T @ b, mixing.T @ quadratic @ mixing
            most = (mixing * most[:, None]).max(axis=0)
        # As numpy's own default for some fifty columns; the bound holds whatever is found.
        found: Floats = np.linalg.lstsq(quadratic, b, rcond=1e-14)[0].astype(np.float64)
        left = b - quadratic @ found
        value = 1.0 - 2.0 * b @ found + found @ quadratic @ found
        return max(0.0, float(value - 2.0 * np.abs(left) @ (most + np.abs(found)))), found


def unit_positive(matrix: Floats) -> tuple[Floats, float]:
    """A positive semidefinite matrix of trace 1 without a share of the all-one vector, and what it was divided by."""
    values, vectors = np.linalg.eigh(centred(matrix))
    positive = centred((vectors * np.maximum(values, 0.0)) @ vectors.T)
    scale = float(np.trace(positive))
    if scale <= ROUNDING * np.abs(values).sum():  # nothing but rounding
        n = len(matrix)
        return (np.eye(n) - 1.0 / n) / (n - 1.0), 1.0
    return positive / scale, scale


def activation_bound(
    matrix: Floats, parts: list[tuple[Ints, float, float]], budget: float, single_price: float | None = None
) -> float:
    r"""A bound from above on :math:`\lambda_2(\sum_j p_j L_j)` under a budget, from any matrix.

    With :math:`Z \succeq 0` of trace 1 without a share of the all-one vector and :math:`z_j = \langle Z, L_j \rangle`,
    :math:`\lambda_2 \le \sum_j p_j z_j`, and by duality of linear programs that is at most

    .. math:: \lambda B + \mu + \sum_j c_j (z_j - \lambda t_j - \mu)^+

    for any :math:`\lambda, \mu \ge 0`; the best λ is one of :math:`(z_j - \mu)/t_j`, or 0.

    Parameters
    ----------
    matrix : (n, n) array
    parts : list of (k, 2) array, float, float
        Ends of the edges of each matching, its time, and the most that its probability may be.
    budget : float
    single_price : float, optional
        μ, where probabilities add up to 1 at most, at the scale of the matrix.
    """
    positive, scale = unit_positive(matrix)
    z = np.array([on_edges(positive, ends).sum() for ends, _, _ in parts])
    times, most = (np.array([part[place] for part in parts]) for place in (1, 2))
    price = 0.0 if single_price is None else max(0.0, single_price) / scale
    candidates = np.maximum(0.0, np.append((z - price) / times, 0.0))
    left = np.maximum(0.0, z[None, :] - candidates[:, None] * times - price)
    return float((candidates * budget + price + left @ most).min())
