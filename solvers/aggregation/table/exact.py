"""Lookup tables with the least error: entries by staircases, and memory shared among tables by a knapsack of them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ddlopt.models.aggregation.table.instance import LookupTables, TableInstance
from ddlopt.solvers.aggregation.table.kernels import Floats, Ints
from ddlopt.solvers.aggregation.table.staircase import Staircase, above, staircase
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class OptimalTables(CertifiedMethod, uses=()):
    r"""The least error of all tables together.

    *One table.* For a limit of the error, the fewest entries are found by a pass over the operands (see
    :mod:`~ddlopt.solvers.aggregation.table.staircase`); the least error with n entries by bisection of the limit, where
    a limit that fails also says which is the next that changes anything. So it ends with the optimum, not near it.

    *Largest error.* The same bisection over all tables at once: a limit says how many entries each of them needs.

    *Sum of errors.* The staircases :math:`e_k(n)` are known at some n. Between two of these, n < n', a table with
    fewer than n' entries has an error of at least :math:`e_k(n')`, so memory for n + 1 entries with that error is
    better than anything there. The best choice among these and the known ones is a lower bound, and the best among the
    known ones a solution; both are knapsacks with one choice a table, solved by merging. Where the first has chosen
    between, the staircase is found in the middle, until both meet within the gap asked for.
    """

    name: ClassVar[str] = "table"
    covers: ClassVar[type[TableInstance]] = TableInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.table.kernels",)

    def find(self, instance: TableInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Optimal tables; if the time is up before, the best known ones and a bound."""
        stairs = [staircase(table) for table in instance.tables]
        caps = most_entries(instance)
        if instance.goal == "max":
            return _least_largest(instance, stairs, caps, clock)
        return _least_sum(instance, stairs, caps, limits.gap, clock)


def most_entries(instance: TableInstance) -> list[int]:
    """Entries that each table may have where the others have one, and at most one for each operand."""
    least = sum(table.entry_bytes for table in instance.tables)
    spare = instance.budget_bytes - least
    return [min(1 + spare // table.entry_bytes, table.operands) for table in instance.tables]


def tables_of(instance: TableInstance, stairs: list[Staircase], limits: list[float]) -> LookupTables:
    """The fewest entries with which no table has an error above its limit."""
    starts = tuple(stair.starts(above(limit)) for stair, limit in zip(stairs, limits, strict=True))
    return LookupTables(instance=instance.name, starts=starts)


def _least_largest(instance: TableInstance, stairs: list[Staircase], caps: list[int], clock: Clock) -> MethodOutput:
    """By bisection of the largest weighted error."""
    weights = [table.weight for table in instance.tables]
    sizes = [table.entry_bytes for table in instance.tables]

    def tried(limit: float) -> tuple[bool, float]:
        """Whether tables with weighted errors up to ``limit`` fit; their error, or the next limit of any use."""
        found = [
            stair.cover(max(stair.floor, above(limit / weight)), cap)
            for stair, weight, cap in zip(stairs, weights, caps, strict=True)
        ]
        failed = [weight * each.following for weight, each in zip(weights, found, strict=True) if each.entries < 0]
        if failed:
            return False, max(failed)
        if sum(size * each.entries for size, each in zip(sizes, found, strict=True)) > instance.budget_bytes:
            return False, min(weight * each.following for weight, each in zip(weights, found, strict=True))
        return True, max(weight * each.error for weight, each in zip(weights, found, strict=True))

    low = max(weight * stair.floor for weight, stair in zip(weights, stairs, strict=True))
    high = max(weight * stair.error(1) for weight, stair in zip(weights, stairs, strict=True))
    rounds = 0
    while not clock.expired:
        rounds += 1
        fits, value = tried(low)
        if fits:
            low = high = min(high, value)
            break
        low = min(high, max(low, value))
        middle = low + 0.5 * (high - low)
        fits, value = tried(middle)
        low, high = (low, min(high, value)) if fits else (min(high, max(middle, value)), high)
        clock.report(high, low)
    limits = [max(stair.floor, high / weight) for stair, weight in zip(stairs, weights, strict=True)]
    return MethodOutput(tables_of(instance, stairs, limits), {"rounds": float(rounds)}, bound=low)


class _Choices(NamedTuple):
    """Ways to choose for some tables: memory and weighted error, ascending and descending; what led to them."""

    sizes: Ints
    errors: Floats
    before: Ints
    own: Ints


def _least_sum(
    instance: TableInstance, stairs: list[Staircase], caps: list[int], gap: float, clock: Clock
) -> MethodOutput:
    """By refining staircases where the knapsack of what is not yet known chooses."""
    # Both ends of each staircase, without which there is no solution and no bound; between them what time allows.
    known = [{1: stair.error(1), cap: stair.error(cap)} for stair, cap in zip(stairs, caps, strict=True)]
    for stair, cap, own in zip(stairs, caps, known, strict=True):
        for bits in reversed(range(1, cap.bit_length())):
            if not clock.expired:
                own[2**bits] = stair.error(2**bits)
    best, bound, rounds = (np.inf, [1] * len(stairs)), 0.0, 0
    while True:
        rounds += 1
        value, counts = _knapsack(instance, known)
        if value < best[0]:
            best = value, counts
        lower, wanted = _knapsack(instance, [_optimistic(each) for each in known])
        bound = max(bound, lower)
        clock.report(best[0], bound)
        unknown = [(k, n) for k, n in enumerate(wanted) if n not in known[k]]
        if clock.expired or not unknown or best[0] - bound <= gap * best[0]:
            break
        for k, n in unknown:
            below = max(each for each in known[k] if each < n)
            beyond = min(each for each in known[k] if each > n)
            middle = (below + beyond) // 2
            known[k][middle] = stairs[k].error(middle)
    limits = [stair.error(count) for stair, count in zip(stairs, best[1], strict=True)]
    details = {"rounds": float(rounds), "steps": float(sum(map(len, known)))}
    return MethodOutput(tables_of(instance, stairs, limits), details, bound=bound)


def _optimistic(known: dict[int, float]) -> dict[int, float]:
    """What is known, and between two of these the memory of little more than the first with the error of the second."""
    counts = sorted(known)
    found = dict(known)
    for one, other in pairwise(counts):
        if other > one + 1 and known[other] < known[one]:
            found[one + 1] = known[other]
    return found


def _knapsack(instance: TableInstance, options: list[dict[int, float]]) -> tuple[float, list[int]]:
    """The least sum of weighted errors with one option (entries: error) a table, and their entries."""
    tables = instance.tables
    reserve = sum(table.entry_bytes for table in tables)
    done = _Choices(np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64))
    stages = []
    for table, own in zip(tables, options, strict=True):
        reserve -= table.entry_bytes
        counts = np.array(sorted(own))
        errors = table.weight * np.array([own[int(count)] for count in counts])
        done = _merged(done, table.entry_bytes * counts, errors, instance.budget_bytes - reserve)
        stages.append((counts, done))
    place, chosen = len(done.sizes) - 1, []
    value = float(done.errors[place])
    for counts, stage in reversed(stages):
        chosen.append(int(counts[stage.own[place]]))
        place = int(stage.before[place])
    return value, chosen[::-1]


def _merged(done: _Choices, sizes: Ints, errors: Floats, budget: int) -> _Choices:
    """All pairs of a choice so far and an option within the budget, without those that another one beats."""
    size, error = (np.add.outer(one, other).ravel() for one, other in ((done.sizes, sizes), (done.errors, errors)))
    fits = np.flatnonzero(size <= budget)
    order = fits[np.lexsort((error[fits], size[fits]))]
    least = np.minimum.accumulate(error[order])
    kept = order[np.concatenate(([True], error[order][1:] < least[:-1]))]
    return _Choices(size[kept], error[kept], kept // len(sizes), kept % len(sizes))
