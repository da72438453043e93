"""The best of all plans under the simulator, by branch and bound."""

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.frontier.deployment.plan.choices import Choices, Ints, number_of_choices
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.method import PlanPrices
from ddlopt.frontier.deployment.plan.tree.ahead import Mixes, ahead_of, mixes_of
from ddlopt.frontier.deployment.plan.tree.kernels import DONE, FULL, Room, Tree, least, room_for, search
from ddlopt.frontier.deployment.plan.tree.tables import Tables, tables
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import InfeasibleError, NoSolutionError, SolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    worth: float = 0.99
    """Where a plan takes less than this part of the first one, the search begins anew: fewer choices are left then."""
    leaves: int = 1024
    """Plans that one call of the kernel may hand to the simulator; it goes on after them."""
    portion: int = 200
    """Partial plans between the first looks at the clock; more where these take little time."""
    most_portion: int = 20_000
    """The same at most."""
    step_s: float = 0.2
    """Seconds up to which the next step may look at twice as many: time limits are kept to that."""
    most_choices: int = 1500
    """Of a group, for which all deployments are the scope unless it is said."""
    ahead_from: int = 5
    """Groups from which prices of what is left are worth their time."""
    moves: int = 10_000
    """Of annealing for a plan to begin with: less than half a second for ten groups."""
    few_groups: int = 16
    """With which it may end within minutes."""


_EFFORT = Effort()


@dataclass(frozen=True)
class PlanTree(CertifiedMethod, uses=("seed", "start", "threads")):
    r"""All plans in depth first order, without those that cannot be quicker than the best one known.

    Group by group is decided; where all are, the simulator says how long the step takes, in its own order of work. With
    some groups decided a step takes at least

    * the longest path: replicas of operators that are decided start after what they take from where it is, with the
      times of its transfers; an operator that is not may have each of its seats, and has the one where it ends first.
      Devices and links take first what is ready first, as far as that is known
      (:mod:`~ddlopt.frontier.deployment.plan.tree.ends`): what a replica sends comes before all that is sent, over the
      same link, by what waits for it;
    * for each device, link between device groups and the channel, over the tasks that are known: of those that cannot
      start before r and have at least q after them, r, their sum and q (Jackson's preemptive schedule). Gradients reach
      a server one after the other, and sums leave it when all are there;
    * for prices :math:`\lambda \ge 0`, 1 together, of these resources, of the longest path, and of the channel after
      the longest path to the first gradients, :math:`\sum_r \lambda_r \text{load}_r`, with what is least for each group
      that is not decided. Prices are from multiplicative weights;
    * with five groups or more, for prices of rows (:class:`~.BestPrices`), the least of their sum over all completions,
      which the elimination of groups has left behind: groups are decided in the order in which that is known.

    Choices that fail these bounds by themselves are left out from the beginning.

    The scope is all deployments where a group has few of them: any device for each operator that has but one, any
    operators duplicated. Otherwise ``model_parallel`` is by consecutive pieces, and nothing is duplicated
    (:class:`~ddlopt.frontier.deployment.plan.choices.Choices`). Prices hold for every order of work, the other bounds
    for the simulator's, first come, first served.

    Parameters
    ----------
    over : {"fitting", "all", "actions"}
        The scope; ``fitting`` is the first if no group has more than 1500 choices then, else the second.
    most : int, optional
        Partial plans to look at; then it gives up.
    """

    over: Literal["fitting", "all", "actions"] = "fitting"
    most: int | None = None

    covers: ClassVar[type[DeploymentInstance]] = DeploymentInstance
    name: ClassVar[str] = "plan-tree"
    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.deployment.plan.simulator.run",
        "ddlopt.frontier.deployment.plan.prices.kernels",
        "ddlopt.frontier.deployment.plan.tree.kernels",
    )

    def refuses(self, instance: DeploymentInstance) -> str | None:
        """Too many choices of a group."""
        most = max(number_of_choices(instance, len(own), every=True) for own in instance.members)
        if self.over == "all" and most > _EFFORT.most_choices:
            return f"a group has {most} choices, more than {_EFFORT.most_choices}; use over=actions"
        return None

    def may_end(self, instance: DeploymentInstance) -> bool:
        """Whether its scope is all deployments, and groups are few."""
        return instance.groups <= _EFFORT.few_groups and self.choices(instance).every

    def choices(self, instance: DeploymentInstance) -> Choices:
        """What it searches."""
        most = max(number_of_choices(instance, len(own), every=True) for own in instance.members)
        fitting = self.over == "fitting" and most <= _EFFORT.most_choices
        return Choices(instance, every=self.over == "all" or fitting)

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum of the scope, or the best plan found until the time is up.

        Raises
        ------
        InfeasibleError
            If no deployment fits in memory: the tree of all choices was searched to its end, and what it leaves out
            needs more memory than there is, for all choices that follow, or is as another one that is searched.
        """
        choices = self.choices(instance)
        best, time_s = self._opening(instance, limits, seed, start)
        if best is not None:
            clock.report(time_s)
        run = _Run(choices, limits.threads, self._mixes(choices))
        shaved_s = time_s
        left = run.shaved(time_s * (1 - IMPROVEMENT_TOL), clock)
        if left is not None:
            run.begin()
            while (
                left is not None
                and run.code != DONE
                and not clock.expired
                and (self.most is None or run.looked < self.most)
            ):
                better = run.step(time_s)
                if better is not None:
                    time_s, best = better
                    clock.report(time_s)
                    if time_s < shaved_s * _EFFORT.worth:
                        # Fewer choices are left under a much better plan: what was searched costs less than they do.
                        shaved_s, left = time_s, run.shaved(time_s * (1 - IMPROVEMENT_TOL), clock)
                        run.begin()
        proven = left is None or run.code == DONE
        if best is None and proven and choices.every:
            raise InfeasibleError(f"'{instance.name}': every deployment needs more memory than there is")
        if best is None:
            raise NoSolutionError("no plan that was tried fits in the memory of the devices")
        details = {"looked_at": float(run.looked), "simulated": float(run.simulated), "choices_left": float(run.left)}
        bound = time_s * (1 - IMPROVEMENT_TOL) if proven else None
        return choices.output(best, details, bound)

    def _mixes(self, choices: Choices) -> Mixes | None:
        """Where the prices are of the same plans, and there is something to look ahead to."""
        few = choices.instance.groups < _EFFORT.ahead_from or choices.instance.groups > _EFFORT.few_groups
        if few or not choices.every or PlanPrices().refuses(choices.instance) is not None:
            return None
        return mixes_of(BestPrices(choices.instance), choices.instance.groups)

    def _opening(
        self, instance: DeploymentInstance, limits: Limits, seed: int, start: Any
    ) -> tuple[Deployment | None, float]:
        """A plan to begin with, and its time."""
        if isinstance(start, Deployment):
            simulator = Simulator(instance)
            try:
                run = simulator.run(*simulator.choice(start))
            except (SolutionError, KeyError):
                return None, math.inf
            return (start, run.time_s) if run.excess_bytes <= 0 else (None, math.inf)
        share = None if limits.time_s is None else 0.2 * limits.time_s
        first = PlanSearch(_EFFORT.moves).solve(instance, Limits(share), seed)
        if isinstance(first.solution, Deployment) and first.objective is not None:
            return first.solution, first.objective
        return None, math.inf


class _Run:
    """One search.

    Parameters
    ----------
    choices : Choices
    threads : int
    mixes : Mixes or None
    """

    def __init__(self, choices: Choices, threads: int, mixes: Mixes | None) -> None:
        self.choices, self._mixes = choices, mixes
        self.looked = self.simulated = 0
        self.code, self._portion = FULL, _EFFORT.portion
        self.tables: Tables = tables(choices)
        self.room: Room = room_for(self.tables)
        self._simulator = Simulator(choices.instance, choices.actions, threads)

    @property
    def left(self) -> int:
        """Choices of all groups together."""
        return sum(map(len, self.choices.of_groups))

    def shaved(self, below_s: float, clock: Clock) -> "_Run | None":
        """Without choices that cannot be part of a plan that takes less, as time allows; None if a group has none."""
        before = -1
        while before != self.left and math.isfinite(below_s) and not clock.expired:
            before = self.left
            kept = []
            for group, own in enumerate(self.choices.of_groups):
                chosen = np.full(self.choices.instance.groups, -1)
                bounds = []
                for place in range(len(own)):
                    chosen[group] = place
                    bounds.append(0.0 if clock.expired else least(self.tables, chosen, self.room))
                self.looked += len(own)
                kept.append(tuple(each for each, bound_s in zip(own, bounds, strict=True) if bound_s < below_s))
            if not all(kept):
                return None
            if sum(map(len, kept)) < before:
                self.choices = Choices(self.choices.instance, self.choices.every, tuple(kept))
                self.tables = tables(self.choices)
                self.room = room_for(self.tables)
        return self

    def begin(self) -> None:
        """Nothing is decided."""
        groups, most = self.choices.instance.groups, max(map(len, self.choices.of_groups))
        self._ahead = ahead_of(self._mixes, self.choices)
        self._tree = Tree(
            np.zeros(1, np.int64),
            PlanRater(self.choices.instance).by_work if self._mixes is None else self._mixes.buckets.order,
            np.full(groups, -1),
            np.zeros((groups, most), np.int64),
            np.zeros((groups, most)),
            np.zeros(groups, np.int64),
            np.full(groups, -1),
        )
        self._found = np.zeros((_EFFORT.leaves, groups), np.int64)

    def step(self, time_s: float) -> tuple[float, Deployment] | None:
        """Look at more partial plans, and simulate the plans that came of them; a better one if there is any."""
        began, used = time.perf_counter(), np.array([0, self._portion])
        below_s = time_s * (1 - IMPROVEMENT_TOL)
        self.code = search(self.tables, self._tree, self.room, self._ahead, below_s, self._found, used)
        self.looked += self._portion - int(used[1])
        quick = time.perf_counter() - began < _EFFORT.step_s
        self._portion = min(_EFFORT.most_portion, 2 * self._portion) if quick else max(1, self._portion // 2)
        self.simulated += int(used[0])
        if not used[0]:
            return None
        rows: tuple[Ints, Ints, Ints] = self.choices.rows(self._found[: used[0]])
        times, excess = self._simulator.run_all(*rows, above=time_s)
        times[excess > 0] = math.inf
        place = int(times.argmin())
        if not times[place] < time_s:
            return None
        return float(times[place]), self._simulator.deployment(rows[0][place], rows[1][place], rows[2][place])
