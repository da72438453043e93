"""The most connected probabilities of a box where a single matching is active in a round, and what they prove of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.matchings.second_moments import unit_positive
from ddlopt.models.gossip.spectral.laplacians import Floats, on_edges
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram, solve


class Connected(NamedTuple):
    """The most connected probabilities of a box, their multipliers, and what these prove of all of the box."""

    point: Floats
    multiplier: Floats
    bound: float


def connected(box: RelaxedMoment, inside: Floats, enough: Callable[[float, float], bool]) -> Connected:
    r"""The least :math:`1 - \lambda_2(L(p)) / 2` of a box, where a single matching is active in a round.

    Parameters
    ----------
    box : RelaxedMoment
    inside : (q,) array
        Strictly inside of all inequalities.
    enough : callable
        Whether a factor and a bound decide about the box.
    """
    count, every = len(box.low), sparse.eye_array(len(box.low))
    mixing = sparse.csr_array((np.ones(len(box.owners)), (range(len(box.owners)), box.owners)))
    sides = sparse.csr_array(sparse.vstack([every, -every, -box.rows]))
    offsets = np.concatenate([-box.low, box.high, box.limits])
    # Any number below the connectivity, which is not below 0
    start = -float(inside.min())
    program = SpectralProgram(box.nodes, box.ends, mixing, (Block(0.0, 1.0, -1.0),), sides, offsets, inside, start)
    best = Connected(inside, np.eye(box.nodes), 0.0)

    def stop(at: Iterate) -> bool:
        nonlocal best
        bound = connected_bound(box, at.multipliers[0], at.row_multipliers[2 * count :])
        best = Connected(at.y, at.multipliers[0], bound) if bound >= best.bound else best
        return enough(1.0 - at.t / 2.0, best.bound)

    solve(program, stop)
    return best


def connected_bound(box: RelaxedMoment, matrix: Floats, prices: Floats) -> float:
    """At most the factor of all probabilities of a box, from any (n, n) matrix and any (r,) prices of its rows."""
    positive, scale = unit_positive(matrix)
    slopes = np.bincount(box.owners, weights=-0.5 * on_edges(positive, box.ends), minlength=len(box.low))
    kept = 0.5 * np.maximum(0.0, prices) / scale
    reduced = slopes + box.rows.T @ kept
    value = 1.0 + np.minimum(reduced * box.low, reduced * box.high).sum() - kept @ box.limits
    # Rounding of sums of this many terms, as large as these
    rounding = 1e-15 * (len(box.owners) + len(kept)) * (1.0 + kept @ np.abs(box.limits) + np.abs(slopes).sum())
    return max(0.0, float(value - rounding))
