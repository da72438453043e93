"""Between the greedy over slots and the offline optimum: an exact model of the next few slots, again and again."""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import AllOrNothing, Capped, Schedule, SchedulingInstance
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.instance import Job
from ddlopt.models.scheduling.types import refusal
from ddlopt.models.scheduling.utility import DONE
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.gadget import Greedy
from ddlopt.solvers.scheduling.online.engine import Choice, State, simulate
from ddlopt.solvers.scheduling.slot.oracles import Knapsack, Oracle, Packing, knapsack_is_exact
from ddlopt.solvers.scheduling.slot.packing import Place
from ddlopt.solvers.scheduling.slot.rates import Floats
from ddlopt.solvers.scheduling.slot.worth import SlotGains


@dataclass(frozen=True)
class RollingHorizon(Heuristic, uses=("seed",)):
    """Plans the next ``horizon`` slots exactly for the jobs it knows, does the first ``commit`` of them, plans again.

    With ``horizon`` 1 this is the greedy over slots with an exact oracle; with the whole horizon, ``clairvoyant``, the
    offline optimum (to the model's tolerance). What lies between shows the price of not knowing the future.

    A window is a :class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed` model that
    maximises utility, or the smallest part done, at its end. It does not care *when* within the window something is
    done, so that room left in a slot goes to whatever gains most there (not where energy has a price). An
    all-or-nothing job that cannot finish within the window counts with the concave envelope of its utility, v p.

    Parameters
    ----------
    horizon : int
        Slots of a window, H.
    commit : int
        Slots that are done before the next plan, at most H.
    clairvoyant : bool
        Whether the jobs that will arrive within the window are known.
    window_s : float
        Most time for one window's model; what it has found by then is done. Of a time limit for the whole, every window
        that is still to come keeps an equal part; where that is not enough to build a model, the greedy does the slot.
    gap : float
        Relative gap up to which a window is solved.
    """

    horizon: int = 4
    commit: int = 1
    clairvoyant: bool = False
    window_s: float = 5.0
    gap: float = 1e-4

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.scheduling.prices.knapsack_kernels",)

    def __post_init__(self) -> None:
        if not 1 <= self.commit <= self.horizon:
            raise OptionError(f"commit is {self.commit}, but it must be 1..{self.horizon}, the slots of the horizon")

    @property
    def name(self) -> str:
        """``rolling-horizon``."""
        return "rolling-horizon"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """What the window's model does not cover, jobs in one piece, and objectives that need all jobs finished."""
        if not instance.preemptive:
            return "jobs run in one piece, and a plan binds beyond its window"
        if instance.sense == "minimize":
            return f"the objective is {instance.objective!r}, but not all jobs have an end within a window"
        if instance.changes_cost:
            return "changes cost time, but a window does not know how jobs ran before it; use kept-runs or gadget"
        return refusal(instance) or TimeIndexed().refuses(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """Simulate; how many windows were planned, and how many of them proven optimal."""
        policy = _Planner(instance, self, seed, clock)
        found = simulate(instance, policy, clock, self.name)
        figures = {"windows": policy.windows, "windows_proven": policy.proven}
        return found.schedule, {"slots_simulated": found.slots, **figures}


@dataclass
class _Planner:
    """The policy: a plan for some slots, and what fills the room that it leaves."""

    instance: SchedulingInstance
    options: RollingHorizon
    seed: int
    clock: Clock
    windows: int = 0
    proven: int = 0
    plan: dict[int, dict[int, Place]] = field(default_factory=dict)
    until: int = 0
    building_s: float = 0.0
    gains: SlotGains = field(init=False)
    filler: Oracle = field(init=False)

    def __post_init__(self) -> None:
        self.gains = SlotGains(self.instance)
        exact = knapsack_is_exact(self.instance) is None
        self.filler = Knapsack(self.instance) if exact else Packing(self.instance)

    def choose(self, state: State) -> Choice:
        """Plan if it is time to, then do as planned and fill the room that is left."""
        if state.slot >= self.until:
            self._plan(state)
        active = set(state.active.tolist())
        chosen: dict[int, int | Place] = {
            job: place for job, place in self.plan.get(state.slot, {}).items() if job in active
        }
        if not self.instance.energy_price_per_j or not self.plan:
            chosen.update(self._fill(state, chosen))
        return chosen

    def _fill(self, state: State, chosen: Mapping[int, Any]) -> Choice:
        busy = np.fromiter(chosen, dtype=np.int64, count=len(chosen))
        width = state.width.copy()
        width[busy] = [place.width for place in chosen.values()]
        others = np.setdiff1d(state.active, busy, assume_unique=True)
        rest = dataclasses.replace(state, active=others, held=chosen, width=width)
        return self.filler.best(rest, self.gains.of(rest)).choice

    def _plan(self, state: State) -> None:
        end = min(self.instance.slots, state.slot + self.options.horizon)
        self.until = min(end, state.slot + self.options.commit)
        known = state.active.tolist()
        if self.options.clairvoyant:
            known += np.flatnonzero((state.arrival > state.slot) & (state.arrival < end)).tolist()
        jobs = {job: found for job in known if (found := self._job(state, job, end)) is not None}
        self.plan = {}
        if self._share_s(state) < 2 * self.building_s:  # too little for a model: this slot is left to the filler
            self.until = state.slot + 1
        elif jobs:
            for slot, here in self._solve(state, jobs, end).items():
                self.plan[state.slot + slot] = here

    def _share_s(self, state: State) -> float:
        """Seconds for one of the windows that are still to come."""
        return 0.95 * self.clock.left_s * self.options.commit / (self.instance.slots - state.slot)

    def _job(self, state: State, number: int, end: int) -> Job | None:
        """The job as the window has it; None if it can gain nothing."""
        job = self.instance.jobs[number]
        first, last = max(0, job.arrival - state.slot), min(int(state.last[number]), end) - state.slot
        utility: Any = job.utility
        changes: dict[str, Any] = {"arrival": first, "deadline": last}
        if isinstance(utility, AllOrNothing) and self.instance.objective == "utility":
            left = float(state.wanted[number] - state.done[number])
            if left - state.rates.fastest[number] * (last - first) > (1 - float(DONE)) * job.minibatches:
                if last + state.slot == state.last[number]:
                    return None
                utility = Capped(value=utility.value)
        return job.model_copy(update={**changes, "utility": utility})

    def _solve(self, state: State, jobs: Mapping[int, Job], end: int) -> dict[int, dict[int, Place]]:
        """Places by slot of the window."""
        numbers = list(jobs)
        window = self.instance.changed(slots=end - state.slot, jobs=tuple(jobs.values()))
        began = time.perf_counter()
        model = TimeIndexed(done=tuple(state.done[numbers].tolist()))
        filled = build_model("scheduling", model, window)
        block = filled.component("scheduling")
        model.start(block, window, self._greedy(window, state.done[numbers]))
        self.building_s = time.perf_counter() - began
        time_s = min(self.options.window_s, self._share_s(state) - self.building_s)
        limits = Limits(time_s=max(1e-3, time_s), gap=self.options.gap)
        outcome = Highs().solve(filled, limits, self.seed, warm=True)
        self.windows += 1
        self.proven += outcome.status is Status.OPTIMAL
        plan: dict[int, dict[int, Place]] = {}
        if outcome.objective is None:
            return plan
        for run in model.read(block, window).runs:
            for slot in range(run.start, run.end):
                plan.setdefault(slot, {})[numbers[run.job]] = Place(run.workers, run.ring)
        return plan

    def _greedy(self, window: SchedulingInstance, done: Floats) -> Schedule:
        """What the greedy over slots does in the window: a start."""
        exact = knapsack_is_exact(window) is None
        policy = Greedy(window, Knapsack(window) if exact else Packing(window))
        return simulate(window, policy, self.clock, self.options.name, done).schedule
