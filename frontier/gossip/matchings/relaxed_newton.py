r"""Newton's method on the barrier of the convex problem of a box.

    min s  subject to  s P − M(y, p) ⪰ 0 beside the all-one vector,  l ≤ p ≤ u,  D p ≤ f.

M, see :mod:`~ddlopt.models.gossip.matchings.relaxed_moments`, is convex in (y, p), so −ln det(sP − M + J) is, too. The
derivatives by y have rank two, :math:`a u^\top + u a^\top` with :math:`u_e = L(y) a_e + (2 y_e / \phi_e - 1) a_e`,
those by p are multiples of :math:`a a^\top`: the Hessian is elementwise.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.spectral.laplacians import Floats, between, laplacian, on_edges

# As in moment_newton: growth of the barrier's price a stage, steps a stage, stages.
_FASTER, _STEPS, _STAGES = 20.0, 40, 12
# Squared Newton decrement at which a stage ends: a point near the path has nearly the bound of the path.
_CENTRED = 1e-3


class Relaxed(NamedTuple):
    """A point of the box, its relaxed factor, the bound of the whole box, and the matrix and the loan that prove it."""

    point: Floats
    y: Floats
    factor: float
    bound: float
    multiplier: Floats
    lent: Floats


def relaxed(box: RelaxedMoment, inside: Floats, enough: Callable[[float, float], bool]) -> Relaxed:
    """The least relaxed factor of a box.

    Parameters
    ----------
    box : RelaxedMoment
    inside : (q,) array
        Strictly inside of all inequalities.
    enough : callable
        Whether a relaxed factor and a bound decide about the box.
    """
    path, none = _Path(box), np.zeros(len(box.ends))
    at, price = np.concatenate([np.zeros(len(box.ends)), inside, [2.0]]), float(box.nodes)
    best = Relaxed(inside, none, 1.0, 0.0, np.eye(box.nodes), none)
    for _ in range(_STAGES):
        try:
            at = path.centred(at, price)
            y, point, s = path.parts(at)
            inverse = path.inverse(y, point, s)
        except (LinAlgError, np.linalg.LinAlgError):
            break
        bound = max(best.bound, box.bound(inverse, point, 1.0 / path.left(point)))
        factor = float(np.linalg.eigvalsh(box.matrix(y, point))[-1])
        best = Relaxed(point, y, min(factor, best.factor), bound, inverse, none)
        if enough(best.factor, best.bound):
            break
        price *= _FASTER
    return best


class _Path:
    def __init__(self, box: RelaxedMoment) -> None:
        self.box, self.edges = box, len(box.ends)
        self.dense = box.rows.toarray()
        self.meeting = between(np.eye(box.nodes), box.ends)
        self.slopes = box.secants[0]

    def parts(self, at: Floats) -> tuple[Floats, Floats, float]:
        return at[: self.edges], at[self.edges : -1], float(at[-1])

    def left(self, point: Floats) -> Floats:
        found: Floats = self.box.limits - self.dense @ point
        return found

    def slack(self, y: Floats, point: Floats, s: float) -> Floats:
        n = self.box.nodes
        found = -self.box.matrix(y, point)
        found += (1.0 - s) / n
        found[np.diag_indices(n)] += s
        return found

    def inverse(self, y: Floats, point: Floats, s: float) -> Floats:
        factor = cho_factor(self.slack(y, point, s), check_finite=False)
        whole = cho_solve(factor, np.eye(self.box.nodes), check_finite=False)
        found: Floats = (whole + whole.T) / 2.0
        return found

    def value(self, at: Floats, price: float) -> float:
        y, point, s = self.parts(at)
        sides = np.concatenate([point - self.box.low, self.box.high - point, self.left(point)])
        if not (sides > 0).all():
            return np.inf
        try:
            factor = np.linalg.cholesky(self.slack(y, point, s))
        except np.linalg.LinAlgError:
            return np.inf
        return float(price * s - 2.0 * np.log(factor.diagonal()).sum() - np.log(sides).sum())

    def centred(self, at: Floats, price: float) -> Floats:
        value = self.value(at, price)
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(at, price)
            # As in moment_newton: singular but for rounding.
            hessian[np.diag_indices(len(hessian))] *= 1.0 + 1e-13
            # As above, where a whole row is 0.
            hessian[np.diag_indices(self.edges)] += 1e-14 * hessian.diagonal()[: self.edges].max()
            move = -cho_solve(cho_factor(hessian, check_finite=False), gradient, check_finite=False)
            decrease = float(-gradient @ move)
            if not decrease > 0:
                break
            length, found = 1.0, self.value(at + move, price)
            # Thirty-three halvings: no step decreases it any more.
            while not found <= value - 0.1 * length * decrease and length > 1e-10:
                length /= 2.0
                found = self.value(at + length * move, price)
            # As above.
            if length <= 1e-10:
                break
            at, value = at + length * move, found
            if decrease < _CENTRED:
                break
        return at

    def derivatives(self, at: Floats, price: float) -> tuple[Floats, Floats]:
        box, m = self.box, self.edges
        y, point, s = self.parts(at)
        q = len(point)
        inverse, phi = self.inverse(y, point, s), box.inverses(point)
        square = inverse @ inverse
        inner, mean = between(inverse, box.ends), laplacian(box.nodes, box.ends, y)
        own = 2.0 * y * phi - 1.0
        product = mean @ inverse
        both = own[:, None] * inner + between(product, box.ends)
        along = np.outer(own, own) * inner + between(product @ mean, box.ends)
        further = between(product, box.ends) * own
        along += further + further.T
        diagonal = inner.diagonal()
        slopes = -2.0 * (y * phi) ** 2 * self.slopes
        hessian = np.zeros((m + q + 1,) * 2)
        hessian[:m, :m] = 2.0 * (both * both.T + along * inner + self.meeting * inner)
        hessian[np.diag_indices(m)] += 4.0 * phi * diagonal
        mixed = 2.0 * both * inner * slopes
        mixed[np.diag_indices(m)] += -4.0 * y * phi**2 * self.slopes * diagonal
        single = np.outer(slopes, slopes) * inner**2
        single[np.diag_indices(m)] += 4.0 * y**2 * phi**3 * self.slopes**2 * diagonal
        mixing = np.zeros((m, q))
        mixing[np.arange(m), box.owners] = 1.0
        hessian[:m, m:-1] = mixed @ mixing
        hessian[m:-1, :m] = hessian[:m, m:-1].T
        hessian[m:-1, m:-1] = mixing.T @ single @ mixing
        squared = mean @ square
        by_s = -np.append(
            2.0 * (own * on_edges(square, box.ends) + on_edges((squared + squared.T) / 2.0, box.ends)),
            mixing.T @ (slopes * on_edges(square, box.ends)),
        )
        hessian[:-1, -1] = hessian[-1, :-1] = by_s
        hessian[-1, -1] = float((inverse * inverse).sum()) - 1.0
        below, above, left = 1.0 / (point - box.low), 1.0 / (box.high - point), 1.0 / self.left(point)
        hessian[m:-1, m:-1] += np.diag(below**2 + above**2) + self.dense.T @ (left[:, None] ** 2 * self.dense)
        by_point = mixing.T @ (slopes * diagonal) - below + above + self.dense.T @ left
        gradient = np.concatenate([2.0 * both.diagonal(), by_point, [price - (float(np.trace(inverse)) - 1.0)]])
        return gradient, hessian
