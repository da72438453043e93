r"""How well designed rounds can mix, from above and in rational numbers.

For vectors :math:`v_k` and shares :math:`\alpha_k \ge 0` that add up to 1 let
:math:`z_j = \sum_k \alpha_k\, v_k^\top L_j v_k / |v_k - \bar v_k|^2`. As :math:`\lambda_2` is the least of such
quotients, :math:`\lambda_2(\sum_j q_j L_j) \le \sum_j q_j z_j`, and with :math:`q \ge 0`, :math:`\sum_j q_j \le 1` and
:math:`\sum_j q_j t_j = C` that is at most :math:`\mu C + \max_j (z_j - \mu t_j)^+` for every :math:`\mu \ge 0`. Floats
choose vectors, shares and :math:`\mu`: any would do.
"""

from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip.period.instance import Rounds

Floats = npt.NDArray[np.float64]

_VECTOR_UNIT = 2**30
"""Entries of vectors are whole numbers of which this is 1."""
_SHARE_UNIT = 2**40
"""The same of shares and slopes."""
_CLOSE = 3e-6
"""Relative distance from the best mixing for some seconds at which no vector is added: below what claims leave."""
_MOST_VECTORS = 100
"""Of one budget: a few for each matching are enough."""
_AT_ONCE = 4
"""Eigenvectors added at a time, the all-one vector among them."""
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""The least that HiGHS takes: eigenvalues may be small beside 1."""
_ROUNDED = 2**60
"""Quotients and lines are rounded upwards in this unit, so that their fractions stay short."""


class ExactMixing:
    r"""Lines above :math:`g(C) = 1 - \rho`, of which more are found where they are asked for."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.times = [Fraction(time) for time in rounds.times_s]
        self._lines: list[tuple[Fraction, Fraction]] = []
        self._in_floats: list[tuple[float, float]] = []
        self._quotients: list[list[Fraction]] = []
        self._table: list[list[float]] = []
        self._seen: dict[float, float] = {}
        n, ends = rounds.network.nodes, rounds.network.edges
        self._laplacians = np.zeros((len(self.times), n, n))
        for j, matching in enumerate(rounds.matchings):
            for a, b in (ends[edge] for edge in matching):
                self._laplacians[j, [a, b], [a, b]] += 1.0
                self._laplacians[j, [a, b], [b, a]] -= 1.0
        self._add(np.full(len(self.times), 1.0 / len(self.times)))

    def most(self, seconds: Fraction) -> Fraction:
        """An upper bound on g at all times up to this one."""
        if not self._lines:
            return Fraction(1)
        # Any line would do: which is the lowest is said by floats, and only that one is calculated.
        at = float(seconds)
        heights = [slope * at + offset for slope, offset in self._in_floats]
        slope, offset = self._lines[heights.index(min(heights))]
        return min(Fraction(1), _up(slope * seconds + offset))

    def settle(self, seconds: float) -> float:
        """Find a line that is close at a given time; a lower bound on g there, in floating point."""
        if seconds in self._seen:
            return self._seen[seconds]
        reached = 0.0
        for _ in range(_MOST_VECTORS):
            value, chances, shares, slope = self._program(seconds)
            reached = max(reached, self._add(chances))
            if value - reached <= _CLOSE * value:
                break
        line = self._line(shares, slope)
        self._lines.append(line)
        self._in_floats.append((float(line[0]), float(line[1])))
        self._seen[seconds] = reached / 2.0
        return reached / 2.0

    def _program(self, seconds: float) -> tuple[float, Floats, Floats, float]:
        """The best mixing for the vectors so far: its value, probabilities, shares of vectors, worth of a second."""
        table = np.array(self._table)
        count, times = table.shape[1], np.array(self.rounds.times_s)
        rows = np.vstack([np.column_stack([-table, np.ones(len(table))]), [*np.ones(count), 0.0], [*times, 0.0]])
        limits = np.concatenate([np.zeros(len(table)), [1.0, seconds]])
        cost = np.concatenate([np.zeros(count), [-1.0]])
        found = linprog(cost, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs", options=_TIGHT)
        worth = -found.ineqlin.marginals
        if not found.success:
            raise NotApplicableError(f"no bound on mixing: the program for {seconds:g} s is not solved")
        return float(-found.fun), found.x[:-1], worth[:-2], float(worth[-1])

    def _add(self, chances: Floats) -> float:
        """Add the vectors that mix worst; the eigenvalue of the first."""
        values, vectors = np.linalg.eigh(np.tensordot(chances, self._laplacians, 1))
        for column in range(min(_AT_ONCE, len(values))):
            # Any basis of the least eigenvalues; the all-one vector, or what is next to it, is left out.
            whole = [round(float(value) * _VECTOR_UNIT) for value in vectors[:, column]]
            quotients = self._quotients_of(whole)
            if quotients is not None:
                self._quotients.append(quotients)
                self._table.append([float(each) for each in quotients])
        return max(0.0, float(values[1]))

    def _quotients_of(self, whole: list[int]) -> list[Fraction] | None:
        """For each matching that of the vector, rounded upwards; None if the vector is next to the all-one vector."""
        n, ends = self.rounds.network.nodes, self.rounds.network.edges
        below = n * sum(value * value for value in whole) - sum(whole) ** 2
        if below < _VECTOR_UNIT:
            return None
        squares = (
            sum((whole[a] - whole[b]) ** 2 for a, b in (ends[edge] for edge in matching))
            for matching in self.rounds.matchings
        )
        return [_up(Fraction(n * square, below)) for square in squares]

    def _line(self, shares: Floats, slope: float) -> tuple[Fraction, Fraction]:
        """The line of g that shares of the vectors prove, without any rounding."""
        parts = [max(0, round(float(share) * _SHARE_UNIT)) for share in shares]
        whole = sum(parts)
        if not whole:
            parts, whole = [1] * len(parts), len(parts)
        used = [(part, row) for part, row in zip(parts, self._quotients, strict=False) if part]
        worth = [sum((part * row[j] for part, row in used), Fraction(0)) / whole for j in range(len(self.times))]
        rate = Fraction(max(0, round(slope * _SHARE_UNIT)), _SHARE_UNIT)
        offset = max(Fraction(0), *(z - rate * time for z, time in zip(worth, self.times, strict=True)))
        return rate / 2, offset / 2


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * _ROUNDED), _ROUNDED)
