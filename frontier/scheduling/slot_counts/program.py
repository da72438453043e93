"""Integer programs that are put together from the models of single slots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from scipy import sparse

from ddlopt.frontier.scheduling.formulations.server_patterns.counted_slot import CountedSlot
from ddlopt.frontier.scheduling.intervals import Interval
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.concave.piecewise import Pieces, outer_pieces
from ddlopt.models.scheduling.formulations.slot_embedding.widths import width_gains
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Ring
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.scheduling.utility import Capped
from ddlopt.models.units import unless_ordinary
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.matrix import LinearModel, Vector, linear_model, load_values
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

Widths = Mapping[int, int]
"""Workers by job in a slot."""


@dataclass(frozen=True)
class SlotModel:
    """One slot of an interval: which widths fit together, with places and rings.

    ``column[i, w]`` is the column that is 1 if job i has w workers, ``part[i, w]`` the part of its mini-batches that it
    then does.
    """

    instance: SchedulingInstance
    jobs: tuple[int, ...]
    model: pyo.ConcreteModel
    linear: LinearModel
    column: Mapping[tuple[int, int], int]
    part: Mapping[tuple[int, int], float]

    @classmethod
    def of(cls, instance: SchedulingInstance, span: Interval) -> "SlotModel":
        """The model of a slot of ``span``."""
        update = {"arrival": 0, "deadline": None, "utility": Capped(value=1.0)}
        jobs = tuple(instance.jobs[i].model_copy(update=update) for i in span.jobs)
        alone = instance.changed(slots=1, jobs=jobs)
        model = build_model(alone.family, CountedSlot(), alone)
        linear = linear_model(model)
        place = {id(variable): j for j, variable in enumerate(linear.columns)}
        width = model.component(alone.family).width
        column = {(span.jobs[k], w): place[id(variable)] for (k, w), variable in width.items()}
        gains = {i: width_gains(alone, k) for k, i in enumerate(span.jobs)}
        return cls(alone, span.jobs, model, linear, column, {(i, w): gains[i][w] for i, w in column})

    def widths(self, values: Vector) -> dict[int, int]:
        """Widths that the values of the columns say."""
        return {i: w for (i, w), j in self.column.items() if values[j] > 0.5}

    def done(self, widths: Widths) -> dict[int, float]:
        """Part of its mini-batches that each job does in the slot; workers that gain nothing count for nothing."""
        return {
            i: max((part for (k, w), part in self.part.items() if k == i and w <= width), default=0.0)
            for i, width in widths.items()
        }

    def places(self, values: Vector) -> tuple[dict[int, Workers], dict[int, Ring]]:
        """Workers and rings by job that the values of the columns say."""
        load_values(self.linear, values)
        found: Schedule = CountedSlot().read(self.model.component(self.instance.family), self.instance)
        return {self.jobs[run.job]: run.workers for run in found.runs}, {
            self.jobs[run.job]: run.ring for run in found.runs
        }


class Program:
    """Copies of slots' models, and the utility of what jobs do in all of them."""

    def __init__(self, instance: SchedulingInstance, done: Vector) -> None:
        """With ``done[i]``, the part of job i's mini-batches that is done in slots outside the program."""
        self.instance = instance
        self._before = done
        self._columns: list[tuple[Vector, Vector, Vector, Any]] = []
        self._rows: list[tuple[Vector, Vector]] = []
        self._entries: list[tuple[Any, Any, Any]] = []
        self._progress: list[list[tuple[int, float]]] = [[] for _ in instance.jobs]
        self._start: dict[int, float] = {}
        self.size = self._height = 0
        self._limited = False

    def add_slots(self, slot: SlotModel, count: int = 1, start: Widths | None = None) -> int:
        """``count`` slots whose sum is all that is modelled; where their columns begin.

        Parameters
        ----------
        start : mapping, optional
            Widths to start from.
        """
        first, matrix = self.size, slot.linear.matrix.tocoo()
        linear = slot.linear
        self._add_columns(linear.lower * count, linear.upper * count, np.zeros(len(linear.lower)), linear.integer)
        self._rows.append((linear.row_lower * count, linear.row_upper * count))
        self._entries.append((matrix.row + self._height, matrix.col + first, matrix.data))
        self._height += matrix.shape[0]
        for (i, w), j in slot.column.items():
            self._progress[i].append((first + j, slot.part[i, w]))
            if start is not None:
                self._start[first + j] = float(start.get(i, 0) == w)
        return first

    def limit(self, slot: SlotModel, first: Sequence[int], most: Mapping[tuple[int, int], int]) -> None:
        """Let slots that begin at ``first`` together have each job and width so often at most."""
        for pair, j in slot.column.items():
            self._add_row([(begin + j, 1.0) for begin in first], 0.0, float(most.get(pair, 0)))
        self._limited = True

    def _add_columns(self, lower: Any, upper: Any, cost: Any, integer: Any) -> None:
        self._columns.append((np.asarray(lower), np.asarray(upper), np.asarray(cost), np.asarray(integer, dtype=bool)))
        self.size += len(self._columns[-1][0])

    def _add_row(self, terms: Iterable[tuple[int, float]], lower: float, upper: float) -> None:
        columns, values = zip(*terms, strict=True)
        self._rows.append((np.array([lower]), np.array([upper])))
        self._entries.append((np.full(len(columns), self._height), np.array(columns), np.array(values)))
        self._height += 1

    def solve(self, limits: Limits, seed: int) -> tuple[Outcome, Vector]:
        """Maximise the utility of all jobs; where widths are limited, progress, as none is in vain then."""
        if self._limited:
            return self._solve(0.0, limits, seed, progress=True)
        base = 0.0
        for i, pieces in enumerate(pieces_of(self.instance)):
            first = self.size
            self._add_columns(
                np.zeros(len(pieces.lengths)), pieces.lengths, pieces.slopes, [False] * len(pieces.slopes)
            )
            base += pieces.base
            filled = [(first + k, -1.0) for k in range(len(pieces.lengths))]
            if filled:
                self._add_row([*self._progress[i], *filled], -float(self._before[i]), np.inf)
        return self._solve(base, limits, seed, progress=False)

    def _solve(self, base: float, limits: Limits, seed: int, progress: bool) -> tuple[Outcome, Vector]:
        plain = pyo.ConcreteModel()
        plain.x = pyo.Var(range(self.size))
        columns = list(plain.x.values())
        for j, value in self._start.items():
            columns[j].set_value(value, skip_validation=True)
        lower, upper, cost, integer = (np.concatenate(parts) for parts in zip(*self._columns, strict=True))
        if progress:
            for job, terms in zip(self.instance.jobs, self._progress, strict=True):
                for j, part in terms:
                    cost[j] = part * job.utility.value
        row_lower, row_upper = (np.concatenate(parts) for parts in zip(*self._rows, strict=True))
        at_row, at_column, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        matrix = sparse.csr_array((values, (at_row, at_column)), shape=(self._height, self.size))
        matrix.indptr, matrix.indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        unit = unless_ordinary(objective_unit(self.instance))
        cost, base = cost / unit, base / unit
        linear = LinearModel(
            True, cost, base, matrix, row_lower, row_upper, lower, upper, integer, columns, [None] * self._height, plain
        )
        outcome = Highs().solve_linear(linear, limits, seed, warm=bool(self._start))
        return outcome.in_unit(unit), np.array([each.value or 0.0 for each in columns])


def pieces_of(instance: SchedulingInstance) -> list[Pieces]:
    """Outer approximations of all utilities, on the parts of mini-batches that jobs can do."""
    found = []
    for i, job in enumerate(instance.jobs):
        gains = [gain for width in job.widths if (gain := instance.progress(i, width)) > 0]
        utility = job.utility
        assert utility.kind != "all_or_nothing"
        found.append(outer_pieces(utility, 0.0, 1.0, min(1.0, min(gains, default=0.0) / job.minibatches)))
    return found


def utility_of(instance: SchedulingInstance, done: Sequence[float] | Vector) -> float:
    """Of parts of the mini-batches."""
    return float(sum(float(j.utility.of(min(1.0, float(p)))) for j, p in zip(instance.jobs, done, strict=True)))
