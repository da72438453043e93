"""Plans that a prior says, without a search: the likeliest action of group after group, or a beam of likely plans."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.solvers.deployment.plan.priors import Prior, State
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Clock

Ints = npt.NDArray[np.int64]


class _Partial(NamedTuple):
    """Actions of the first groups in the order of work, and the logarithm of their probability."""

    log_probability: float
    chosen: tuple[int, ...]


def beam(rater: PlanRater, prior: Prior, width: int, clock: Clock) -> float:
    """Decide on group after group, in the order of work, and keep the likeliest partial plans.

    Every partial plan is a whole one, in which groups that are not decided do as the first, and is rated on the way.
    With a width of 1 it is the likeliest action of each group after the other.

    Returns
    -------
    float
        Seconds of a step under the likeliest plan at the end; infinite where time is up before.
    """
    order = rater.by_work
    level = [_Partial(0.0, ())]
    for depth in range(len(order)):
        if clock.expired:
            return float("inf")
        states = [State(_row(rater, order, each.chosen), order[:depth]) for each in level]
        table = np.log(np.maximum(prior.tables(states)[:, order[depth]], np.finfo(float).tiny))
        total = np.array([each.log_probability for each in level])[:, None] + table
        # A stable order, so that equals are decided in the same way everywhere.
        best = np.argsort(-total, axis=None, kind="stable")[:width]
        places = [np.unravel_index(place, total.shape) for place in best]
        level = [_Partial(float(total[k, a]), (*level[int(k)].chosen, int(a))) for k, a in places]
        for each in level:
            known = rater.best_rating
            rating = rater.rate(_row(rater, order, each.chosen))
            if rating < known and rating.fits:
                clock.report(rating.time_s)
    return rater.rate(_row(rater, order, level[0].chosen)).time_s


def _row(rater: PlanRater, order: Ints, chosen: tuple[int, ...]) -> Ints:
    """Groups that are not decided do as the first one; all as the baseline where none is."""
    if not chosen:
        return rater.baseline()
    row = rater.uniform(chosen[0])
    row[order[: len(chosen)]] = chosen
    return row
