"""Our local search over plans: single groups, and runs of groups that follow each other, get another action."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.solvers.deployment.plan.actions import lists_all_sets
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Ints = npt.NDArray[np.int64]


def forward_order(instance: DeploymentInstance) -> Ints:
    """(groups,) groups by the longest way that is left to the end of the step from any of their operators."""
    left = np.zeros(len(instance.operators), dtype=np.int64)
    for place in reversed(instance.order):
        left[place] = max((left[reader] + 1 for reader in instance.readers[place]), default=0)
    longest = [-max(left[place] for place in members) for members in instance.members]
    return np.argsort(longest, kind="stable")


class Walk:
    """A plan that moves change as long as that helps.

    Parameters
    ----------
    rater : PlanRater
    clock : Clock
        Improvements of the best plan are reported to it.
    rng : numpy.random.Generator

    Attributes
    ----------
    choices : int
        What moves and kicks choose from: the actions, until the caller says otherwise.
    """

    def __init__(self, rater: PlanRater, clock: Clock, rng: np.random.Generator) -> None:
        self.rater, self.clock, self.rng = rater, clock, rng
        self.choices = len(rater.actions)
        self.order = forward_order(rater.instance)

    def descend(self, row: Ints, rating: Rating) -> tuple[Ints, Rating]:
        """Try moves in random order, take each that helps, until all have been tried in vain or the time is up."""
        while True:
            before = rating
            for group in self.rng.permutation(len(self.order)):
                row, rating = self._best_of(row, rating, self.order[group : group + 1])
                row, rating = self._best_of(row, rating, self._run(int(group)))
                if self.clock.expired:
                    return row, rating
            if rating >= before:
                return row, rating

    def kick(self, row: Ints) -> Ints:
        """A run of groups gets an action at random."""
        row = row.copy()
        row[self._run(int(self.rng.integers(len(self.order))))] = self.rng.integers(self.choices)
        return row

    def _run(self, first: int) -> Ints:
        """Groups from one on, twice as many with half the probability."""
        length = min(int(2 ** self.rng.exponential(2)) + 1, len(self.order) - first)
        return self.order[first : first + length]

    def _best_of(self, row: Ints, rating: Rating, groups: Ints) -> tuple[Ints, Rating]:
        """The best action for some groups together."""
        for action in self._promising(row, groups):
            offer = row.copy()
            offer[groups] = action
            found = self.rater.rate(offer, above_s=rating.time_s if rating.fits else np.inf)
            if found < rating:
                row, rating = offer, found
                if found is self.rater.best_rating and found.fits:
                    self.clock.report(found.time_s, solution=self.rater.deployment)
            if self.clock.expired:
                break
        return row, rating

    def _promising(self, row: Ints, groups: Ints) -> Ints:
        """All actions at random, first those that other groups have: what is placed alike need not be sent."""
        used = np.isin(np.arange(self.choices), row)
        actions = self.rng.permutation(self.choices)
        return np.concatenate([actions[used[actions]], actions[~used[actions]]])


def best_staged(rater: PlanRater, clock: Clock, row: Ints, rating: Rating) -> tuple[Ints, Rating]:
    """The best of a plan and of those with stages: groups that follow each other are on device groups that do.

    With 2, 4, 8 … stages of as many resident bytes each, over runs of as many device groups, in each mode. Where device
    groups are many, one plan for all groups often fits in no memory.
    """
    instance, order = rater.instance, forward_order(rater.instance)
    resident = np.array([sum(instance.operators[place].resident_bytes for place in own) for own in instance.members])
    before = np.cumsum(resident[order]) - resident[order] / 2
    numbers: dict[str, dict[tuple[int, ...], int]] = {}
    for number, action in enumerate(rater.actions):
        numbers.setdefault(action.mode, {}).setdefault(action.device_groups, number)
    machines, size = len(instance.device_groups), 1
    while size < machines and not (clock.expired and rating.fits):
        runs = [tuple(range(first, min(first + size, machines))) for first in range(0, machines, size)]
        stage = np.minimum((before * len(runs) / (resident.sum() or 1.0)).astype(np.int64), len(runs) - 1)
        for known in numbers.values():
            if not all(run in known for run in runs):
                continue
            offer = np.empty_like(row)
            offer[order] = np.array([known[run] for run in runs])[stage]
            found = rater.rate(offer)
            if found < rating:
                row, rating = offer, found
                if rating.fits:
                    clock.report(rating.time_s, solution=rater.deployment)
        size *= 2
    return row, rating


@dataclass(frozen=True)
class PlanSearch(Heuristic, uses=("seed",)):
    """Iterated local search: descents by moves of single groups and of runs of groups, with random kicks in between.

    It starts from the best plan that treats all groups alike, with more than 8 device groups also from stages
    (:func:`best_staged`), and goes back to the best after a kick that does not lead to a better or equal plan. With
    more than 8 device groups not all sets of them are tried (:func:`~.device_sets`); ``device_sets`` says how many are.
    Then it goes on with *pins*: moves that also put a whole group on one device of several that are alike. Where no
    plan has fitted in memory by the end of the first descent it does so at once: devices that each have a few groups
    need least.

    Parameters
    ----------
    kicks : int
        Without pins, and again with them; fewer where the time is up.
    """

    kicks: int = 30

    name: ClassVar[str] = "plan-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The best plan found."""
        rater = PlanRater(instance, pins=True)
        row, rating = rater.best_uniform(clock)
        if not lists_all_sets(instance):
            row, rating = best_staged(rater, clock, row, rating)
        walk, kicks = Walk(rater, clock, np.random.default_rng(seed)), 0
        row, rating = walk.descend(row, rating)
        if rating.fits or not rater.pins:
            row, rating, kicks = self._kicked(walk, row, rating)
        if rater.pins:
            walk.choices = rater.choices
            kicks += self._kicked(walk, *walk.descend(row, rating))[2]
        return rater.deployment(), {"rated": rater.rated, "kicks": kicks, **rater.menu}

    def _kicked(self, walk: Walk, row: Ints, rating: Rating) -> tuple[Ints, Rating, int]:
        """What kicks lead to from the end of a descent, and how many there were."""
        for kicks in range(self.kicks):
            if walk.clock.expired:
                return row, rating, kicks
            offer = walk.kick(row)
            found, found_rating = walk.descend(offer, walk.rater.rate(offer))
            if found_rating <= rating:
                row, rating = found, found_rating
        return row, rating, self.kicks
