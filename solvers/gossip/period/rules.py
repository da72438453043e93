"""Periods without a search: every step, and AdaComm's formula."""

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan, Rounds
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.models.gossip.spectral.laplacians import laplacian
from ddlopt.solvers.gossip.period.exact import UNREACHABLE
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


def adacomm_period(first: float, loss_ratio: float, step_ratio: float = 1.0) -> int:
    r"""The next period of AdaComm: :math:`\lceil \tau_0 \sqrt{(F/F_0) / (\eta/\eta_0)^3} \rceil`.

    Parameters
    ----------
    first : float
        τ₀.
    loss_ratio : float
        Loss now over loss in the beginning.
    step_ratio : float
        Step size now over the first one.

    Notes
    -----
    For a horizon of T seconds with a constant step the assumed bound is least at
    :math:`\tau = \sqrt{2 \Delta C / (\eta^3 L^2 \sigma^2 \varphi T)}`; the rule takes the loss for Δ. The power of the
    step size is what this formula has.
    """
    return max(1, ceil(first * sqrt(loss_ratio / step_ratio**3)))


@dataclass(frozen=True)
class Synchronous(Heuristic, uses=()):
    """Communicate after each step; rounds take each matching as often as the others."""

    name: ClassVar[str] = "synchronous"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = PeriodInstance

    def answer(self, instance: PeriodInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """Period 1 with the best step size."""
        return _plan(instance, 1.0), {}


@dataclass(frozen=True)
class AdaComm(Heuristic, uses=()):
    r"""AdaComm's formula for the horizon that synchronous training needs.

    :math:`\tau = \sqrt{2 \Delta C / (\eta^3 L^2 \sigma^2 \varphi T)}` with the step size and the time T of period 1;
    the step size is then chosen anew. At the horizon of the best plan the formula gives the best period: nobody knows
    it before.

    References
    ----------
    J. Wang, G. Joshi, "Adaptive communication strategies to achieve the best error-runtime trade-off in local-update
    SGD", SysML 2019, with φ for other mixing than an all-reduce.
    """

    name: ClassVar[str] = "adacomm"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = PeriodInstance

    def answer(self, instance: PeriodInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The period by the formula, or 1 where that step size forbids it."""
        times = TimeToTarget.of(instance)
        mixing, communication_s, _ = _given(instance)
        step, horizon_s = times.step(1.0, mixing), times.seconds(1.0, communication_s, mixing)
        spread = (1.0 + mixing) / (1.0 - mixing)
        period = sqrt(2.0 * times.initial_gap * communication_s / (step**3 * times.drift * spread * horizon_s))
        period = min(times.most, max(1.0, float(round(period)) if instance.whole else period))
        if times.seconds(period, communication_s, mixing) == inf:
            period = 1.0
        return _plan(instance, period), {"horizon_s": horizon_s}


def _plan(instance: PeriodInstance, period: float) -> PeriodPlan:
    times = TimeToTarget.of(instance)
    mixing, communication_s, activation = _given(instance)
    if times.seconds(period, communication_s, mixing) == inf:
        raise NoSolutionError(UNREACHABLE)
    step = times.step(period, mixing)
    return PeriodPlan(instance=instance.name, period=period, step_size=step, activation=activation)


def _given(instance: PeriodInstance) -> tuple[float, float, tuple[float, ...]]:
    """ρ, C and probabilities: those given, or those of equally likely matchings."""
    if instance.rounds is None:
        assert instance.mixing is not None
        assert instance.communication_s is not None
        return instance.mixing, instance.communication_s, ()
    count = len(instance.rounds.matchings)
    chance = float(np.nextafter(1.0 / count, 0.0))
    return 1.0 - _gap(instance.rounds, chance), chance * sum(instance.rounds.times_s), (chance,) * count


def _gap(rounds: Rounds, chance: float) -> float:
    weights = np.zeros(len(rounds.network.edges))
    for matching in rounds.matchings:
        weights[list(matching)] += chance
    matrix = laplacian(rounds.network.nodes, rounds.network.ends, weights)
    return float(np.linalg.eigvalsh(matrix)[1]) / 2.0
