"""An online primal-dual heuristic: every job is planned once, at its arrival, at prices that rise with use."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.fastest import upper_envelope
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import TINY, let_pass_at_least
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.online.engine import Choice, State, simulate
from ddlopt.solvers.scheduling.slot.knapsack import scarce_resources
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class PrimalDual(Heuristic, uses=()):
    r"""Admits a job if its best plan at the current prices is worth more than it costs, and keeps that plan.

    With :math:`g_{tr}` of the :math:`C_r` of a resource promised in slot t, a unit of it costs

    .. math::
        p_{tr} = L_r \, (U_r / L_r)^{g_{tr} / C_r} ,

    from :math:`L_r`, half the least worth of a unit over a whole job, up to :math:`U_r`, the most that any job gains by
    a unit in its first slot: so little is promised to jobs of little worth that there is room for better ones. Both are
    taken from all jobs of the instance, which an operator would have to estimate.

    A job's best plan is bought slot by slot: of the widths on the concave envelope of its progress those that cost
    least for what they add, as long as the next one adds more utility than it costs. Where jobs run in one piece, all
    starts and widths are compared. Prices know resources, not links or servers: what finds no place is made smaller by
    the packer.

    Parameters
    ----------
    fill : bool
        Whether jobs that were admitted may also use room that is promised to nobody when the slot comes.

    References
    ----------
    Y. Bao, Y. Peng, C. Wu, Z. Li, "Online job scheduling in distributed machine learning clusters" (OASiS), INFOCOM
    2018, for the manner: exponential prices and admission by payoff. The constants, the plans and their search are a
    reconstruction of ours, and no competitive ratio is claimed.
    """

    fill: bool = False

    @property
    def name(self) -> str:
        """``primal-dual``."""
        return "primal-dual"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Objectives that are no sum of utilities: it turns jobs away."""
        if (reason := refusal(instance)) is not None:
            return reason
        if not instance.goal.counts_utilities:
            return f"the objective is {instance.objective!r}, but it weighs utilities and turns jobs away"
        return None

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """Simulate; how many jobs were admitted."""
        policy = _Prices(instance, self.fill)
        found = simulate(instance, policy, clock, self.name)
        return found.schedule, {"slots_simulated": found.slots, "admitted_jobs": policy.admitted}


@dataclass
class _Prices:
    """The policy: what is promised, and the plans."""

    instance: SchedulingInstance
    fill: bool
    admitted: int = 0
    plans: dict[int, dict[int, int]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        cluster = scarce_resources(pool(self.instance), np.array([job.max_workers for job in self.instance.jobs]))
        self.demand, self.capacity = cluster.demand, cluster.capacity
        self.promised: Floats = np.zeros((self.instance.slots, len(self.capacity)))
        price = self.instance.energy_price_per_j * self.instance.slot_s
        # As if every worker had the hungriest server to itself: what is admitted is worth its energy in any case.
        self.energy = price * float((self.instance.worker_w + self.instance.idle_w).max())
        self.lowest: Floats | None = None
        self.highest: Floats | None = None
        self._envelopes: dict[tuple[int, int], tuple[Ints, Floats]] = {}

    def choose(self, state: State) -> Choice:
        """Plan who is new, then do what was planned for this slot."""
        if self.lowest is None:
            self._set_prices(state)
        for job in state.active.tolist():
            if job not in self.seen:
                self.seen.add(job)
                self._admit(state, job)
        active = set(state.active.tolist())
        chosen = {job: width for job, width in self.plans.pop(state.slot, {}).items() if job in active}
        return self._filled(state, chosen) if self.fill else chosen

    def _filled(self, state: State, chosen: dict[int, int]) -> Choice:
        """Admitted jobs that were to run later take what is left, the next planned ones first."""
        waiting: dict[int, int] = {}
        for slot in sorted(self.plans):
            for job, width in self.plans[slot].items():
                if job not in chosen:
                    waiting.setdefault(job, width)
        present = set(state.active.tolist())
        order = [*chosen, *(job for job in waiting if job in present)]
        return state.admit(order, [{**waiting, **chosen}[job] for job in order])

    def _set_prices(self, state: State) -> None:
        """The least and the largest worth of a unit of each resource."""
        whole, first = np.empty((2, len(self.instance.jobs)))
        for number, job in enumerate(self.instance.jobs):
            rates = state.rates.row(number)
            widths = np.arange(job.min_workers, len(rates))
            parts = rates[widths] / job.minibatches
            whole[number] = float(job.utility.of(1.0)) * float((parts / widths).max())
            first[number] = whole[number]
            if job.utility.concave:
                gains = [float(job.utility.of(min(1.0, part))) for part in parts.tolist()]
                first[number] = max(first[number], float((np.array(gains) / widths).max()))
        with np.errstate(divide="ignore"):
            self.lowest = (whole[:, None] / self.demand).min(axis=0) / 2
            each = np.where(self.demand > 0, first[:, None] / self.demand, 0.0)
        self.highest = np.maximum(each.max(axis=0), self.lowest)

    def prices(self, slots: Ints) -> Floats:
        """(len(slots), R) what a unit of each resource costs."""
        assert self.lowest is not None
        assert self.highest is not None
        prices: Floats = self.lowest * (self.highest / self.lowest) ** (self.promised[slots] / self.capacity)
        return prices

    def _admit(self, state: State, job: int) -> None:
        slots = np.arange(state.slot, int(state.last[job]))
        cost = self.prices(slots) @ self.demand[job] + self.energy
        left = (let_pass_at_least(self.capacity) - self.promised[slots]) / np.maximum(self.demand[job], TINY)
        room = np.minimum(np.floor(left.min(axis=1, initial=np.inf)), state.rates.widest[job]).astype(np.int64)
        plan = (
            self._piece(state, job, cost, room) if not self.instance.preemptive else self._plan(state, job, cost, room)
        )
        self.admitted += bool(plan)
        for place, width in plan.items():
            self.plans.setdefault(int(slots[place]), {})[job] = width
            self.promised[slots[place]] += width * self.demand[job]

    def _plan(self, state: State, job: int, cost: Floats, room: Ints) -> dict[int, int]:
        """Width by slot, counted from now: the cheapest progress first, while it is worth its price."""
        this = self.instance.jobs[job]
        widths, units, gains, places = [], [], [], []
        for most in np.unique(room).tolist():
            corners, rates = self._envelope(state, job, most)
            here = np.flatnonzero(room == most)
            for before, after in zip(range(len(corners) - 1), range(1, len(corners)), strict=True):
                extra = rates[after] - rates[before]
                widths.append(np.full(len(here), corners[after]))
                gains.append(np.full(len(here), extra))
                units.append(cost[here] * (corners[after] - corners[before]) / extra)
                places.append(here)
        if not widths:
            return {}
        width, gain, unit, place = map(np.concatenate, (widths, gains, units, places))
        plan: dict[int, int] = {}
        done = paid = 0.0
        for k in np.lexsort((width, place, unit)).tolist():
            part = min(1.0, (done + gain[k]) / this.minibatches)
            more = float(this.utility.of(part)) - float(this.utility.of(min(1.0, done / this.minibatches)))
            if this.utility.concave and more <= unit[k] * gain[k]:
                break
            plan[int(place[k])] = int(width[k])
            done += gain[k]
            paid += unit[k] * gain[k]
            if done >= this.minibatches * float(DONE):
                break
        return plan if float(this.utility.of(min(1.0, done / this.minibatches))) > paid else {}

    def _envelope(self, state: State, job: int, most: int) -> tuple[Ints, Floats]:
        """Corners of the concave envelope of progress over widths up to ``most``: widths, and mini-batches a slot."""
        key = int(state.rates.row_of[job]), int(state.rates.narrowest[job]) * 10**6 + most
        if key not in self._envelopes:
            widths = np.array([0, *range(int(state.rates.narrowest[job]), most + 1)])
            rates = state.rates.row(job)[widths]
            corners = upper_envelope(widths, rates)
            self._envelopes[key] = widths[corners], rates[corners]
        return self._envelopes[key]

    def _piece(self, state: State, job: int, cost: Floats, room: Ints) -> dict[int, int]:
        """The best start and width of a run in one piece, as width by slot."""
        this = self.instance.jobs[job]
        rates = state.rates.row(job)
        costs = np.concatenate(([0.0], np.cumsum(cost)))
        best, plan = 0.0, {}
        for width in this.widths:
            needed = max(1, int(np.ceil(this.minibatches * float(DONE) / rates[width])))
            blocked = np.concatenate(([0], np.cumsum(room < width)))
            starts = np.arange(len(room))
            # A run that meets the last slot ends there; whatever it has done by then counts.
            ends = np.minimum(starts + needed, len(room))
            free = np.flatnonzero(blocked[ends] == blocked[starts])
            lengths = (ends - starts)[free]
            worth = {
                n: float(this.utility.of(min(1.0, n * rates[width] / this.minibatches))) for n in set(lengths.tolist())
            }
            payoff = np.array([worth[n] for n in lengths.tolist()]) - width * (costs[ends] - costs[starts])[free]
            if len(free) and payoff.max() > best:
                first = int(free[np.argmax(payoff)])
                best = float(payoff.max())
                plan = dict.fromkeys(range(first, int(ends[first])), width)
        return plan
