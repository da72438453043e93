"""Our search over plans: annealing from a simple plan; and local search on single groups and runs of groups."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import forward_order, lists_all_sets
from ddlopt.solvers.deployment.plan.annealing import Annealing, Plan
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Ints = npt.NDArray[np.int64]

_DESCENT = 0.4
"""Part of the time for a descent before annealing, which gains more than it where memory is scarce."""


class Walk:
    """A plan that moves change as long as that helps.

    Parameters
    ----------
    rater : PlanRater
    clock : Clock
        Improvements of the best plan are reported to it.
    rng : numpy.random.Generator
    """

    def __init__(self, rater: PlanRater, clock: Clock, rng: np.random.Generator) -> None:
        self.rater, self.clock, self.rng = rater, clock, rng
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
        row[self._run(int(self.rng.integers(len(self.order))))] = self.rng.integers(len(self.rater.actions))
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
        """All actions at random, first those that other groups have: what lies in the same place need not be sent."""
        used = np.isin(np.arange(len(self.rater.actions)), row)
        actions = self.rng.permutation(len(self.rater.actions))
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
    """The best plan that treats all groups the same, a descent over groups, then annealing over all deployments.

    With more than 8 device groups it starts from stages as well (:func:`best_staged`), and not all sets of device
    groups are tried (:func:`~.device_sets`); ``device_sets`` says how many are.

    Parameters
    ----------
    moves : int
        Of annealing; fewer where the time is up.
    """

    moves: int = 40_000

    name: ClassVar[str] = "plan-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The best plan found."""
        rater = PlanRater(instance)
        row, rating = rater.best_uniform(clock)
        if not lists_all_sets(instance):
            row, rating = best_staged(rater, clock, row, rating)
        rng = np.random.default_rng(seed)
        # Where operators are many, annealing takes long to reach what a descent over whole groups finds.
        left_s = clock.left_s
        if left_s > 0:
            part = Limits(None if math.isinf(left_s) else left_s * _DESCENT)
            row, rating = Walk(rater, Clock(part, None), rng).descend(row, rating)
        annealing = Annealing(instance, rater.simulator, rng, clock)
        annealing.meet(Plan.of_actions(row, len(instance.operators)))
        annealing.run(self.moves)
        if annealing.best is None:
            raise NoSolutionError(f"none of {rater.rated + annealing.moves} plans fits in the memory of the devices")
        return annealing.deployment(), {"rated": rater.rated + annealing.moves, **rater.menu}
