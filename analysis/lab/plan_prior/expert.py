"""The local search that imitation learns from.

Plans that change single groups and short runs get stuck where a network wants one thing up to some layer and another
after it: no group gains by itself, as it pays for two transfers. So it also begins with the best such cuts.
"""

import numpy as np
import numpy.typing as npt

from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.deployment.plan.search import Walk
from ddlopt.solvers.heuristic import Clock

Ints = npt.NDArray[np.int64]

_STARTS = 3
"""Of the plans with one action for all groups, this number of the best are cut."""


class Counted(Clock):
    """Time is up when a rater has simulated this number of plans: the same on every machine."""

    def __init__(self, rater: PlanRater, most: float) -> None:
        super().__init__(Limits(), None)
        self.rater, self.most = rater, most

    @property
    def expired(self) -> bool:
        """Whether they have been simulated."""
        return self.rater.rated >= self.most


def searched(rater: PlanRater, plans: int, seed: int) -> Ints | None:
    """A plan after a number of simulations; None where none that fits is found.

    A third of them for iterated local search from the best plan with one action for all groups, a third for descents
    from cuts, and the rest for iterated local search from the best of all.
    """
    rng = np.random.default_rng(seed)
    uniform = [rater.uniform(action) for action in range(len(rater.actions))]
    rated = sorted(((row, rater.rate(row)) for row in uniform), key=lambda pair: pair[1])
    walk = Walk(rater, Counted(rater, plans / 3), rng)
    found = [_kicked(walk, *walk.descend(*rated[0]))]
    for number, (row, rating) in enumerate(rated[:_STARTS]):
        walk.clock = Counted(rater, plans * (1 + (number + 1) / _STARTS) / 3)
        found.append(walk.descend(*cut(walk, row, rating)))
    walk.clock = Counted(rater, plans)
    _kicked(walk, *min(found, key=lambda pair: pair[1]))
    return rater.best if rater.best_rating.fits else None


def completed(rater: PlanRater, row: Ints, decided: Ints, plans: int, seed: int) -> tuple[Ints, Rating]:
    """The best plan found in ``plans`` further simulations that keeps the actions of the groups ``decided``."""
    walk = Walk(rater, Counted(rater, rater.rated + plans), np.random.default_rng(seed))
    walk.order = walk.order[~np.isin(walk.order, decided)]
    return _kicked(walk, *walk.descend(row, rater.rate(row)))


def cut(walk: Walk, row: Ints, rating: Rating) -> tuple[Ints, Rating]:
    """The best action for all groups up to one, or from one on, in the order of the network, as long as that helps."""
    while not walk.clock.expired:
        before, base = rating, row
        for place in range(1, len(walk.order)):
            for part in (walk.order[:place], walk.order[place:]):
                for action in range(len(walk.rater.actions)):
                    offer = base.copy()
                    offer[part] = action
                    found = walk.rater.rate(offer, above_s=rating.time_s if rating.fits else np.inf)
                    if found < rating:
                        row, rating = offer, found
            if walk.clock.expired:
                break
        if rating >= before:
            break
    return row, rating


def _kicked(walk: Walk, row: Ints, rating: Rating) -> tuple[Ints, Rating]:
    while not walk.clock.expired:
        offer = walk.kick(row)
        found, found_rating = walk.descend(offer, walk.rater.rate(offer))
        if found_rating <= rating:
            row, rating = found, found_rating
    return row, rating
