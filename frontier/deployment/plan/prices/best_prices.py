"""The prices of rows whose least sum over all plans is largest, by cutting planes."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from math import inf

import highspy
import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from ddlopt.frontier.deployment.plan.prices.kernels import Buckets, Figures, eliminate, weigh
from ddlopt.frontier.deployment.plan.prices.memory import memory_of
from ddlopt.frontier.deployment.plan.prices.quantities import Quantities, quantities
from ddlopt.frontier.deployment.plan.prices.rows import Counted, OfPlan, Row, counted, summed, weights_of
from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.backends.silent_highs import SilentHighs

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    new: int = 3
    """Rows of a plan that are added in a turn: each makes the program larger."""
    new_tied: int = 1
    """The same of rows with a horizon taken off, which say nothing of many other plans."""
    much: float = 0.01
    """Of a mixture: a plan that has this part of it is looked at again for its largest rows."""
    most_memory: float = 20.0
    """Price of a whole device group's memory, relative to the largest row: more than that says nothing more."""
    close: float = 1e-4
    """Relative distance between bound and program at which no more is to be had."""
    in_vain: int = 60
    """Turns without a better bound after which it ends."""
    first_step: float = 0.3
    """How far the next prices lie from the best ones towards those of the program, at first: all the way they swing."""
    least_step: float = 0.05
    """The same at least, so that they move at all."""
    longer: float = 1.3
    """By how much that part grows while the bound rises."""
    shorter: float = 0.8
    """By how much it shrinks where the bound does not."""


_EFFORT = Effort()


class BestPrices:
    r"""A bound on the step of every plan that fits: the least of a priced sum over all plans.

    The sum is :math:`\sum_r \lambda_r f_r + \sum_j \mu_j (m_j - 1)`. Each :math:`f_r` is a row
    (:mod:`~ddlopt.frontier.deployment.plan.prices.rows`), and prices :math:`\lambda \ge 0` are 1 together. Each
    :math:`m_j` is a share of memory (:func:`~ddlopt.frontier.deployment.plan.prices.memory.memory_of`), at most 1 where
    a plan fits, and has any price :math:`\mu_j \ge 0`. In arrays of prices those of memory come first. The least is
    found exactly, by eliminating one group after the other, where every group has at most two neighbours when it is
    eliminated; otherwise what is handed on is a bound. A program over the plans found has the next prices, and the
    largest rows of a plan found join the others.

    Attributes
    ----------
    bound_s : float
    plans : list of (groups,) arrays
        All plans found, as places of ``figures.choices``.
    turns : int
    late : list of (rows,) arrays
        Prices of all turns, for the rows that there were.
    buckets : Buckets
    left : (groups, choices) array
        Choices that plans may have; all of them to begin with.
    """

    def __init__(self, instance: DeploymentInstance) -> None:
        self.figures: Quantities = quantities(instance)
        self.bound_s, self.turns = 0.0, 0
        self.plans: list[Ints] = []
        self.late: list[Floats] = []
        self._flat_s: list[npt.NDArray[np.float32]] = []
        self._memory, fits = memory_of(self.figures.choices)
        self._rows: dict[Row, Counted] = {}
        self._values: list[list[float]] = []
        self._looked: list[bool] = []
        figures, samples = self.figures, self.figures.samples
        self._arrays = Figures(
            counts=figures.counts,
            group=figures.group,
            seat=figures.seat,
            copied=figures.copied.astype(np.int64),
            copies=figures.copies.astype(np.int64),
            least_s=figures.least_s,
            load_s=figures.load_s,
            pairs=figures.pairs,
            delay_s=figures.delay_s,
            carried_s=figures.carried_s,
            kind=samples.kind,
            own_s=samples.own_s,
            per_byte_s=np.ascontiguousarray(samples.per_byte_s),
            fixed_s=np.ascontiguousarray(samples.fixed_s),
            size_bytes=samples.size_bytes,
            sync_s=samples.sync_s,
            back_s=samples.back_s,
            first=samples.first,
        )
        self.buckets = buckets(figures)
        self._cost = np.zeros((len(figures.counts), int(figures.counts.max())))
        self._tables = np.zeros(max(1, int(self.buckets.table_at[-1])))
        self._best = np.zeros(0)
        self._needs: list[Floats] = []
        self.left: Bools = np.arange(self._cost.shape[1]) < figures.counts[:, None]
        # What does not fit by itself is in no plan, but where nothing fits at all.
        self.left &= fits | ~(fits & self.left).any(axis=1, keepdims=True)
        self._step, self._vain = _EFFORT.first_step, 0
        self._see(self.left.argmax(axis=1), most=None)

    def part(self, left: Bools) -> "BestPrices":
        """The same for plans of fewer choices, from the best prices so far on; at least one of each group is left."""
        part = copy(self)
        part.left, part.turns, part.late = left, 0, []
        part._step, part._vain = _EFFORT.first_step, 0
        groups = np.arange(len(left))
        plans = [place for place, plan in enumerate(self.plans) if left[groups, plan].all()]
        first = self._memory.shape[2]
        rows = np.flatnonzero(self._best[first:]).tolist()
        part._rows = dict(each for place, each in enumerate(self._rows.items()) if place in set(rows))
        part._best = np.concatenate([self._best[:first], self._best[first:][rows]])
        part._needs = [self._needs[each] for each in plans]
        part.plans, part._flat_s = [self.plans[each] for each in plans], [self._flat_s[each] for each in plans]
        part._values = [[self._values[place][row] for row in rows] for place in plans]
        part._looked = [False] * len(plans)
        part.bound_s, plan = part.bound_of(left)
        part._see(plan, most=_EFFORT.new)
        return part

    def bound_of(self, left: Bools) -> tuple[float, Ints]:
        """The bound on the plans of some choices by the best prices so far, and a plan."""
        bound_s, plan = self.least(self._padded(), left)
        return max(self.bound_s, bound_s), plan

    def mixture(self) -> tuple[list[Ints], Floats]:
        """The plans found, and weights, 1 together, for which the largest row in the mean is least."""
        self._mixed()
        return self.plans, self._weights

    def turn(self) -> bool:
        """Look for better prices; False if there is no more to be had."""
        self.turns += 1
        prices, at_most_s = self._mixed()
        if len(self._best):
            prices = self._step * prices + (1.0 - self._step) * self._padded()
        bound_s, plan = self.least(prices)
        self.late.append(prices)
        if bound_s > self.bound_s:
            self.bound_s, self._best = bound_s, prices
            self._step, self._vain = min(1.0, self._step * _EFFORT.longer), 0
        else:
            self._step, self._vain = max(_EFFORT.least_step, self._step * _EFFORT.shorter), self._vain + 1
        new = self._see(plan, most=_EFFORT.new)
        close = at_most_s - self.bound_s < _EFFORT.close * at_most_s
        return self._vain < _EFFORT.in_vain and (new > 0 or not close)

    def _padded(self) -> Floats:
        """The best prices, with none for the rows that have come since."""
        return np.concatenate([self._best, np.zeros(self.rows - len(self._best))])

    @property
    def rows(self) -> int:
        """How many prices there are: of memory, and of rows."""
        return int(self._memory.shape[2]) + len(self._rows)

    @property
    def completions(self) -> tuple[Floats, Floats]:
        """Costs (groups, choices) and tables after the last elimination, with the least of what is eliminated later."""
        return self._cost.copy(), self._tables.copy()

    def values(self, plan: Ints) -> Floats:
        """(prices,) what memory a plan needs beyond what there is, and seconds of rows."""
        of_plan = OfPlan(self.figures, plan)
        seconds = [of_plan.value_s(weights_of(self.figures, row)) for row in self._rows]
        return np.concatenate([self._beyond(plan), seconds])

    def _beyond(self, plan: Ints) -> Floats:
        """(rows of memory,) needed memory less all of it, in parts of what there is."""
        beyond: Floats = self._memory[np.arange(len(plan)), plan].sum(axis=0) - 1.0
        return beyond

    def least(self, prices: Floats, left: Bools | None = None) -> tuple[float, Ints]:
        """A bound on the priced rows of every plan that fits, or of those of some choices, and a plan."""
        memory, of_rows = np.split(prices, [self._memory.shape[2]])
        rows = [(price, row) for price, row in zip(of_rows.tolist(), self._rows.values(), strict=True) if price]
        weights = summed(self.figures, rows)
        own, chosen = self.buckets, np.zeros(len(self.figures.counts), np.int64)
        left = self.left if left is None else left
        weigh(self._arrays, weights, left, own.table_at, own.of_pair, own.turned, self._cost, self._tables)
        self._cost += self._memory @ memory
        there_s = float(memory.sum())
        bound_s = eliminate(own, self.figures.counts, self._cost, self._tables, chosen) - there_s
        return bound_s - BOUND_MARGIN * (abs(bound_s) + there_s), chosen

    def _see(self, plan: Ints, most: int | None) -> int:
        """Add a plan, and its largest rows that say more than the bound, or all of them; returns how many."""
        of_plan = OfPlan(self.figures, plan)
        self._flat_s.append(of_plan.flat_s)
        self.plans.append(plan)
        self._needs.append(self._beyond(plan))
        self._values.append([])
        self._looked.append(True)
        return self._add_rows(of_plan, most)

    def _add_rows(self, of_plan: OfPlan, most: int | None) -> int:
        before = len(self._rows)
        tied, counts = self.figures.samples.tied, [0, 0]
        for value_s, row in of_plan.largest():
            kind = int(tied[list(row.ways)].any())
            if most is not None and value_s <= self.bound_s:
                break
            if row not in self._rows and (most is None or counts[kind] < (most, _EFFORT.new_tied)[kind]):
                counts[kind] += 1
                self._rows[row] = counted(weights_of(self.figures, row))
        new = list(self._rows.values())[before:]
        for values, flat_s in zip(self._values, self._flat_s, strict=True):
            fresh = new if values else self._rows.values()
            values += [float(row.weight @ flat_s[row.place]) for row in fresh]
        return len(new)

    def _mixed(self) -> tuple[Floats, float]:
        """The program, until plans that make up much of its mixture have their largest rows in it.

        A part has rows of a larger one, and plans whose largest rows are others.
        """
        while True:
            found = self._program()
            new = 0
            for place in np.flatnonzero(self._weights > _EFFORT.much).tolist():
                if not self._looked[place]:
                    self._looked[place] = True
                    new += self._add_rows(OfPlan(self.figures, self.plans[place]), _EFFORT.new)
            if not new:
                return found

    def _program(self) -> tuple[Floats, float]:
        """Prices whose least sum over the plans found is largest, and that sum."""
        values, memory = np.array(self._values), self._memory.shape[2]
        unit_s, (plans, rows) = values.max() or 1.0, values.shape
        prices = memory + rows
        matrix = np.zeros((plans + 1, prices + 1))
        matrix[:plans, :memory], matrix[:plans, memory:prices] = np.array(self._needs), values / unit_s
        matrix[:plans, prices], matrix[plans, memory:prices] = -1.0, 1.0
        sparse = csc_array(matrix)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = prices + 1, plans + 1
        program.col_cost_ = np.append(np.zeros(prices), -1.0)
        program.col_lower_ = np.zeros(prices + 1)
        program.col_upper_ = np.concatenate([np.full(memory, _EFFORT.most_memory), np.full(rows + 1, inf)])
        program.row_lower_ = np.append(np.zeros(plans), 1.0)
        program.row_upper_ = np.append(np.full(plans, inf), 1.0)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_, program.a_matrix_.index_ = sparse.indptr, sparse.indices
        program.a_matrix_.value_ = sparse.data
        highs = SilentHighs()
        highs.passModel(program)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"the program over {plans} plans ended with {highs.getModelStatus().name}")
        solution = highs.getSolution()
        found = np.array(solution.col_value)
        self._weights = np.abs(np.array(solution.row_dual)[:plans])
        least = np.maximum(found[:prices], 0.0)
        least[:memory] *= unit_s
        least[memory:] /= least[memory:].sum()
        return least, float(found[prices] * unit_s)


def buckets(figures: Quantities) -> Buckets:
    """Groups with few neighbours are eliminated first."""
    groups = len(figures.counts)
    linked = {(int(figures.group[a]), int(figures.group[b])) for a, b in figures.pairs}
    near = [{a for pair in linked if group in pair for a in pair} - {group} for group in range(groups)]
    order = _order([set(each) for each in near])
    at = {group: place for place, group in enumerate(order)}
    tables: dict[tuple[int, int], int] = {}
    for a, b in sorted(linked):
        if a != b:
            tables.setdefault((a, b) if at[a] < at[b] else (b, a), len(tables))
    earlier = [{other for other in near[group] if at[other] < at[group]} for group in order]
    chunks: list[list[tuple[int, int]]] = [[] for _ in order]
    for place in range(groups - 1, -1, -1):
        left = sorted(earlier[place], key=at.__getitem__)
        while left:
            other, one = left.pop(), left.pop() if left else -1
            if one < 0:
                chunks[place].append((other, -1))
                continue
            chunks[place].append((one, other))
            earlier[at[other]].add(one)
            tables.setdefault((one, other), len(tables))
    flat = [(group, *chunk) for group, own in zip(order, chunks, strict=True) for chunk in own]
    before = [(group, other) for group, own in zip(order, earlier, strict=True) for other in sorted(own)]
    sizes = [int(figures.counts[a] * figures.counts[b]) for a, b in tables]
    of_pair, turned = [], []
    for a, b in figures.group[figures.pairs].tolist():
        swapped = at[a] > at[b]
        of_pair.append(tables.get((b, a) if swapped else (a, b), -1))
        turned.append(int(swapped))

    def ends(counts: list[int]) -> Ints:
        return np.array([0, *accumulate(counts)], np.int64)

    def array(numbers: Iterable[int]) -> Ints:
        return np.array([*numbers], np.int64)

    return Buckets(
        order=array(order),
        table_at=ends(sizes),
        of_pair=array(of_pair),
        turned=array(turned),
        chunk_at=ends([len(own) for own in chunks]),
        one=array(one for _, one, _ in flat),
        other=array(other for _, _, other in flat),
        one_table=array(tables[one, group] for group, one, _ in flat),
        other_table=array(tables.get((other, group), -1) for group, _, other in flat),
        both_table=array(tables.get((one, other), -1) for _, one, other in flat),
        before_at=ends([len(own) for own in earlier]),
        before=array(other for _, other in before),
        before_table=array(tables[other, group] for group, other in before),
    )


def _order(near: list[set[int]]) -> list[int]:
    left, order = set(range(len(near))), []
    while left:
        group = min(left, key=lambda each: (len(near[each]), -each))
        left.discard(group)
        order.append(group)
        for other in near[group]:
            near[other] |= near[group] - {other}
            near[other].discard(group)
    return order[::-1]
