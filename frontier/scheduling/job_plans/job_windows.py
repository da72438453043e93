"""Some jobs of a schedule at a time, given their best plans together, beside what all others hold."""

from dataclasses import dataclass

import highspy
import numpy as np

from ddlopt.frontier.scheduling.job_plans.rounds import Rounds
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.concave.piecewise import outer_pieces
from ddlopt.models.scheduling.fastest import fastest_rates
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Effort:
    """How large windows are, and how exactly they are solved."""

    jobs: float = 6.0
    """In the first window; the next ones are adapted."""
    fewest: float = 3.0
    """Jobs of any window: two seldom have anything to exchange."""
    tangents: int = 60
    """Of a utility: their error is far below the gap of a window."""
    window_s: float = 4.0
    """Seconds after which a window was too large: the next one has a job fewer."""
    easy_s: float = 1.0
    """Seconds within which a window could have been larger: the next one has a job more."""
    least_gain: float = 1e-8
    """Part of the utility of a window's jobs at which its program ends: they are a small part of all."""
    by_chance: float = 0.1
    """What counts for a job beside the root of its part of the loss: one without any loss may hold what others want."""


EFFORT = Effort()


class JobWindows:
    r"""Random jobs, mostly of those whose plans are worth less than the best at the prices.

    With :math:`n_{ikw}` slots of interval k, of :math:`L_k` slots, in which job i of the window J has w workers, and
    :math:`C_k` what the other jobs leave of a resource:

    .. math::
        \max \sum_{i \in J} u_i(p_i) - e \sum_{ikw} w\, n_{ikw} \quad\text{with}\quad
        F_i\, p_i \le \sum_{kw} \varphi_i(w)\, n_{ikw},\qquad \sum_w n_{ikw} \le L_k,\qquad
        \sum_{iw} l_i\, w\, n_{ikw} \le C_k,\qquad n \in \mathbb{Z} .

    Parameters
    ----------
    rounds : Rounds
        Of an instance that is preemptive, on an exact pool.
    rng : numpy.random.Generator
    """

    def __init__(self, rounds: Rounds, rng: np.random.Generator) -> None:
        self._instance, self._pricing, self._rng = rounds.pricing.instance, rounds.pricing, rng
        self._spans = [
            slice(first, first + slots)
            for first, slots in zip(rounds.firsts.tolist(), rounds.lengths.tolist(), strict=True)
        ]
        self._parts = [_useful(self._instance, job) for job in range(len(self._instance.jobs))]
        self.size = min(EFFORT.jobs, float(len(self._instance.jobs)))
        """Jobs of a window."""
        self.tried = 0

    def changed(self, widths: Ints, losses: Floats, clock: Clock) -> Ints:
        """(T, I) widths that fit into intervals, but maybe not into their slots; of those given where that is no gain.

        Parameters
        ----------
        losses : (I,) array
            What each plan is worth less than the best one, at the best prices.
        """
        losses = np.maximum(losses, 0.0)
        weights = EFFORT.by_chance + np.sqrt(losses / (losses.sum() or 1.0))
        free = np.argsort(-self._rng.random(len(losses)) * weights)[: round(self.size)].tolist()
        self.tried += 1
        program = _Program(min(EFFORT.window_s, clock.left_s), self._instance)
        others = widths.copy()
        others[:, free] = 0
        uses = others @ self._pricing.cluster.demand
        room = [self._pricing.capacity * (span.stop - span.start) - uses[span].sum(axis=0) for span in self._spans]
        rows = [[program.row(limit) for limit in limits.tolist()] for limits in room]
        for job in free:
            self._add(program, rows, job)
        found = program.solved(widths, self._spans)
        if not program.is_optimal:
            self.size = max(EFFORT.fewest, self.size - 1)
        elif program.seconds < EFFORT.easy_s:
            self.size = min(float(len(losses)), self.size + 1)
        if found is None:
            return widths
        for job in free:
            others[:, job] = found[:, job]
        return others

    def _add(self, program: "_Program", rows: list[list[int]], job: int) -> None:
        """What one job may do."""
        one = self._instance.jobs[job]
        parts = program.row(0.0)
        if isinstance(one.utility, AllOrNothing):
            program.column(one.utility.value, 1.0, {parts: float(DONE)}, True)
        else:
            pieces = outer_pieces(one.utility, 0.0, 1.0, tangents=EFFORT.tangents)
            for length, slope in zip(pieces.lengths.tolist(), pieces.slopes.tolist(), strict=True):
                program.column(slope, length, {parts: 1.0})
        for k, span in enumerate(self._spans):
            if one.arrival <= span.start and span.stop <= self._instance.last_slot(job):
                slots = float(span.stop - span.start)
                once = program.row(slots)
                for width, part in self._parts[job].items():
                    uses = dict(zip(rows[k], (width * self._pricing.cluster.demand[job]).tolist(), strict=True))
                    cost = width * float(self._pricing.cluster.worker_cost[0])
                    program.column(-cost, slots, {**uses, once: 1.0, parts: -part}, True)
                    program.chosen.append((program.columns - 1, job, k, width))


class _Program:
    """Columns as they come, to be maximised."""

    def __init__(self, seconds: float, instance: SchedulingInstance) -> None:
        self._highs, self._instance = SilentHighs(), instance
        options = {"threads": 1, "time_limit": max(1e-3, seconds), "mip_rel_gap": EFFORT.least_gain}
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.columns = 0
        self.chosen: list[tuple[int, int, int, int]] = []
        """Column, job, interval and width."""

    def row(self, limit: float) -> int:
        """The place of a row that is no more than ``limit``."""
        self._highs.addRow(-highspy.kHighsInf, limit, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        return int(self._highs.getNumRow()) - 1

    def column(self, worth: float, most: float, entries: dict[int, float], whole: bool = False) -> None:
        """A variable from 0 to ``most``, with its entries by row."""
        where = np.array(list(entries), dtype=np.int32)
        self._highs.addCol(worth, 0.0, most, len(where), where, np.array(list(entries.values())))
        if whole:
            self._highs.changeColIntegrality(self.columns, highspy.HighsVarType.kInteger)
        self.columns += 1

    def solved(self, widths: Ints, spans: list[slice]) -> Ints | None:
        """(T, I) widths of the jobs, from those given, in the first slots of each interval; None if none are found."""
        counts = [float((widths[spans[k], job] == width).sum()) for _, job, k, width in self.chosen]
        places = np.array([place for place, *_ in self.chosen], dtype=np.int32)
        self._highs.setSolution(len(places), places, np.array(counts))
        self._highs.run()
        if not np.isfinite(self._highs.getInfo().objective_function_value):
            return None
        values = self._highs.getSolution().col_value
        found = np.zeros_like(widths)
        filled: dict[tuple[int, int], int] = {}
        for place, job, k, width in self.chosen:
            first = spans[k].start + filled.get((job, k), 0)
            times = round(values[place])
            found[first : first + times, job] = width
            filled[job, k] = filled.get((job, k), 0) + times
        return found

    @property
    def is_optimal(self) -> bool:
        """Whether it was solved in time."""
        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    @property
    def seconds(self) -> float:
        """That it took."""
        return float(self._highs.getRunTime())


def _useful(instance: SchedulingInstance, job: int) -> dict[int, float]:
    """The part of what a job wants that it does in a slot, by width; none that does no more than a smaller one."""
    parts: dict[int, float] = {}
    for width, rate in zip(instance.jobs[job].widths, fastest_rates(instance, job), strict=True):
        part = min(1.0, rate / instance.jobs[job].minibatches)
        if part > max(parts.values(), default=0.0):
            parts[width] = part
    return parts
