r"""How well the workers can mix for how many seconds: :math:`g(C) = \tfrac12 \max \lambda_2(\sum_j q_j L_j)`.

The maximum is over :math:`q \ge 0`, :math:`\sum_j q_j \le 1`, :math:`\sum_j q_j t_j \le C`, so g is concave. Each point
comes from the interior-point method; with any :math:`Z \succeq 0` of trace 1 beside the all-one vector and
:math:`z_j = \sum_{e \in M_j} a_e^\top Z a_e` every :math:`\mu \ge 0` gives a line above all of g:

.. math:: \lambda_2 \le \sum_j q_j z_j \le \mu C + \max_j (z_j - \mu t_j)^+ .
"""

from itertools import combinations

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.period.instance import Rounds
from ddlopt.models.gossip.spectral.laplacians import Floats, centred, laplacian, on_edges
from ddlopt.models.tolerances import ROUNDING, TINY
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram, solve

# Relative gap of the interior point method, below what the search for a period can tell.
_GAP = 1e-9
_ABOVE = 1.0 + ROUNDING


class Mixing:
    """Points of g and lines above it, as far as they are known."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.times = np.array(rounds.times_s)
        network = rounds.network
        columns = [j for j, matching in enumerate(rounds.matchings) for _ in matching]
        rows = [edge for matching in rounds.matchings for edge in matching]
        shape = (len(network.edges), len(self.times))
        self._edges = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        self._points: list[tuple[float, float, Floats]] = [(0.0, 0.0, np.zeros(len(self.times)))]
        self._lines: list[tuple[float, float]] = []

    @property
    def programs(self) -> int:
        """Eigenvalue programs solved."""
        return len(self._points) - 1

    def most(self, seconds: float) -> float:
        """What g(C) is not more than; at most 1."""
        return min([1.0, *(slope * seconds + offset for slope, offset in self._lines)])

    def reached(self, seconds: float) -> tuple[float, Floats]:
        """What g(C) is at least, and probabilities that show it: between those of the next points solved."""
        before = max((point for point in self._points if point[0] <= seconds), key=lambda point: point[0])
        after = min((point for point in self._points if point[0] >= seconds), key=lambda point: point[0], default=None)
        if after is None or after[0] == before[0]:
            return before[1], before[2]
        share = (seconds - before[0]) / (after[0] - before[0])
        chances = (1.0 - share) * before[2] + share * after[2]
        return self._gap_of(chances), chances

    def settle(self, seconds: float, tolerance: float) -> None:
        """Solve for a budget where it is not known within the relative tolerance."""
        known = self.reached(seconds)[0] if len(self._points) > 1 and seconds <= self._points[-1][0] else 0.0
        if self._lines and self.most(seconds) - known <= tolerance * self.most(seconds):
            return
        at, _ = solve(self._program(seconds), lambda at: self._close(at, seconds))
        chances = np.maximum(0.0, at.y)
        # A few units in the last place, so that they sum to at most 1.
        chances *= (1.0 - 1e-15) * min(1.0, 1.0 / max(chances.sum(), TINY))
        self._points.append((float(self.times @ chances), self._gap_of(chances), chances))
        self._points.sort(key=lambda point: point[0])
        self._lines += self._lines_of(at, seconds)

    def _close(self, at: Iterate, seconds: float) -> bool:
        above = min(slope * seconds + offset for slope, offset in self._lines_of(at, seconds))
        return 2.0 * above - at.t <= _GAP * at.t

    def _gap_of(self, chances: Floats) -> float:
        network = self.rounds.network
        matrix = laplacian(network.nodes, network.ends, self._edges @ chances)
        return max(0.0, float(np.linalg.eigvalsh(matrix)[1]) / 2.0) * (2.0 - _ABOVE)

    def _program(self, seconds: float) -> SpectralProgram:
        network, count = self.rounds.network, len(self.times)
        spent = sparse.csr_array(np.vstack([np.ones(count), self.times / seconds]))
        rows = sparse.vstack([sparse.eye_array(count), -spent], format="csr")
        start = np.full(count, 0.5 * min(1.0 / count, seconds / float(self.times.sum())))
        block = Block(0.0, 1.0, -1.0)
        # L(q) is positive definite beside the all-one vector.
        first = -float(start.max())
        offsets = np.concatenate([np.zeros(count), np.ones(2)])
        return SpectralProgram(network.nodes, network.ends, self._edges, (block,), rows, offsets, start, first)

    def _lines_of(self, at: Iterate, seconds: float) -> list[tuple[float, float]]:
        """The best line at a budget that the multipliers of an iterate give."""
        values, vectors = np.linalg.eigh(centred(at.multipliers[0]))
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        shares = on_edges(positive / max(float(np.trace(positive)), TINY), self.rounds.network.ends)
        z, times = self._edges.T @ shares, self.times
        slopes = {0.0, *(z / times).tolist()}
        for i, j in combinations(range(len(z)), 2):
            if times[i] != times[j]:
                slopes.add(float((z[i] - z[j]) / (times[i] - times[j])))
        lines = [(mu, max(0.0, float((z - mu * times).max()))) for mu in slopes if mu >= 0]
        slope, offset = min(lines, key=lambda line: line[0] * seconds + line[1])
        return [(slope / 2.0 * _ABOVE, offset / 2.0 * _ABOVE)]
