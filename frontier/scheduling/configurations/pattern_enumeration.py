"""Every pattern that a schedule better than the best one can have."""

import itertools

import numpy as np

from ddlopt.frontier.scheduling.configurations.pricing import Options
from ddlopt.frontier.scheduling.formulations.configurations import Pattern, PatternPlan
from ddlopt.frontier.scheduling.intervals import Interval
from ddlopt.frontier.scheduling.prices.row_kernels import rests
from ddlopt.solvers.scheduling.slot.rates import Floats

_STEPS = 40
"""Choices of a width that are looked at for each pattern asked for, before it is given up."""


class TooManyError(Exception):
    """There are more patterns than were asked for, or they are too far between."""


def near_best_patterns(
    plan: PatternPlan, prices: Floats, worths: Floats, slack: float, most: int
) -> tuple[tuple[Pattern, ...], ...]:
    """For each interval all patterns that are worth at least that of the best one less ``slack``.

    Prices of progress certify a bound, and each slot takes from it what its pattern is worth less than the best one of
    its interval. What takes more than the bound exceeds the best schedule by is in no better schedule. Without a price
    on energy, patterns in which some job could have a better width at no harm to others are left out.

    Parameters
    ----------
    plan : PatternPlan
    prices : (I,) array
        Of the progress of each job, for all its mini-batches.
    worths : (K,) array
        What the best pattern of each interval is worth.
    slack : float
    most : int

    Raises
    ------
    TooManyError
        If there are more than ``most`` in all, or it takes too many steps to find them.
    """
    found: list[tuple[Pattern, ...]] = []
    count = steps = 0
    for span, worth in zip(plan.spans, worths.tolist(), strict=True):
        if plan.rows is not None:
            rows = _RowWalk(plan, span, prices, most - count, most * _STEPS - steps)
            rows.go_on(0, plan.room, worth - slack, ())
            found.append(tuple(rows.found))
            count, steps = count + len(rows.found), steps + rows.steps
            continue
        walk = _Walk(plan, span, prices, most - count, most * _STEPS - steps)
        walk.go_on(0, plan.capacity, worth - slack, (), plan.capacity + 1)
        found.append(tuple(walk.found))
        count, steps = count + len(walk.found), steps + walk.steps
    return tuple(found)


class _Walk:
    """All choices of widths, job by job, but those that the best of the jobs left cannot save."""

    def __init__(self, plan: PatternPlan, span: Interval, prices: Floats, most: int, most_steps: int) -> None:
        self._plan, self._jobs, self._most, self._most_steps = plan, span.jobs, most, most_steps
        self.found: list[Pattern] = []
        self.steps = 0
        self._options: list[list[tuple[int, int, float]]] = []
        """For each job (width, weight, worth), width 0 first."""
        for job in span.jobs:
            c, cost = plan.jobs[job], int(plan.costs[job])
            pairs = zip(c.widths, c.gains, strict=True)
            worths = [(w, w * cost, float(prices[job]) * gain / c.wanted - plan.worker_price * w) for w, gain in pairs]
            self._options.append([(0, 0, 0.0), *worths])
        tables = [np.zeros(plan.capacity + 1)]
        for options in reversed(self._options):
            rest = tables[-1]
            table = rest.copy()
            for _, weight, worth in options[1:]:
                if weight <= plan.capacity:
                    np.maximum(table[weight:], rest[: len(rest) - weight] + worth, out=table[weight:])
            tables.append(table)
        self._best: list[list[float]] = [table.tolist() for table in reversed(tables)]
        """What the jobs from a place on are worth in each room."""

    def go_on(self, place: int, left: int, least: float, chosen: Pattern, step: int) -> None:
        """Find those that go on from ``chosen`` with jobs from ``place`` on that are worth at least so much more.

        ``step`` is the least room that would give some job before this one a better width.
        """
        self.steps += 1
        if self.steps > self._most_steps:
            raise TooManyError
        if place == len(self._jobs):
            if chosen and (left < step or self._plan.worker_price):
                self.found.append(chosen)
                if len(self.found) > self._most:
                    raise TooManyError
            return
        options, rest = self._options[place], self._best[place + 1]
        for number, (width, weight, worth) in enumerate(options):
            if weight <= left and worth + rest[left - weight] >= least:
                following = options[number + 1][1] - weight if number + 1 < len(options) else step
                more = (*chosen, (self._jobs[place], width)) if width else chosen
                self.go_on(place + 1, left - weight, least - worth, more, min(step, following))


class _RowWalk:
    """The same with several capacities."""

    def __init__(self, plan: PatternPlan, span: Interval, prices: Floats, most: int, most_steps: int) -> None:
        self._plan, self._jobs, self._most, self._most_steps = plan, span.jobs, most, most_steps
        self.found: list[Pattern] = []
        self.steps = 0
        options = Options.of(plan, span.jobs)
        values = options.values(plan, prices)
        capacity = np.array(plan.room, dtype=np.int64)
        self._best = rests(capacity, options.starts, values, options.weights)
        self._strides = [int(np.prod(capacity[row + 1 :] + 1)) for row in range(len(capacity))]
        self._options: list[list[tuple[int, tuple[int, ...], float, float]]] = []
        """For each job (width, weights, worth, gain), that of none first."""
        for first, last in itertools.pairwise(options.starts.tolist()):
            columns = options.widths, map(tuple, options.weights.tolist()), values, options.parts
            mine = list(zip(*(list(column)[first:last] for column in columns), strict=True))
            self._options.append([(0, (0,) * len(capacity), 0.0, 0.0), *mine])

    def go_on(self, place: int, left: tuple[int, ...], least: float, chosen: tuple[int, ...]) -> None:
        """Find those that go on from the options ``chosen`` with jobs that are worth at least so much more."""
        self.steps += 1
        if self.steps > self._most_steps:
            raise TooManyError
        if place == len(self._jobs):
            if any(chosen) and (self._plan.worker_price or not self._is_poor(left, chosen)):
                pairs = zip(self._jobs, chosen, self._options, strict=True)
                self.found.append(tuple((job, int(mine[number][0])) for job, number, mine in pairs if number))
                if len(self.found) > self._most:
                    raise TooManyError
            return
        for number, (_, weights, worth, _) in enumerate(self._options[place]):
            rest = tuple(room - taken for room, taken in zip(left, weights, strict=True))
            if min(rest) >= 0:
                state = sum(room * stride for room, stride in zip(rest, self._strides, strict=True))
                if worth + self._best[place + 1, state] >= least:
                    self.go_on(place + 1, rest, least - worth, (*chosen, number))

    def _is_poor(self, left: tuple[int, ...], chosen: tuple[int, ...]) -> bool:
        """Whether some job could do more at no harm to others."""
        for number, mine in zip(chosen, self._options, strict=True):
            _, taken, _, gain = mine[number]
            spare = [room + own for room, own in zip(left, taken, strict=True)]
            for _, weights, _, more in mine:
                if more > gain and all(need <= room for need, room in zip(weights, spare, strict=True)):
                    return True
        return False
