"""The best fractional matchings, as a bound where a single matching is active in a round."""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.matchings.formulations.fractional_matchings import FractionalMatchings
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram, solve

# Relative gap of the interior point method; what it proves holds at any.
_GAP = 1e-8


def single_bound(instance: MatchingsInstance, expired: Callable[[], bool] = lambda: False) -> float:
    """At most the factor of any plan, certified by :class:`FractionalMatchings`."""
    inside, network = FractionalMatchings(instance), instance.network
    rows, count = inside.rows, len(network.edges)
    every = sparse.eye_array(count)
    start = np.full(count, 0.5 * min(float(inside.most.min()), 1.0 / float((rows @ np.ones(count)).max())))
    program = SpectralProgram(
        network.nodes,
        network.ends,
        sparse.csr_array(every),
        (Block(0.0, 1.0, -1.0),),
        sparse.csr_array(sparse.vstack([every, -every, -rows])),
        np.concatenate([np.zeros(count), inside.most, np.ones(rows.shape[0])]),
        start,
        -float(start.min()),
    )
    bounds = [0.0]

    def stop(at: Iterate) -> bool:
        bounds.append(inside.bound(at.multipliers[0], at.row_multipliers[2 * count :]))
        return expired() or 1.0 - at.t / 2.0 - max(bounds) <= _GAP

    solve(program, stop)
    return max(bounds)
