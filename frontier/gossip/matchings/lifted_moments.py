r"""A tighter bound of a box of probabilities: the square of the mean lends its diagonal to the variance.

For a matrix :math:`X \succeq 0` of trace 1, with :math:`x_e = a_e^\top X a_e` and the quadratic form Q of
:math:`\langle X, L(y)^2 \rangle = y^\top Q y`,

.. math::
    \langle X, \mathbb{E}[W^2] - J \rangle = 1 - 2 x^\top y + y^\top (Q - \operatorname{diag} d)\, y
        + \sum_e \Bigl( \frac{2 x_e}{p_e} - \delta_e \Bigr) y_e^2 , \qquad \delta = 2 x - d .

Both quadratic parts are convex in (p, y) where :math:`0 \le \delta \le 2 x / u`, :math:`Q \succeq \operatorname{diag}
d`, and :math:`p / (2 x - \delta p)` is replaced by its secant from l to u. With d = 0 that is
:mod:`~ddlopt.models.gossip.matchings.relaxed_moments`, whose variance is worth nothing where u = 1; here it is worth
:math:`d_e y_e^2 / p_e` there. The best X and d together are the dual of a semidefinite program, in which
:math:`Y \succeq y y^\top` stands for products of flows, :math:`Z_e \ge y_e^2 / p_e` and :math:`Y_{ee} \le u_e Z_e`:
a lifting. Ours.
"""

from dataclasses import dataclass, replace

import numpy as np

from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, between, on_edges
from ddlopt.models.tolerances import ROUNDING


@dataclass(frozen=True)
class Lent:
    """The curvatures of a box for one matrix.

    Parameters
    ----------
    box : RelaxedMoment
    own : (m,) array
        x, of a matrix of trace 1.
    lent : (m,) array
        d, at most 2 x; below 0 where the variance lends to the square.
    """

    box: RelaxedMoment
    own: Floats
    lent: Floats

    def ends(self) -> tuple[Floats, Floats, Floats]:
        """(m,) 2 x − δ l, 2 x − δ u and δ; the second is 0 where the variance is worth nothing."""
        least = 2.0 * self.own - self.lent
        low, high = self.box.low[self.box.owners], self.box.high[self.box.owners]
        below, above = 2.0 * self.own - least * low, 2.0 * self.own - least * high
        return below, np.where(above > ROUNDING * self.own, above, 0.0), least

    def curvatures(self, point: Floats) -> tuple[Floats, Floats]:
        """(m,) what stands before the squares of y, and its derivative by the probability of the edge."""
        below, above, least = self.ends()
        low, high = self.box.low[self.box.owners], self.box.high[self.box.owners]
        bottom = 2.0 * self.own * point[self.box.owners] - least * low * high
        worth = (above > 0.0) & (bottom > 0.0)
        found: Floats = np.divide(below * above, bottom, out=np.zeros(len(bottom)), where=worth)
        slopes: Floats = np.divide(-2.0 * self.own * found, bottom, out=np.zeros(len(bottom)), where=worth)
        return found, slopes

    def doubts(self, point: Floats, y: Floats) -> Floats:
        """(m,) how much of the bound hangs on the width of the box, by edges: where to split it.

        Without a loan that is what the true curvature is above, times the squares of y. With one it is the same with
        the roles of d and δ exchanged: a large loan is what a variance that the box hides is bought with. Trees are
        half as large with it as with the error of the secant.
        """
        other = self
        if self.lent.any():
            other = replace(self, lent=np.clip(2.0 * self.own - self.lent, 0.0, 2.0 * self.own))
        chances = np.maximum(point[self.box.owners], ROUNDING)
        true = 2.0 * self.own * (1.0 / chances - 1.0) + other.lent
        found: Floats = y**2 * np.maximum(0.0, true - other.curvatures(point)[0])
        return found


def loan_of(box: RelaxedMoment, matrix: Floats, lent: Floats) -> Lent:
    """The loan at the scale of a matrix of trace 1, within what an edge has."""
    positive, scale = unit_positive(matrix)
    own = np.maximum(0.0, on_edges(positive, box.ends))
    high = box.high[box.owners]
    spare = np.divide(1.0 - high, high, out=np.zeros(len(own)), where=high > 0.0)
    # A little less, so that the variance is worth something.
    return Lent(box, own, np.clip(lent / scale, -2.0 * own * spare * (1.0 - 1e-9), 2.0 * own))


def lent_bound(box: RelaxedMoment, matrix: Floats, lent: Floats, point: Floats, prices: Floats) -> float:
    """At most the factor of all probabilities of the box and all weights, from any matrix, any loan and any prices.

    As :meth:`~ddlopt.models.gossip.matchings.relaxed_moments.RelaxedMoment.bound`; what the loan exceeds the square by
    is counted against the bound.

    Parameters
    ----------
    box : RelaxedMoment
    matrix : (n, n) array
        Made positive semidefinite with trace 1.
    lent : (m,) array
        d at the scale of the matrix.
    point : (q,) array
        Within the box.
    prices : (r,) array
        π at the scale of the matrix.
    """
    positive, scale = unit_positive(matrix)
    given = loan_of(box, matrix, lent)
    own = given.own
    quadratic = between(np.eye(box.nodes), box.ends) * between(positive, box.ends)
    quadratic[np.diag_indices(len(own))] -= given.lent
    # Eigenvalues come with an error of some units in the last place of a matrix of this size.
    missing = max(0.0, -float(np.linalg.eigvalsh(quadratic)[0])) + 1e-15 * len(own)
    curvature, slopes = given.curvatures(point)
    quadratic[np.diag_indices(len(own))] += curvature
    # The bound holds whatever is found: below 1e-14 of the largest, singular values are rounding.
    y: Floats = np.linalg.lstsq(quadratic, own, rcond=1e-14)[0].astype(np.float64)
    left = own - quadratic @ y
    # Flows of which one exceeds 1 have a factor above 1.
    value = 1.0 - 2.0 * own @ y + y @ quadratic @ y - 2.0 * np.abs(left) @ (1.0 + np.abs(y))
    value -= missing * ((1.0 + np.abs(y)) ** 2).sum()
    change = np.bincount(box.owners, weights=y**2 * slopes, minlength=len(box.low))
    kept = np.maximum(0.0, prices) / scale
    reduced = change + box.rows.T @ kept
    value += np.minimum(reduced * box.low, reduced * box.high).sum() - kept @ box.limits - change @ point
    # Rounding of sums of this many terms, as large as these
    rounding = 1e-15 * (len(own) + len(kept)) * (1.0 + kept @ np.abs(box.limits) + np.abs(change).sum())
    return max(0.0, min(1.0, float(value - rounding)))
