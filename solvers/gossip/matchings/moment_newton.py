r"""The best weights for given probabilities of matchings, by Newton's method on a barrier.

    min s  subject to  s P − (E[W²] − J) ⪰ 0 beside the all-one vector, with P = I − J and weights w = E y.

The mean of squares is convex, and :math:`-\ln\det(sP - \mathbb{E}[W^2] + 2J)` is, up to a constant, the barrier of the
semidefinite program with a block :math:`\begin{pmatrix} sI & R^\top \\ R & I \end{pmatrix}` in which
:math:`R^\top R = \mathbb{E}[W^2] - J`: so Newton's method follows its path as it would in that program, whose matrices
are larger by the number of matchings. Derivatives by weights have rank two, :math:`a_e u_e^\top + u_e a_e^\top` with
:math:`u_e = p_e L(y) a_e + (2 v_e w_e - p_e) a_e`, which makes the Hessian elementwise:

.. math:: H = 2 (U^\top K A) \circ (U^\top K A)^\top + 2 (U^\top K U) \circ (A^\top K A) + \dots

A point of the path gives the matrix K for the bound of
:meth:`~ddlopt.models.gossip.matchings.second_moments.SecondMoment.best_for`. That program and its path are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ddlopt.models.gossip.matchings.second_moments import SecondMoment
from ddlopt.models.gossip.spectral.laplacians import Floats, between, laplacian, on_edges


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    faster: float = 20.0
    """Growth of the barrier's price a stage, in the usual range of 10 to 100."""
    steps: int = 60
    """Far more than Newton's method takes a stage; whatever it ends at is feasible and has a bound."""
    stages: int = 40
    """20^12 is beyond any gap: it ends earlier."""
    near: float = 1e-2
    """Squared Newton decrement from which on full steps converge quadratically."""
    centred: float = 1e-6
    """Squared Newton decrement at which a point counts as the centre."""
    nothing: float = 1e-13
    """A factor that rounding cannot tell from 0."""


_EFFORT = Effort()


class Mixed(NamedTuple):
    """Weights, their factor, a bound on the factor of all weights, and the matrix that gives it."""

    weights: Floats
    factor: float
    bound: float
    multiplier: Floats


def best_weights(
    moment: SecondMoment,
    gap: float,
    mixing: Floats | None = None,
    expired: Callable[[], bool] = lambda: False,
    most: float = np.inf,
) -> Mixed:
    """The weights with the least factor, unless that is proven to be too large.

    Parameters
    ----------
    moment : SecondMoment
    gap : float
        Relative gap at which it ends.
    mixing : (m, q) array, optional
        E: which edges share a weight; each has its own where none is given.
    expired : callable
        Whether it has to stop.
    most : float
        A factor; it ends when all weights have larger ones.
    """
    path = _Path(moment, mixing)
    y, s = np.zeros(len(moment.ends) if mixing is None else mixing.shape[1]), 2.0
    best = Mixed(path.weights(y), moment.factor(path.weights(y)), 0.0, np.eye(moment.nodes))
    price = float(moment.nodes)
    for _ in range(_EFFORT.stages):
        try:
            y, s = path.centre(y, s, price)
            inverse = path.inverse(y, s)
        except (LinAlgError, np.linalg.LinAlgError):
            break
        bound, suggested = moment.best_for(inverse, mixing)
        for candidate in (y, suggested):
            weights = path.weights(candidate)
            factor = moment.factor(weights)
            if factor < best.factor:
                best = best._replace(weights=weights, factor=factor)
        if bound >= best.bound:
            best = best._replace(bound=bound, multiplier=inverse)
        if best.factor - best.bound <= max(gap * best.factor, _EFFORT.nothing) or best.bound > most or expired():
            break
        price *= _EFFORT.faster
    return best


class _Path:
    """Points where s · price − ln det is least."""

    def __init__(self, moment: SecondMoment, mixing: Floats | None) -> None:
        self.moment = moment
        self._mixing = None if mixing is None else sparse.csr_array(mixing)

    def weights(self, y: Floats) -> Floats:
        """(m,) of the edges, from the variables."""
        found: Floats = y if self._mixing is None else self._mixing @ y
        return found

    def _slopes(self, of_edges: Floats) -> Floats:
        """(q, ...) derivatives by the variables, from those by the weights of edges in rows."""
        found: Floats = of_edges if self._mixing is None else self._mixing.T @ of_edges
        return found

    def slack(self, y: Floats, s: float) -> Floats:
        """(n, n) sP − (E[W²] − J) + J."""
        n = self.moment.nodes
        found = -self.moment.matrix(self.weights(y))
        found += (1.0 - s) / n
        found[np.diag_indices(n)] += s
        return found

    def inverse(self, y: Floats, s: float) -> Floats:
        """K, the inverse of the slack."""
        factor = cho_factor(self.slack(y, s), check_finite=False)
        whole = cho_solve(factor, np.eye(self.moment.nodes), check_finite=False)
        found: Floats = (whole + whole.T) / 2.0
        return found

    def value(self, y: Floats, s: float, price: float) -> float:
        """The barrier function; infinite outside."""
        try:
            factor = np.linalg.cholesky(self.slack(y, s))
        except np.linalg.LinAlgError:
            return np.inf
        return float(price * s - 2.0 * np.log(factor.diagonal()).sum())

    def centre(self, y: Floats, s: float, price: float) -> tuple[Floats, float]:
        """Newton's method from a point inside."""
        value, before = self.value(y, s, price), np.inf
        for _ in range(_EFFORT.steps):
            gradient, hessian = self._derivatives(y, s, price)
            # A Hessian that is singular but for rounding has a Cholesky factor all the same.
            hessian[np.diag_indices(len(hessian))] *= 1.0 + 1e-13
            # As above, where a whole row is 0.
            hessian[np.diag_indices(len(hessian))] += 1e-14 * hessian.diagonal().max()
            move = -cho_solve(cho_factor(hessian, check_finite=False), gradient, check_finite=False)
            decrease = float(-gradient @ move)
            if not 0 < decrease < before:
                break
            length, found = 1.0, self.value(y + move[:-1], s + move[-1], price)
            if decrease < _EFFORT.near:
                # Full steps converge quadratically from here, and rounding hides whether they decrease the function.
                before = decrease
            else:
                # Thirty-three halvings: no step decreases it any more.
                while not found <= value - 0.1 * length * decrease and length > 1e-10:
                    length /= 2.0
                    found = self.value(y + length * move[:-1], s + length * move[-1], price)
            # As above.
            if not np.isfinite(found) or length <= 1e-10:
                break
            y, s, value = y + length * move[:-1], s + length * float(move[-1]), found
            if decrease < _EFFORT.centred:
                break
        return y, s

    def _derivatives(self, y: Floats, s: float, price: float) -> tuple[Floats, Floats]:
        moment, ends = self.moment, self.moment.ends
        weights, chances, spread = self.weights(y), moment.chances, moment.spread
        inverse = self.inverse(y, s)
        # The derivative of the moment by an edge is a_e d_eᵀ + d_e a_eᵀ with d_e = (own_e + p_e L(pw)) a_e.
        own, inner = 2.0 * spread * weights - chances, between(inverse, ends)
        both, along = own[:, None] * inner, np.outer(own, own) * inner
        mixed = own * on_edges(inverse @ inverse, ends)
        if moment.independent:
            mean = laplacian(moment.nodes, ends, chances * weights)
            product = mean @ inverse
            further = chances[:, None] * between(product, ends)
            both += further
            along += further * own + (further * own).T
            along += np.outer(chances, chances) * between(product @ mean, ends)
            squared = product @ inverse
            mixed += chances * on_edges((squared + squared.T) / 2.0, ends)
        hessian = 2.0 * (both * both.T + along * inner + moment.meeting * inner)
        # Of the edge itself, the meeting already holds its square in L(y)².
        hessian[np.diag_indices(len(weights))] += 4.0 * spread * on_edges(inverse, moment.ends)
        whole = np.empty((len(y) + 1,) * 2)
        whole[:-1, :-1] = self._slopes(self._slopes(hessian).T)
        whole[:-1, -1] = whole[-1, :-1] = self._slopes(-2.0 * mixed)
        whole[-1, -1] = float((inverse * inverse).sum()) - 1.0
        slope = self._slopes(2.0 * both.diagonal())
        return np.append(slope, price - (float(np.trace(inverse)) - 1.0)), whole
