"""A bound from the best prices, and plans from those that are least at prices on the way."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.frontier.deployment.plan.choices import Choice, Choices, number_of_choices
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.parts import Parts
from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.models.deployment.family import DeploymentProblem
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import NoSolutionError, SolutionError
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import MOST_SETS, forward_order, lists_all_sets
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_MOST_CHOICES = 1000
"""Of a group, for which a turn takes about a second."""
_ALIKE = 0.5
"""Part of the kicks that give a run of groups the same action; others give two groups anything."""
_STARTS = 5
"""Plans that descents begin at, at most, before there are kicks."""
_OTHERWISE = 2
"""Groups to which these give anything."""
_NEVER = 1e9
"""Seconds that no plan takes; what does not fit has more."""
_OPENING, _PRICES = 0.2, 0.6
"""Parts of the time until the first search and the prices are to have ended, where a search comes after them."""


@dataclass(frozen=True)
class PlanPrices(CertifiedMethod, uses=("seed", "start")):
    """Prices of rows (:class:`~.BestPrices`), and the best of the plans met on the way, improved by local search.

    The bound holds for all deployments and every order of work; parts of the plans have prices of their own. A plan
    that is least at prices has parts that fit each other, where a search that changes one group after the other pays
    for transfers on the way to it. The best plans are improved in turn: single groups take any choice, with any devices
    for operators that have but one if these are not too many, runs of groups take the same one, with kicks. A plan that
    does not fit in memory is worse than any that does, by as much as it lacks.

    Parameters
    ----------
    turns : int
        Of the prices, at most.
    parts : int
        How many parts of the plans are parted again for a better bound (:class:`~.Parts`), at most.
    kicks : int
        Of the search, at most.
    """

    turns: int = 1000
    parts: int = 1000
    kicks: int = 100

    name: ClassVar[str] = "plan-prices"
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.deployment.plan.simulator.run",
        "ddlopt.frontier.deployment.plan.prices.kernels",
    )

    def refuses(self, instance: DeploymentProblem) -> str | None:
        """Other problems, and too many choices of a group."""
        if not isinstance(instance, DeploymentInstance):
            return f"it searches deployments, and this is a {instance.kind}"
        if not lists_all_sets(instance):
            return f"{len(instance.device_groups)} device groups make more than {MOST_SETS} sets"
        most = max(map(len, instance.members))
        layouts, machines = 2 ** len(instance.device_groups) - 1, len(instance.device_groups)
        if machines**most + (layouts << (most + 1)) + 2 * layouts > _MOST_CHOICES:
            return f"a group of {most} operators has more than {_MOST_CHOICES} choices"
        return None

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan found, and the bound.

        Raises
        ------
        NoSolutionError
            If no plan that was tried fits in memory.
        """
        until_s = math.inf if limits.time_s is None else limits.time_s
        best, time_s = self._opening(instance, limits, seed, clock, start)
        priced_s = until_s * (_PRICES if self.kicks else 1.0)
        with threadpool_limits(1):
            prices, parts = self._priced(instance, clock, None if best is None else time_s, priced_s, limits.gap)
        walk = _Walk(instance, _all_choices(prices.figures.choices), clock, np.random.default_rng(seed))
        known = None if best is None else walk.places(best)
        plans = [*walk.spread_out(prices.figures.choices, parts.plans), *([] if known is None else [known])]
        found, found_s = walk.improved(np.array(plans), self.kicks, time_s)
        if found is not None:
            best, time_s = found, found_s
        if parts.found is not None and parts.found_s < time_s:
            best, time_s = walk.deployment(parts.found), parts.found_s
        if best is None:
            raise NoSolutionError("no plan that was tried fits in the memory of the devices")
        details = {
            "turns": float(prices.turns),
            "parted": float(parts.parted),
            "plans": float(len(parts.plans)),
            "simulated": float(walk.simulated),
        }
        # Where every part ends at plans that do not fit or are slower, none is better than the best one.
        return MethodOutput(best, details, bound=min(parts.bound_s, time_s * (1.0 - BOUND_MARGIN)))

    def _priced(
        self, instance: DeploymentInstance, clock: Clock, time_s: float | None, until_s: float, gap: float
    ) -> tuple[BestPrices, Parts]:
        """Prices of all plans, and of parts of them."""
        prices = BestPrices(instance)
        while prices.turn() and prices.turns < self.turns and clock.elapsed_s < until_s:
            clock.report(time_s, prices.bound_s)
        parts, enough_s = Parts(prices), math.inf if time_s is None else time_s * (1.0 - gap)
        while parts.parted < self.parts and parts.bound_s < enough_s and clock.elapsed_s < until_s and parts.step():
            clock.report(time_s, parts.bound_s)
        return prices, parts

    def _opening(
        self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any
    ) -> tuple[Deployment | None, float]:
        """A plan to begin with, and its time."""
        if isinstance(start, Deployment):
            simulator = Simulator(instance)
            try:
                run = simulator.run(*simulator.choice(start))
            except (SolutionError, KeyError):
                return None, math.inf
            if run.excess_bytes > 0:
                return None, math.inf
            clock.report(run.time_s)
            return start, run.time_s
        share = None if limits.time_s is None else _OPENING * limits.time_s
        first = PlanSearch().solve(instance, Limits(share), seed)
        if isinstance(first.solution, Deployment) and first.objective is not None:
            clock.report(first.objective)
            return first.solution, first.objective
        return None, math.inf


def _all_choices(known: Choices) -> Choices:
    """Every device for every operator, where that is not too much; else what prices choose from."""
    most = max(number_of_choices(known.instance, len(own), every=True) for own in known.instance.members)
    return Choices(known.instance, every=True) if most <= _MOST_CHOICES else known


class _Walk:
    """Local search on plans given as places of choices."""

    def __init__(self, instance: DeploymentInstance, choices: Choices, clock: Clock, rng: np.random.Generator) -> None:
        self.choices, self.clock, self.rng = choices, clock, rng
        self.simulated = 0
        self._simulator = Simulator(instance, choices.actions)
        self._order = forward_order(instance)
        self._numbers = [{each: place for place, each in enumerate(own)} for own in choices.of_groups]
        # What several groups may have alike: everything on one device, or nothing duplicated.
        self._plain = [
            {(each.action, each.devices[0]): place for each, place in own.items() if _is_plain(each)}
            for own in self._numbers
        ]
        work_s = sum(max(map(max, operator.times_s.values())) for operator in instance.operators)
        self._never_s = _NEVER * (1.0 + work_s)
        self._resident = np.array([operator.resident_bytes for operator in instance.operators])
        groups = instance.device_groups
        self._room = np.array([groups[j].memory_bytes for j in instance.device_group_of])

    def deployment(self, plan: tuple[Ints, Ints, Ints]) -> Deployment:
        """Of actions, duplicated and devices."""
        return self._simulator.deployment(*plan)

    def places(self, plan: Deployment) -> Ints | None:
        """Of a plan's choices; None where one is not among them under the same name."""
        actions, duplicated, devices = self._simulator.choice(plan)
        places = []
        for group, members in enumerate(self.choices.instance.members):
            on = list(members)
            choice = Choice(int(actions[group]), tuple(duplicated[on].tolist()), tuple(devices[on].tolist()))
            if choice not in self._numbers[group]:
                return None
            places.append(self._numbers[group][choice])
        return np.array(places)

    def spread_out(self, known: Choices, plans: list[Ints]) -> list[Ints]:
        """Plans whose operators are on the first device of a device group, each on the one with most memory left."""
        if known is self.choices:
            return plans
        instance, found = self.choices.instance, []
        for action, duplicated, device in zip(*known.rows(np.array(plans)), strict=True):
            free, places = self._room.copy(), np.zeros(len(action), np.int64)
            for group in self._order.tolist():
                own = list(instance.members[group])
                sets = self.choices.actions[action[group]].device_groups
                if device[own[0]] < 0:
                    free[list(instance.devices_of(sets))] -= self._resident[own].sum()
                else:
                    for place in own:
                        alike = list(instance.devices_of((int(instance.device_group_of[device[place]]),)))
                        device[place] = alike[int(free[alike].argmax())]
                        free[device[place]] -= self._resident[place]
                choice = Choice(int(action[group]), tuple(duplicated[own].tolist()), tuple(device[own].tolist()))
                places[group] = self._numbers[group][choice]
            found.append(places)
        return found

    def improved(self, plans: Ints, kicks: int, below_s: float) -> tuple[Deployment | None, float]:
        """The best plan that descents from the best of ``plans`` lead to, if it takes less than ``below_s``."""
        times = self._times(plans, math.inf)
        row, time_s, best, best_s = plans[0], math.inf, None, below_s
        starts = np.argsort(times, kind="stable")[: max(1, min(_STARTS, kicks // 6))]
        for kick in range(kicks + len(starts)):
            if self.clock.expired:
                break
            if kick < len(starts):
                offer, offer_s = plans[starts[kick]], float(times[starts[kick]])
            else:
                offer = self._kicked(row)
                offer_s = float(self._times(offer[None], math.inf)[0])
            offer, offer_s = self._descend(offer, offer_s)
            if offer_s <= time_s:
                row, time_s = offer, offer_s
            if time_s < min(best_s, self._never_s):
                best, best_s = row, time_s
                self.clock.report(best_s)
        if best is None:
            return None, below_s
        rows = self.choices.rows(best[None])
        return self._simulator.deployment(rows[0][0], rows[1][0], rows[2][0]), best_s

    def _kicked(self, row: Ints) -> Ints:
        offer = row.copy()
        if self.rng.random() < _ALIKE:
            self._same(offer, self._run())
            return offer
        for group in self.rng.integers(len(offer), size=_OTHERWISE).tolist():
            offer[group] = self.rng.integers(len(self.choices.of_groups[group]))
        return offer

    def _descend(self, row: Ints, time_s: float) -> tuple[Ints, float]:
        while True:
            before_s = time_s
            for group in self.rng.permutation(len(self._order)):
                offers = np.repeat(row[None], len(self.choices.of_groups[group]), axis=0)
                offers[:, group] = np.arange(len(offers))
                row, time_s = self._best(offers, row, time_s)
                run = self._run()
                common = set.intersection(*(set(self._plain[each]) for each in run.tolist()))
                offers = np.repeat(row[None], len(common), axis=0)
                for place, action in enumerate(sorted(common)):
                    offers[place, run] = [self._plain[each][action] for each in run.tolist()]
                row, time_s = self._best(offers, row, time_s)
                if self.clock.expired:
                    return row, time_s
            if time_s >= before_s:
                return row, time_s

    def _best(self, offers: Ints, row: Ints, time_s: float) -> tuple[Ints, float]:
        times = self._times(offers, time_s)
        place = int(times.argmin()) if len(times) else 0
        return (offers[place], float(times[place])) if len(times) and times[place] < time_s else (row, time_s)

    def _times(self, plans: Ints, above_s: float) -> Floats:
        """Of plans; where they do not fit longer than any that does, by as much as they lack of the memory."""
        self.simulated += len(plans)
        times, excess = self._simulator.run_each(*self.choices.rows(plans), above=above_s)
        lacks = excess > 0
        times[lacks] = self._never_s * (1.0 + excess[lacks] / self._room.sum())
        return times

    def _same(self, row: Ints, run: Ints) -> None:
        """One action at random for a run of groups."""
        common = sorted(set.intersection(*(set(self._plain[each]) for each in run.tolist())))
        action = common[int(self.rng.integers(len(common)))]
        row[run] = [self._plain[each][action] for each in run.tolist()]

    def _run(self) -> Ints:
        """Some groups that follow each other, twice as many with half the probability."""
        first = int(self.rng.integers(len(self._order)))
        return self._order[first : first + int(2 ** self.rng.exponential(2)) + 1]


def _is_plain(choice: Choice) -> bool:
    """Whether all operators lie alike."""
    return not any(choice.duplicated) and len(set(choice.devices)) == 1
