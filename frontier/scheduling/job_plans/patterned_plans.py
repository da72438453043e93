"""Plans of jobs and patterns of slots together: the bound of either, and more."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ddlopt.frontier.engines.columns import Priced, Smoothing
from ddlopt.frontier.scheduling.job_plans.master import Optimum, Plan, PlanMaster
from ddlopt.frontier.scheduling.job_plans.slot_cuts import SlotCuts, SlotOptions
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Effort:
    """How exactly the program over plans is solved, and when cuts end."""

    coarse: float = 1e-7
    """What each plan may be off by in the rounds, as a part of its job's worth: less than ``nearest``."""
    fine: float = 1e-9
    """The same in answers that are to prove something."""
    room: int = 50
    """Beginnings of a plan kept in the rounds: more make each round longer, and hardly better plans."""
    fine_room: int = 20_000
    """The same in answers that are to prove something: what is dropped weakens the bound."""
    nearest: float = 2e-6
    """Part of the bound within which the program over plans is solved before cuts: a fiftieth of the default gap."""
    smoothing: float = 0.5
    """Part of the best prices that those asked about keep: halfway, and not tuned."""
    stalls: int = 12
    """Rounds of cuts in a row that lower the optimum by less than ``least_gain``, after which they end."""
    least_gain: float = 1e-7
    """Part of the optimum: a thousandth of the default gap, since hundreds of rounds may follow."""


EFFORT = Effort()


class PatternedPlan(NamedTuple):
    """What one job does: ``places`` k O + o of its options in slots of interval k, its worth, and (T,) its choices."""

    job: int
    places: Ints
    worth: float
    choices: Ints


class Jobs(Protocol):
    """Jobs that have options in slots.

    Attributes
    ----------
    options : SlotOptions
    lengths : (K,) array
        Slots of the intervals in which interchangeable slots are counted together.
    """

    options: SlotOptions
    lengths: Ints

    def plans_at(
        self, charges: Floats, income: float, slack: float, room: int
    ) -> tuple[float, Floats, list[PatternedPlan]]:
        """Bound, (I,) values and the best plans at (K, O) ``charges``, of which schedules pay ``income`` at most."""


class Charges(NamedTuple):
    """A bound by (K, O) ``charges`` for options, besides energy, and the ``income``: what all dearest patterns cost."""

    bound: float
    charges: Floats
    income: float


class PatternedPlans:
    r"""Column generation over plans of jobs whose parts, slot for slot, are mixtures of patterns that fit.

    With :math:`n_{qko}` slots of interval k, of :math:`L_k` slots, in which plan q has option o:

    .. math::
        \max \sum_q U_q \lambda_q \quad\text{with}\quad \sum_{q \text{ of } i} \lambda_q \le 1,\qquad
        \tfrac{1}{L_k} \Bigl(\sum_q n_{qko} \lambda_q\Bigr)_o \in \operatorname{conv}\{\text{patterns}\}
        \quad\text{for all } k .

    Capacities come first, then cuts (:class:`~ddlopt.frontier.scheduling.job_plans.slot_cuts.SlotCuts`) that the
    optimum breaks. Multipliers of both are charges :math:`c_{ko} \ge 0` for options, and any charges are a bound (weak
    duality): of each job what its best plan is worth less what it pays, of each slot what its dearest pattern pays.

    Parameters
    ----------
    jobs : Jobs
    clock : Clock

    References
    ----------
    M. Guignard, S. Kim, "Lagrangean decomposition: a model yielding stronger Lagrangean bounds", Mathematical
    Programming 39, 1987 (the bound). R. Fukasawa et al., "Robust branch-and-cut-and-price for the capacitated vehicle
    routing problem", Mathematical Programming 106, 2006 (cuts that pricing takes as costs).
    """

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        options, self.jobs, self.clock = jobs.options, jobs, clock
        self._cuts_of = SlotCuts(options)
        self._many = len(options.weights)
        self._rows = len(jobs.lengths) * len(options.capacity)
        self.master = PlanMaster(
            np.outer(jobs.lengths, options.capacity).ravel().astype(float), len(options.starts) - 1
        )
        self._cuts: list[tuple[int, Floats]] = []
        self.plans: list[PatternedPlan] = []
        self._known: set[tuple[int, bytes]] = set()
        self.best = Charges(math.inf, np.zeros((len(jobs.lengths), self._many)), 0.0)
        self.rounds = 0
        self._smoothing = Smoothing(EFFORT.smoothing)

    def add(self, plan: PatternedPlan) -> bool:
        """Take a plan, if it is new."""
        key = plan.job, np.sort(plan.places).tobytes()
        if not len(plan.places) or key in self._known:
            return False
        self._known.add(key)
        self.master.add(self._column(plan))
        self.plans.append(plan)
        return True

    def _column(self, plan: PatternedPlan) -> Plan:
        """A plan with what it uses of capacities and cuts."""
        where, option = np.divmod(plan.places, self._many)
        uses = np.zeros((len(self.jobs.lengths), len(self.jobs.options.capacity)))
        np.add.at(uses, where, self.jobs.options.weights[option])
        cut = [float(cut[option[where == k]].sum()) for k, cut in self._cuts]
        return Plan(plan.job, plan.choices, np.append(uses.ravel(), cut), plan.worth)

    def charges(self, prices: Floats) -> Floats:
        """(K, O) of options by the prices of capacities and cuts."""
        found: Floats = prices[: self._rows].reshape(len(self.jobs.lengths), -1) @ self.jobs.options.weights.T
        for (k, cut), price in zip(self._cuts, prices[self._rows :].tolist(), strict=True):
            if price:
                found[k] += price * cut
        return found

    def price(self, prices: Floats, slack: float = EFFORT.coarse, room: int = EFFORT.room) -> Priced:
        """Add the best plans at prices of capacities and cuts; the bound, as one of a minimum, and how many are new."""
        charges = self.charges(prices)
        each = [self._cuts_of.dearest(row) for row in charges]
        income = float(self.jobs.lengths @ each) * (1 + BOUND_MARGIN)
        bound, _, plans = self.jobs.plans_at(charges, income, slack, room)
        if bound < self.best.bound:
            self.best = Charges(bound, charges, income)
        self._smoothing.note(-bound, prices)
        return Priced(-bound, sum(map(self.add, plans)))

    def solve(self, reserve_s: float) -> Optimum:
        """The optimum within the cuts so far, unless time runs out."""
        optimum = self.master.solve()
        self._smoothing = Smoothing(EFFORT.smoothing, optimum.prices)
        before, self.best = self.best, self.best._replace(bound=math.inf)
        while self.best.bound - optimum.value > EFFORT.nearest * abs(optimum.value) and self.clock.left_s > reserve_s:
            if not self._smoothing.ask(optimum.prices, self.price):
                break
            optimum = self.master.solve()
        self.best = min(before, self.best, key=lambda one: one.bound)
        return optimum

    def _price_finely(self) -> None:
        """Once more at the best prices of the last program, to prove something."""
        if self._smoothing.prices is not None:
            self.price(self._smoothing.prices, EFFORT.fine, EFFORT.fine_room)

    def cut(self, optimum: Optimum) -> int:
        """Add cuts that the optimum breaks, for each interval one; how many."""
        taken = [(place, part) for place, part in enumerate(optimum.shares.tolist()) if part > 0]
        if not taken:
            return 0
        used = np.zeros(len(self.jobs.lengths) * self._many)
        for place, part in taken:
            np.add.at(used, self.plans[place].places, part)
        sizes = [len(plan.places) for plan in self.plans]
        where, option = np.divmod(np.concatenate([plan.places for plan in self.plans]), self._many)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        before = len(self._cuts)
        for k, row in enumerate(used.reshape(len(self.jobs.lengths), -1)):
            cut = self._cuts_of.cut(row / self.jobs.lengths[k])
            if cut is not None:
                mine = where == k
                uses = np.bincount(owner[mine], weights=cut[option[mine]], minlength=len(sizes))
                self.master.cut(uses.astype(float), float(self.jobs.lengths[k]))
                self._cuts.append((k, cut))
        return len(self._cuts) - before

    def improve(self, wanted: float, reserve_s: float = 0.0) -> None:
        """Rounds of cuts until the bound is at most ``wanted``, none is broken, or ``reserve_s`` seconds are left."""
        optimum, stalled = self.solve(reserve_s), 0
        while self.clock.left_s > reserve_s and stalled < EFFORT.stalls:
            if optimum.value <= wanted < self.best.bound:
                self._price_finely()
            if self.best.bound <= wanted or not self.cut(optimum):
                break
            self.rounds += 1
            before = optimum.value
            optimum = self.solve(reserve_s)
            stalled = 0 if before - optimum.value > EFFORT.least_gain * abs(before) else stalled + 1
        if self.best.bound > wanted and self.clock.left_s > reserve_s:
            self._price_finely()
