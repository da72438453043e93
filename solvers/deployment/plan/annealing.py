"""Simulated annealing over all deployments: actions of groups, devices of single operators, and what is duplicated."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.solvers.deployment.plan.actions import Action, forward_order
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import Clock

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Effort:
    """What steers annealing.

    Parameters
    ----------
    first : int
        Moves of the first two runs. Ten groups are near their best plan after some ten thousand.
    longer : float
        How many times as many moves the next two runs have: in any time one run of each kind has had about a quarter.
    hot, warm : float
        Temperatures at the beginning of runs, in turn, in parts of the time of the first plan. Hot runs get from one
        valley to another: where memory is scarce plans found with a beginning of 0.05 took up to 1.3 times as long as
        with 0.15. Warm runs improve the best plan, which is worth more where forty groups have many decisions: on
        BERT-Large 1.3 instead of 5.7 % are left after eight seconds.
    cold : float
        Temperature at the end of every run: the last decisions change the step by some tenths of a per cent.
    lacks : float
        Seconds added to a plan that does not fit, in parts of the time of the first plan: more than a move changes, and
        less than what separates good plans from others, so that a walk gets through plans that do not fit.
    lacks_all : float
        The same for each part of all memory that it lacks.
    anything, same : float
        Parts of the moves that give one group any action, and one or several groups what another one has. The others
        change a single operator.
    fresh : float
        Of the moves of several groups, those that give them an action which no group needs to have.
    run : float
        Scale of the logarithm of how many groups that is: with 2 an eighth of the runs have 18 groups or more, half of
        a network. With 1, which has one in fifty, BERT-Small's plan was a fifth longer after eight seconds.
    """

    first: int = 10_000
    longer: float = 2.0
    hot: float = 0.15
    warm: float = 0.02
    cold: float = 0.0005
    lacks: float = 0.3
    lacks_all: float = 10.0
    anything: float = 0.4
    same: float = 0.3
    fresh: float = 0.25
    run: float = 2.0


EFFORT = Effort()


@dataclass
class Plan:
    """A plan as :meth:`~ddlopt.solvers.deployment.plan.simulator.fast.Simulator.run` takes it.

    Parameters
    ----------
    action : (groups,) array
    duplicated, device : (operators,) arrays
    """

    action: Ints
    duplicated: Ints
    device: Ints

    @classmethod
    def of_actions(cls, action: Ints, operators: int) -> "Plan":
        """With devices by the rule of the actions, and nothing duplicated."""
        return cls(action, np.zeros(operators, np.int64), np.full(operators, -1))

    def copy(self) -> "Plan":
        """One that may be changed."""
        return Plan(self.action.copy(), self.duplicated.copy(), self.device.copy())


class Annealing:
    r"""Runs of annealing, each longer than the one before, from the best plan so far on.

    A move changes one group, a run of groups that follow each other, or one operator of a group. It is taken if the
    step gets longer by at most :math:`-T \ln u`, where u is uniform in (0, 1] and the temperature T falls
    geometrically during a run. A plan that does not fit in memory counts as longer than it is; while none that fits is
    known, only what is lacking counts.

    References
    ----------
    S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220(4598), 1983.

    Parameters
    ----------
    instance : DeploymentInstance
    simulator : Simulator
        With all actions.
    rng : numpy.random.Generator
    clock : Clock
        Improvements of the best plan are reported to it.

    Attributes
    ----------
    best : Plan or None
        The best plan met that fits, with its time ``best_s``.
    moves : int
        That were tried.
    """

    def __init__(
        self,
        instance: DeploymentInstance,
        simulator: Simulator,
        rng: np.random.Generator,
        clock: Clock,
        effort: Effort = EFFORT,
    ) -> None:
        self.instance, self.simulator, self.rng, self.clock, self.effort = instance, simulator, rng, clock, effort
        self.actions = simulator.actions
        self.best: Plan | None = None
        self.best_s, self.moves = math.inf, 0
        self._start: Plan | None = None
        self._start_s, self._unit_s = math.inf, 0.0
        self._numbers = {action: number for number, action in enumerate(self.actions)}
        self._order = forward_order(instance)
        self._members = [np.array(own) for own in instance.members]
        self._at = instance.device_group_of.tolist()
        self._room = float(sum(instance.device_groups[j].memory_bytes for j in self._at))
        self._may_duplicate = [
            action.mode == "all_reduce" and len(instance.devices_of(action.device_groups)) > 1
            for action in self.actions
        ]

    def deployment(self) -> Deployment:
        """The best plan."""
        assert self.best is not None
        return self.simulator.deployment(self.best.action, self.best.duplicated, self.best.device)

    def meet(self, plan: Plan) -> None:
        """Look at a plan that :meth:`run` may start from."""
        if math.isinf(self._start_s):
            self._unit_s = self.simulator.run(plan.action, plan.duplicated, plan.device).time_s or 1.0
        worth_s = self._rated(plan, math.inf)
        if self._start is None or worth_s < self._start_s:
            self._start, self._start_s = plan, worth_s

    def run(self, moves: int) -> None:
        """Runs from the best plan met, until there have been ``moves`` moves, or the time is up."""
        assert self._start is not None, "no plan to start from has been met"
        length = self.effort.first
        while self.moves < moves and not self.clock.expired:
            for begin in (self.effort.hot, self.effort.warm):
                start = self._start if self.best is None else self.best
                self._anneal(start, min(length, max(1, moves - self.moves)), begin)
            length = int(length * self.effort.longer)

    def _anneal(self, start: Plan, moves: int, heat: float) -> None:
        plan, worth_s = start, self._rated(start, math.inf)
        fall = (self.effort.cold / heat) ** (1 / moves)
        for _ in range(moves):
            if self.clock.expired:
                return
            heat *= fall
            self.moves += 1
            fitted = self.best is not None
            most_s = worth_s - heat * self._unit_s * math.log(1.0 - self.rng.random())
            offer = self._moved(plan)
            offer_s = self._rated(offer, most_s)
            if offer_s <= most_s or (self.best is not None and not fitted):
                plan, worth_s = offer, offer_s

    def _rated(self, plan: Plan, most_s: float) -> float:
        """Seconds of a plan, with more where it does not fit; infinite where the step alone takes more than allowed.

        Until a plan that fits is known, only what is lacking counts.
        """
        known = self.best is not None
        run = self.simulator.run(plan.action, plan.duplicated, plan.device, above=most_s if known else math.inf)
        if math.isinf(run.time_s):
            return math.inf
        if run.excess_bytes > 0:
            lacks: float = self.effort.lacks + self.effort.lacks_all * run.excess_bytes / self._room
            counted_s = run.time_s if known else 0.0
            return counted_s + lacks * self._unit_s
        if not known:
            # Plans that fit may take many times as long as one that does not.
            self._unit_s = max(self._unit_s, run.time_s)
        if run.time_s < self.best_s:
            self.best, self.best_s = plan, run.time_s
            self.clock.report(run.time_s, solution=self.deployment)
        return run.time_s

    def _moved(self, plan: Plan) -> Plan:
        offer, draw = plan.copy(), self.rng.random()
        group = int(self.rng.integers(len(self._order)))
        if draw < self.effort.anything:
            self._act(offer, group, int(self.rng.integers(len(self.actions))))
        elif draw < self.effort.anything + self.effort.same:
            self._follow(plan, offer)
        else:
            self._single(offer, group)
        return offer

    def _act(self, offer: Plan, group: int, action: int) -> None:
        own = self._members[group]
        offer.action[group], offer.duplicated[own], offer.device[own] = action, 0, -1

    def _follow(self, plan: Plan, offer: Plan) -> None:
        """Groups that follow each other, many of them less often, get what some group has or anything."""
        first, length = int(self.rng.integers(len(self._order))), int(2 ** self.rng.exponential(self.effort.run))
        model = int(self.rng.integers(len(self._order)))
        action, devices = int(plan.action[model]), plan.device[self._members[model]]
        if self.rng.random() < self.effort.fresh:
            action, devices = int(self.rng.integers(len(self.actions))), devices * 0 - 1
        for group in self._order[first : first + length].tolist():
            self._act(offer, group, action)
            if (devices == devices[0]).all():
                offer.device[self._members[group]] = devices[0]

    def _single(self, offer: Plan, group: int) -> None:
        """One operator is duplicated or no more, or gets a device; so do all of its group that have none yet."""
        own = self._members[group]
        place = int(self.rng.choice(own))
        if self._may_duplicate[offer.action[group]] and self.rng.random() < 0.5:
            offer.duplicated[place] = 1 - offer.duplicated[place]
            return
        if offer.device[own[0]] < 0:
            offer.device[own] = self.rng.choice(
                self.instance.devices_of(self.actions[offer.action[group]].device_groups)
            )
        offer.device[place] = self.rng.integers(len(self._at))
        # Where sets of device groups are many, not all are among the actions: then all operators of the group move.
        if not self._on_devices(offer, group):
            offer.device[own] = offer.device[place]
            self._on_devices(offer, group)

    def _on_devices(self, offer: Plan, group: int) -> bool:
        """Give a group the action that its operators' devices mean; False where there is none."""
        own = self._members[group]
        chosen = tuple(sorted({self._at[device] for device in offer.device[own].tolist()}))
        alone = len(self.instance.devices_of(chosen)) == 1
        number = self._numbers.get(Action(chosen, "all_reduce" if alone else "model_parallel"))
        if number is None:
            return False
        offer.action[group], offer.duplicated[own] = number, 0
        if alone:
            offer.device[own] = -1
        return True
