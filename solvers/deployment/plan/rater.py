"""What searches over plans share: rating rows of actions, and the baselines that they start from."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.deployment.plan.solution import Split
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.plan.actions import Action, actions, as_deployment, lists_all_sets
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Rating(NamedTuple):
    """Of a plan: bytes that a device lacks at most, at least 0, and seconds of a step; less is better."""

    excess_bytes: float
    time_s: float

    @property
    def fits(self) -> bool:
        """Whether memory suffices."""
        return self.excess_bytes <= 0


WORST = Rating(math.inf, math.inf)


class PlanRater:
    """Rates plans given as one action a group, by number, and remembers how many it has rated and the best of them.

    Parameters
    ----------
    instance : DeploymentInstance
    splits : sequence of {"even", "speed"}
        That actions may have.
    """

    def __init__(self, instance: DeploymentInstance, splits: Sequence[Split] = ("even", "speed")) -> None:
        self.instance = instance
        self.actions: tuple[Action, ...] = actions(instance, splits)
        self.rated = 0
        self.best: Ints | None = None
        self.best_rating = WORST
        self.simulator = Simulator(instance, self.actions)

    def rate(self, row: Ints, above_s: float = math.inf) -> Rating:
        """Rating of (groups,) actions; infinite where the step is seen to take more than ``above_s``."""
        self.rated += 1
        run = self.simulator.run(row, above=above_s)
        if math.isinf(run.time_s):
            return WORST
        rating = Rating(max(run.excess_bytes, 0.0), run.time_s)
        if rating < self.best_rating:
            self.best, self.best_rating = row.copy(), rating
        return rating

    def uniform(self, action: int) -> Ints:
        """The same action for all groups."""
        return np.full(self.instance.groups, action, dtype=np.int64)

    def best_uniform(self, clock: Clock) -> tuple[Ints, Rating]:
        """Of all plans with one action for all groups, the best one; until the time is up.

        Where sets of device groups are many, first those on all devices.
        """
        first = [] if lists_all_sets(self.instance) else [*self.everywhere.values()]
        order = [*first, *(action for action in range(len(self.actions)) if action not in first)]
        best: tuple[Ints, Rating] | None = None
        for number, action in enumerate(order):
            row = self.uniform(action)
            rating = self.rate(row, best[1].time_s if best is not None and best[1].fits else math.inf)
            if best is None or rating < best[1]:
                best = row, rating
                if rating.fits:
                    clock.report(rating.time_s, solution=self.deployment)
            if clock.expired and (best[1].fits or number >= len(first)):
                break
        assert best is not None
        return best

    @property
    def menu(self) -> dict[str, float]:
        """For details: of how many sets of device groups actions are, where these are not all."""
        sets = {action.device_groups for action in self.actions}
        return {} if lists_all_sets(self.instance) else {"device_sets": float(len(sets))}

    @cached_property
    def everywhere(self) -> dict[tuple[str, str], int]:
        """By mode and split, the action with all device groups."""
        everything = tuple(range(len(self.instance.device_groups)))
        return {
            (action.mode, action.split): number
            for number, action in enumerate(self.actions)
            if action.device_groups == everything
        }

    def baseline(self) -> Ints:
        """TAG's: every group on all devices with all-reduce, or split over all devices where that does not fit."""
        row = self.uniform(self.everywhere["all_reduce", "even"])
        parallel = self.everywhere.get(("model_parallel", "even"))
        return row if parallel is None or self.rate(row).fits else self.uniform(parallel)

    @cached_property
    def work_s(self) -> Floats:
        """(groups,) seconds of the whole batch, the mean of all device types."""
        work = np.zeros(self.instance.groups)
        for operator in self.instance.operators:
            work[operator.group] += np.mean([times[0] for times in operator.times_s.values()])
        return work

    @cached_property
    def by_work(self) -> Ints:
        """Groups by seconds that they compute, the longest first."""
        return np.argsort(-self.work_s, kind="stable")

    def deployment(self) -> Deployment:
        """The best plan rated.

        Raises
        ------
        NoSolutionError
            If none fits in memory.
        """
        if self.best is None or not self.best_rating.fits:
            raise NoSolutionError(f"none of {self.rated} plans fits in the memory of the devices")
        return as_deployment(self.instance, [self.actions[number] for number in self.best])
