"""The best period, and with it the step size and how often which matching is active."""

import heapq
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.period.rounds import Mixing
from ddlopt.solvers.gossip.period.search import best_period
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

# Relative gap for one period, which costs a few evaluations of a function of one variable.
_GAP = 1e-9
# Relative gaps at which a design over several budgets ends by default, and at the least: each costs a program.
_DESIGN_GAP, _LEAST_DESIGN_GAP = 1e-5, 1e-7
UNREACHABLE = "no period reaches the target with this step size: take a smaller step"


@dataclass(frozen=True)
class BestPeriods(CertifiedMethod, uses=("threads",)):
    r"""Branch and bound over periods and, where rounds are designed, over their seconds.

    The time falls with :math:`g = 1 - \rho` and rises with C, and g rises with C. So of all plans with C in an interval
    none is faster than one with its smallest C and what its largest C can do for g at most
    (:mod:`~ddlopt.solvers.gossip.period.rounds`); intervals are split where that bound is least.
    """

    name: ClassVar[str] = "best-period"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = PeriodInstance

    def find(self, instance: PeriodInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """A plan within a relative 1e-9 of the optimum, or 1e-5 to 1e-7 where rounds are designed, as asked for."""
        times = TimeToTarget.of(instance)
        if instance.rounds is not None:
            with threadpool_limits(limits.threads):
                return _designed(instance, times, min(_DESIGN_GAP, max(limits.gap, _LEAST_DESIGN_GAP)), clock)
        assert instance.communication_s is not None
        assert instance.mixing is not None
        found = best_period(times, instance.communication_s, instance.mixing, instance.whole, _GAP)
        if not isfinite(found.seconds):
            raise NoSolutionError(UNREACHABLE)
        step = times.step(found.period, instance.mixing)
        plan = PeriodPlan(instance=instance.name, period=found.period, step_size=step)
        return MethodOutput(plan, {"intervals": found.intervals}, found.bound)


def _designed(instance: PeriodInstance, times: TimeToTarget, gap: float, clock: Clock) -> MethodOutput:
    assert instance.rounds is not None
    mixing = Mixing(instance.rounds)
    inner = gap / 8.0
    longest = float(max(instance.rounds.times_s))
    best, plan = inf, None
    heap: list[tuple[float, float, float]] = [(0.0, 0.0, longest)]
    done, bound = 0, 0.0
    while heap:
        bound, low, high = heapq.heappop(heap)
        if bound >= best * (1.0 - gap) or clock.expired:
            break
        done += 1
        middle = (low + high) / 2.0 if low > 0 else high / 4.0
        for seconds in (high, middle):
            mixing.settle(seconds, inner)
        for seconds in {high, middle}:
            reached, chances = mixing.reached(seconds)
            if reached <= 0:
                continue
            spent = float(mixing.times @ chances)
            rho = 1.0 - min(1.0, reached)
            tried = best_period(times, spent, rho, instance.whole, inner)
            if tried.seconds < best:
                best = tried.seconds
                plan = _plan(instance, times, tried.period, rho, chances)
                clock.report(best, min(bound, best))
        for part in ((low, middle), (middle, high)):
            rho = 1.0 - mixing.most(part[1])
            heapq.heappush(heap, (max(bound, best_period(times, part[0], rho, instance.whole, inner).bound), *part))
    if plan is None:
        raise NoSolutionError(UNREACHABLE)
    return MethodOutput(plan, {"intervals": done, "eigenvalue_programs": mixing.programs}, min(bound, best))


def _plan(instance: PeriodInstance, times: TimeToTarget, period: float, rho: float, chances: np.ndarray) -> PeriodPlan:
    activation = tuple(chances.tolist())
    return PeriodPlan(instance=instance.name, period=period, step_size=times.step(period, rho), activation=activation)
