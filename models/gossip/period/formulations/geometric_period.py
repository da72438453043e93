"""The best period as a geometric program."""

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan, Rounds
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.models.gossip.spectral.laplacians import laplacian


@dataclass(frozen=True)
class GeometricPeriod(Covering):
    r"""Period, step size and, where rounds are designed, how often there is one, for CVXPY (``gp=True``).

    In the notation of :class:`~ddlopt.models.gossip.period.instance.PeriodInstance`, without the −1 of the last term:

    .. math:: \min\; \frac{2\Delta}{\eta s} \Bigl( Y + \frac{C}{\tau} \Bigr) \quad\text{s.t.}\quad
              s + \frac{\eta L \sigma^2}{m} + \eta^2 L^2 \sigma^2 \varphi\,\tau \le \varepsilon, \quad \tau \ge 1 .

    Where all matchings take t seconds, probabilities q that are best when they add up to 1 are best in proportion for
    less, so :math:`g = 1 - \rho` is at most :math:`\kappa C`, :math:`C \le t`, with :math:`\kappa = g(q)/t`; then
    :math:`\varphi = (2 - g)/g` is taken for :math:`2/g`, which is a monomial. What the program promises, the plan
    keeps: left out is only what helps. Its optimum is that of the instance with ``deviation="posynomial"`` and mixing
    that is given.

    Parameters
    ----------
    activation : tuple of float, optional
        q, which adds up to 1, for instances with rounds; equal probabilities unless given.

    Ports
    -----
    ``period``, ``step_size``, ``room``
        Variables τ, η, s.
    ``gap``, ``communication_s`` : where rounds are designed
        Variables g, C.
    ``objective``
        Seconds, to be minimised.

    References
    ----------
    S. Boyd, S.-J. Kim, L. Vandenberghe, A. Hassibi, "A tutorial on geometric programming", Optimization and Engineering
    8 (2007). The program is ours.
    """

    activation: tuple[float, ...] = ()

    covers: ClassVar[type[Instance]] = PeriodInstance

    def refuses(self, instance: PeriodInstance) -> str | None:
        """Stragglers, and rounds with different times."""
        if instance.stragglers is not None and instance.stragglers.random:
            return "its steps may be slow, and the expected time of the slowest worker is no posynomial of the period"
        if instance.rounds is not None and len(set(instance.rounds.times_s)) > 1:
            return "its matchings take different times, so the gap is not a monomial of the seconds"
        return None

    def _rounds(self, rounds: Rounds) -> tuple[tuple[float, ...], float]:
        """Probabilities q and g of them."""
        count = len(rounds.matchings)
        chances = self.activation or (float(np.nextafter(1.0 / count, 0.0)),) * count
        weights = np.zeros(len(rounds.network.edges))
        for matching, chance in zip(rounds.matchings, chances, strict=True):
            weights[list(matching)] += chance
        matrix = laplacian(rounds.network.nodes, rounds.network.ends, weights)
        return chances, float(np.linalg.eigvalsh(matrix)[1]) / 2.0

    def problem(self, instance: PeriodInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        times = TimeToTarget.of(instance)
        period, room = cp.Variable(pos=True, name="period"), cp.Variable(pos=True, name="room")
        step = cp.Variable(pos=True, name="step_size")
        rows = [period >= 1]
        if instance.step_size is not None:
            rows.append(step == instance.step_size)
        if instance.rounds is None:
            assert instance.mixing is not None
            communication: Any = instance.communication_s
            spread: Any = (1.0 + instance.mixing) / (1.0 - instance.mixing) * period
        else:
            longest = instance.rounds.times_s[0]
            rate = self._rounds(instance.rounds)[1] / longest
            gap, communication = cp.Variable(pos=True, name="gap"), cp.Variable(pos=True, name="communication_s")
            rows += [gap <= rate * communication, communication <= longest]
            spread = 2.0 * period / gap
        rows.append(room + times.noise * step + times.drift * step**2 * spread <= instance.target)
        waits = [] if isinstance(communication, float) and communication == 0.0 else [communication / period]
        compute_s = times.computing(1.0)
        a_step = cp.sum([compute_s, *waits]) if waits else compute_s
        return cp.Problem(cp.Minimize(2.0 * instance.initial_gap / (step * room) * a_step), rows)

    def read(self, problem: cp.Problem, instance: PeriodInstance) -> PeriodPlan:
        """The plan of a solved ``problem``, its period rounded to the better neighbour where it is to be whole."""
        values = {name: variable.value for name, variable in problem.var_dict.items()}
        if values["period"] is None:
            raise SolverError("the problem has no values; solve it first")
        times, mixing, communication_s = TimeToTarget.of(instance), instance.mixing, instance.communication_s
        period = float(values["period"])
        activation: tuple[float, ...] = ()
        if instance.rounds is not None:
            activation, gap = self._rounds(instance.rounds)
            # The program sees only C / τ; of equal ones the largest C is best, for φτ = 2τ/g − τ falls.
            communication_s = instance.rounds.times_s[0]
            period *= communication_s / float(values["communication_s"])
            mixing = 1.0 - gap
        assert mixing is not None
        assert communication_s is not None
        period = max(1.0, period)
        if instance.whole:
            tried = (max(1.0, float(period // 1)), float(-(-period // 1)))
            period = min(tried, key=lambda each: times.seconds(each, communication_s, mixing))
        return PeriodPlan(
            instance=instance.name, period=period, step_size=times.step(period, mixing), activation=activation
        )
