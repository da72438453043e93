"""Shares of time, and a schedule that follows them."""

import math
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.formulations.fair_shares import FairShares, TimeShare
from ddlopt.frontier.scheduling.shares.bandwidths import best_with_bandwidths, feasible, with_bandwidths_of
from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.scheduling.online.engine import Choice, State, simulate
from ddlopt.solvers.scheduling.slot.oracles import Knapsack, Oracle, Packing, knapsack_is_exact
from ddlopt.solvers.scheduling.slot.rates import Floats, Rates
from ddlopt.solvers.scheduling.slot.worth import Gains, SlotGains

_LARGEST = 200_000
"""Shares beyond which the convex program takes longer than anybody waits."""
_IDLE = 1e-6
"""What gains count that the plan has no use for."""
Valued = tuple[Schedule, float]
"""A schedule and its objective."""


@dataclass(frozen=True)
class FairSharing(CertifiedMethod, uses=("start",)):
    r""":class:`~ddlopt.frontier.scheduling.formulations.fair_shares.FairShares`, rounded slot by slot.

    The shares say how much progress :math:`R_{it}` each job is going to make after slot t. A slot goes to the widths
    that gain most if it does:

    .. math::
        \max \sum_i u_i(Z_i + \varphi_i(w_i) + R_{it}) - u_i(Z_i + R_{it}).

    So a job that falls behind its shares gains more, and one whose last chance it is most. Slots are solved as by
    GADGET-style greedy: the knapsack where it is exact, else greedy packing. Then the slots are gone through again,
    each improved with all others as they are: :math:`R_{it}` is now what the schedule itself has in store. With the
    knapsack no such *sweep* makes a sum of utilities worse, unless changes cost time: of those only the slot's own
    counts. The same is done from nothing in store, which is the greedy's schedule, and from the start if there is one;
    the best is taken. The greedy's schedule comes first, so that there is one whatever time the program takes. The
    bound is that of the prices of the convex program. Where bandwidth is shared out, the rings of this schedule, and
    those of one that reserves every ring's own bandwidth, get their best bandwidths in the end
    (:func:`~ddlopt.frontier.scheduling.shares.bandwidths.best_bandwidths`). All this is ours.

    Details: ``relaxation``, the solver's value of the convex program; ``shares`` in use; ``sweeps`` that were made.

    Parameters
    ----------
    solver : {"clarabel", "scs"}
    sweeps : int
        How often slots are gone through again, at most; it ends with the first time that nothing gets better.
    """

    solver: str = "clarabel"
    sweeps: int = 10

    name: ClassVar[str] = "fair-shares"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.scheduling.slot.knapsack_kernels",)

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """What the formulation does not cover, jobs in one piece, and very large instances."""
        if not instance.preemptive:
            return "jobs run in one piece, which shares of time do not know"
        reason = FairShares().refuses(instance)
        if reason is None:
            cuts = np.unique([(job.arrival, instance.last_slot(i)) for i, job in enumerate(instance.jobs)])
            windows = np.array([(job.arrival, instance.last_slot(i)) for i, job in enumerate(instance.jobs)])
            shares = int(2 * np.diff(np.searchsorted(cuts, windows), axis=1).sum())
            if shares > _LARGEST:
                reason = f"it has some {shares} shares of jobs in intervals, more than {_LARGEST}"
        return reason

    def find(
        self, instance: SchedulingInstance, limits: Limits, seed: int, clock: Clock, start: Schedule | None
    ) -> MethodOutput:
        """See the class.

        Raises
        ------
        SolutionError
            If the start fails the check.
        """
        following = _Following(instance)
        opening = self._followed(instance, following, [], clock)
        clock.report(opening[1], None, opening[0])
        model = FairShares()
        problem = model.problem(instance)
        left = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s / 2, 1e-3))
        outcome = Convex(self.solver).solve(problem, left)
        solved = outcome.status in (Status.OPTIMAL, Status.FEASIBLE)
        shares = model.read(problem, instance) if solved else []
        bound = model.bound(problem, instance)
        schedule, sweeps = self._best(instance, following, [(shares, None), ([], opening)], start, clock, bound)
        if instance.bandwidth == "shared":
            schedule = self._shared(instance, schedule, limits, seed, clock, bound)
        details: dict[str, Any] = {"shares": len(shares), "sweeps": sweeps, **outcome.figures}
        if outcome.value is not None:
            details["relaxation"] = outcome.value
        return MethodOutput(
            schedule, details=details, bound=bound, versions={"solver": outcome.solver}, message=outcome.message
        )

    def _followed(
        self, instance: SchedulingInstance, policy: "_Following", store: list[TimeShare], clock: Clock
    ) -> Valued:
        """The schedule that goes by what is in store."""
        policy.in_store = in_store(instance, store)
        schedule = simulate(instance, policy, clock, self.name).schedule
        return schedule, float(evaluate(instance, schedule).objective or 0.0)

    def _best(
        self,
        instance: SchedulingInstance,
        policy: "_Following",
        stores: list[tuple[list[TimeShare], Valued | None]],
        start: Schedule | None,
        clock: Clock,
        bound: float,
    ) -> tuple[Schedule, int]:
        """The best schedule of all sweeps, and how many there were; of some stores the first is known."""
        known = [schedule for _, schedule in stores if schedule is not None]
        best, value, made = *max(known, key=itemgetter(1)), 0
        if start is not None:
            checked = evaluate(instance, start)
            if checked.violations:
                raise SolutionError(f"the schedule to start from fails the check: {checked.violations[0]}")
            stores = [*stores, (_as_shares(start), None)]
            if float(checked.objective or 0.0) >= value:
                best, value = start, float(checked.objective or 0.0)
        clock.report(value, bound, best)
        for store, first in stores:
            last = -math.inf
            for sweep in range(self.sweeps + 1):
                if clock.expired:
                    break
                schedule, objective = first or self._followed(instance, policy, store, clock)
                first = None
                made += bool(sweep)
                if objective > value:
                    best, value = schedule, objective
                    clock.report(value, bound, best)
                if objective <= last:
                    break
                last, store = objective, _as_shares(schedule)
        return best, made

    def _shared(
        self, instance: SchedulingInstance, schedule: Schedule, limits: Limits, seed: int, clock: Clock, bound: float
    ) -> Schedule:
        """The best bandwidths for the rings found, and for those that reserve all they can use."""
        reserved = instance.changed(bandwidth="reserved")
        candidates = [schedule]
        if not clock.expired and self.refuses(reserved) is None:
            part = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s / 2, 1e-3))
            found = self.solve(reserved, part, seed).solution
            assert isinstance(found, Schedule)
            candidates.append(feasible(instance, with_bandwidths_of(instance, found)))
        return best_with_bandwidths(instance, candidates, limits, clock, bound, self.solver)


def _as_shares(schedule: Schedule) -> list[TimeShare]:
    return [TimeShare(run.job, run.width, run.start, run.end, 1.0) for run in schedule.runs]


class _Following:
    """The policy: gains on top of what the shares still have in store."""

    def __init__(self, instance: SchedulingInstance) -> None:
        self._gains = SlotGains(instance)
        self._oracle: Oracle = Packing(instance) if knapsack_is_exact(instance) else Knapsack(instance)
        self.in_store = np.zeros((instance.slots + 1, len(instance.jobs)))

    def choose(self, state: State) -> Choice:
        """Ask the oracle."""
        later = self._gains.after(state, state.active, state.done + self.in_store[state.slot + 1], state.slot)
        now = self._gains.of(state)
        return self._oracle.best(state, Gains(later.jobs, later.starts, later.values + _IDLE * now.values)).choice


def in_store(instance: SchedulingInstance, shares: list[TimeShare]) -> Floats:
    """(T + 1, I) mini-batches that the shares give each job in slot t and later."""
    rates = Rates(instance)
    found = np.zeros((instance.slots + 1, len(instance.jobs)))
    for one in shares:
        found[one.start : one.end, one.job] += one.share * rates.row(one.job)[one.width]
    return np.cumsum(found[::-1], axis=0)[::-1]
