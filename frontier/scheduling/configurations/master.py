"""The linear program over the patterns found so far, kept in HiGHS from round to round."""

from collections.abc import Callable
from typing import Any, NamedTuple

import highspy
import numpy as np

from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.frontier.scheduling.formulations.configurations import Pattern, PatternPlan
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.concave.piecewise import tangents_at
from ddlopt.models.tolerances import ZERO_TOL
from ddlopt.solvers.scheduling.slot.rates import Floats

_GRID = np.array([0.3, 0.7, 0.9, 0.97, 0.99, 0.997, 1.0, 1.003, 1.01, 1.03, 1.1, 1.4, 2.0])
"""Where tangents touch a utility, relative to the part that is done in the last optimum."""
# Part of a progress by which a tangent may be beside it: of a logarithm it is then off by 0.004^2 / 2 = 8e-6.
_NEAR = 0.004
_PIECES = len(_GRID) + 2
_GIVEN_UP = ("kInterrupt", "kHighsInterrupt")


class Optimum(NamedTuple):
    """Of the linear program; ``attained`` is what its solution is worth by the utilities themselves, never more.

    The prices are those of progress (I,), for all mini-batches of a job, and of slots (K,); ``columns`` are what HiGHS
    has for its variables.
    """

    value: float
    attained: float
    progress_prices: Floats
    slot_prices: Floats
    columns: Floats


class Master:
    """The linear relaxation of :class:`~.Configurations` with few patterns.

    Its utilities have few tangents, close to each other where progress was in the last optimum: :meth:`aim` moves them.
    Its value is never below that with the utilities themselves.

    Parameters
    ----------
    instance : SchedulingInstance
    plan : PatternPlan
        Of the same instance.
    stop : callable
        Asked again and again in a solve, whether to give it up.
    """

    def __init__(self, instance: SchedulingInstance, plan: PatternPlan, stop: Callable[[], bool]) -> None:
        self._instance, self._plan = instance, plan
        self.patterns: list[dict[Pattern, int]] = [{} for _ in plan.spans]
        """Patterns of each interval, and their columns."""
        self._wanted: Floats = np.array([c.wanted for c in plan.jobs])
        self._most: Floats = np.array([min(1.0, c.reach / c.wanted) for c in plan.jobs])
        self._aims: Floats = self._most / 2
        self._slopes: Floats = np.zeros((len(plan.jobs), _PIECES))
        self._program = RestrictedMaster("patterns")
        self._highs = self._program.highs
        self._highs.setCallback(lambda kind, message, out, into, data: _answer(into, stop), None)
        self._highs.startCallback(highspy.cb.HighsCallbackType.kCallbackSimplexInterrupt)
        for span in plan.spans:
            self._program.add_row(-INF, float(span.slots))
        self._program.add_rows(len(plan.jobs), 0.0, INF)
        self._by_part = instance.goal.counts_least_part
        if self._by_part:
            self._program.add(-1.0, len(plan.spans) + np.arange(len(plan.jobs)), -self._wanted, upper=1.0)
        else:
            self._add_pieces()

    def _add_pieces(self) -> None:
        for job in range(len(self._plan.jobs)):
            for _ in range(_PIECES):
                self._program.add(0.0, [len(self._plan.spans) + job], [-1.0], upper=0.0)
            self._put_tangents(job)

    def _put_tangents(self, job: int) -> None:
        wanted, most, utility = self._wanted[job], self._most[job], self._instance.jobs[job].utility
        assert utility.kind != "all_or_nothing"
        points = np.clip(np.concatenate(([0.0, most], self._aims[job] * _GRID)), 0.0, most)
        lengths, slopes = tangents_at(utility, points)
        columns = np.arange(job * _PIECES, (job + 1) * _PIECES, dtype=np.int32)
        rest = np.zeros(_PIECES - len(lengths))
        self._slopes[job] = np.concatenate((slopes / wanted, rest))
        self._highs.changeColsCost(_PIECES, columns, -self._slopes[job])
        self._highs.changeColsBounds(_PIECES, columns, np.zeros(_PIECES), np.concatenate((lengths * wanted, rest)))

    def _filled(self, columns: Floats) -> Floats:
        """(I, pieces) progress in each piece."""
        return columns[: self._slopes.size].reshape(self._slopes.shape)

    def aim(self, optimum: Optimum) -> int:
        """Move tangents to where progress is in the optimum; of how many jobs that changes the utilities."""
        if self._by_part:
            return 0
        parts = self._filled(optimum.columns).sum(axis=1) / self._wanted
        moved = np.flatnonzero(np.abs(parts - self._aims) > _NEAR * self._aims)
        for job in moved.tolist():
            self._aims[job] = parts[job]
            self._put_tangents(job)
        return len(moved)

    def add(self, interval: int, pattern: Pattern) -> bool:
        """Add a pattern of an interval; whether it is new."""
        if not pattern or pattern in self.patterns[interval]:
            return False
        gains = self._plan.gains(pattern)
        rows = [interval, *(len(self._plan.spans) + job for job, _ in gains)]
        values = [1.0, *(gain for _, gain in gains)]
        self.patterns[interval][pattern] = self._program.add(self._plan.price(pattern), rows, values)
        return True

    def solve(self) -> Optimum | None:
        """The optimum with the patterns added so far; None if it was given up.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        try:
            found = self._program.solve()
        except SolverError:
            if self._highs.getModelStatus().name in _GIVEN_UP:
                return None
            raise
        spans, columns = len(self._plan.spans), found.values
        prices = np.maximum(0.0, found.duals[spans:]) * self._wanted
        attained = -found.value - self._excess(columns)
        return Optimum(-found.value, attained, prices, np.maximum(0.0, -found.duals[:spans]), columns)

    def _excess(self, columns: Floats) -> float:
        """What the pieces add to the utilities."""
        if self._by_part:
            return 0.0
        filled = self._filled(columns)
        parts = np.minimum(1.0, filled.sum(axis=1) / self._wanted).tolist()
        worth = sum(float(job.utility.of(part)) for job, part in zip(self._instance.jobs, parts, strict=True))
        return float((self._slopes * filled).sum()) - worth

    def shares(self, optimum: Optimum) -> list[dict[Pattern, float]]:
        """Slots of each interval that look like each pattern in the optimum, in fractions."""
        values = dict(enumerate(optimum.columns.tolist()))
        found = [{p: values.get(column, 0.0) for p, column in here.items()} for here in self.patterns]
        return [{p: slots for p, slots in here.items() if slots > ZERO_TOL} for here in found]

    def worth_using(self, optimum: Optimum, slack: float) -> tuple[tuple[Pattern, ...], ...]:
        """The patterns of each interval but those of which one slot costs more than ``slack`` of the optimum."""
        found = []
        for k, here in enumerate(self.patterns):
            least = optimum.slot_prices[k] - slack
            found.append(tuple(pattern for pattern in here if self._worth(optimum, pattern) >= least))
        return tuple(found)

    def _worth(self, optimum: Optimum, pattern: Pattern) -> float:
        prices = optimum.progress_prices
        done = sum(float(prices[job]) * gain / self._plan.jobs[job].wanted for job, gain in self._plan.gains(pattern))
        return done - self._plan.price(pattern)

    def close(self) -> None:
        """Let go of what HiGHS keeps for this thread, so that others may set its number of threads."""
        self._highs.disableCallbacks()
        self._program.close()


def _answer(into: Any, stop: Callable[[], bool]) -> None:
    if into is not None and stop():
        into.user_interrupt = True
