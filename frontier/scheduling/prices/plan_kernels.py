"""Compiled search for the best plan of one job: whole widths in slots that each have a price for a worker."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.scheduling.prices.lagrangian_kernels import part_worth, utility
from ddlopt.models.sorting_kernels import stable_order
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_JOBS = "record(PlanJobs, i8[::1], i8[::1], f8[::1], b1[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])"


class PlanJobs(NamedTuple):
    """Jobs as the kernels take them.

    ``firsts`` (I + 1,) into ``widths`` and ``gains``, the part of what a job wants that it does in a slot at a width,
    both increasing; ``corners``: whether a width is on the concave envelope; ``kinds``, ``values``, ``shapes``,
    ``offsets`` (I,) of the utility; ``worths`` (I,): its scale; ``needed`` (I,): the part from which an all-or-nothing
    job counts, 0 for others.
    """

    firsts: Ints
    widths: Ints
    gains: Floats
    corners: npt.NDArray[np.bool_]
    kinds: Ints
    values: Floats
    shapes: Floats
    offsets: Floats
    worths: Floats
    needed: Floats


@inner()
def _worth(jobs: PlanJobs, i: int, part: float) -> float:
    if jobs.needed[i] > 0:
        return jobs.worths[i] if part >= jobs.needed[i] * (1 - ROUNDING) else 0.0
    return utility(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], min(part, 1.0))


@inner()
def grown(values: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """The same in an array of at least so many places, and twice as many as there were."""
    larger = np.empty(max(2 * len(values), least), values.dtype)
    larger[: len(values)] = values
    return larger


@inner()
def best_plan(jobs: PlanJobs, i: int, prices: Floats, slack: float, room: int) -> tuple[float, float, Ints]:
    r"""The plan of largest worth less cost of job i, by labels slot after slot.

    Slots are given in order of their price, so that a best plan has workers in the first of them and none after. Labels
    (part, cost) of plans for the slots so far are dropped where another has no smaller part at no larger cost, and
    where not even progress in fractions, cheapest first, makes them better than the best plan known.

    Parameters
    ----------
    prices : (n,) array
        Of a worker in each slot, not negative and not decreasing.
    slack : float
        What a plan must be better by than the best one known.
    room : int
        Labels beyond which those of the least promise are dropped too.

    Returns
    -------
    (float, float, (n,) array)
        Worth less cost of the plan found, a bound on that of every plan, and the widths.
    """
    first, last = jobs.firsts[i], jobs.firsts[i + 1]
    gains, widths = jobs.gains[first:last], jobs.widths[first:last]
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    # Of a job that hardly gets on in a slot the quotient is more than any whole number.
    n = int(min(float(len(prices)), np.ceil(whole / gains[0])))
    segments = 0
    for w in range(first, last):
        segments += jobs.corners[w]
    units, amounts, slots = np.empty(segments * n), np.empty(segments * n), np.empty(segments * n, np.int64)
    _segments(jobs, i, prices[:n], units, amounts, slots)
    ends = np.empty(len(units))
    for j in range(len(units)):
        ends[j] = min(whole, part_worth(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], units[j]))
    costs_before = np.zeros(len(units) + 1)
    parts_before = np.zeros(len(units) + 1)
    order = np.zeros(len(units), np.int64)

    best, ceiling = 0.0, 0.0
    best_label, best_width = -1, -1
    parts, costs = np.zeros(1), np.zeros(1)
    parents, choices = np.zeros(1, np.int64), np.zeros(1, np.int64)
    parents[0], choices[0] = -1, -1
    stage_start, count = 0, 1
    for k in range(n):
        pieces = 0
        for j in range(len(units)):
            if slots[j] > k:
                order[pieces] = j
                parts_before[pieces + 1] = parts_before[pieces] + amounts[j]
                costs_before[pieces + 1] = costs_before[pieces] + amounts[j] * units[j]
                pieces += 1
        here = count - stage_start
        new_parts = np.empty(here * len(gains))
        new_costs = np.empty(here * len(gains))
        new_bounds = np.empty(here * len(gains))
        new_parents = np.empty(here * len(gains), np.int64)
        new_choices = np.empty(here * len(gains), np.int64)
        found = 0
        for label in range(stage_start, count):
            for w in range(len(gains)):
                part = parts[label] + gains[w]
                cost = costs[label] + prices[k] * widths[w]
                value = _worth(jobs, i, part) - cost
                if value > best:
                    best, best_label, best_width = value, label, w
                if part < whole and k + 1 < n:
                    bound = (
                        _completed(jobs, i, part, whole, order, pieces, parts_before, costs_before, units, ends) - cost
                    )
                    new_parts[found], new_costs[found], new_bounds[found] = part, cost, bound
                    new_parents[found], new_choices[found] = label, w
                    found += 1
        kept, dropped = _survivors(
            new_parts[:found], new_costs[:found], new_bounds[:found], best + slack, slack / n, room
        )
        ceiling = max(ceiling, dropped)
        if len(kept) == 0:
            break
        if count + len(kept) > len(parts):
            parts, costs = grown(parts, count + len(kept)), grown(costs, count + len(kept))
            parents, choices = grown(parents, count + len(kept)), grown(choices, count + len(kept))
        stage_start = count
        for rank in range(len(kept)):
            place = kept[rank]
            parts[count], costs[count] = new_parts[place], new_costs[place]
            parents[count], choices[count] = new_parents[place], new_choices[place]
            count += 1
    plan = np.zeros(len(prices), np.int64)
    if best_label >= 0:
        chosen = np.zeros(n, np.int64)
        depth = 0
        label, w = best_label, best_width
        while w >= 0:
            chosen[depth] = widths[w]
            depth += 1
            w = choices[label]
            label = parents[label]
        for place in range(depth):
            plan[place] = chosen[depth - 1 - place]
    return best, max(best, ceiling) + slack, plan


@inner(inline="always")
def _segments(jobs: PlanJobs, i: int, prices: Floats, units: Floats, amounts: Floats, slots: Ints) -> None:
    """Price for the whole part, amount and slot of each segment of the envelope in each slot, cheapest first."""
    raw_units, raw_amounts, raw_slots = np.empty(len(units)), np.empty(len(units)), np.empty(len(units), np.int64)
    place = 0
    width, gain = 0, 0.0
    for w in range(jobs.firsts[i], jobs.firsts[i + 1]):
        if jobs.corners[w]:
            for k in range(len(prices)):
                raw_amounts[place] = jobs.gains[w] - gain
                raw_units[place] = prices[k] * (jobs.widths[w] - width) / raw_amounts[place]
                raw_slots[place] = k
                place += 1
            width, gain = jobs.widths[w], jobs.gains[w]
    ranks = stable_order(raw_units)
    for place in range(len(units)):
        rank = ranks[place]
        units[place], amounts[place], slots[place] = raw_units[rank], raw_amounts[rank], raw_slots[rank]


@inner(inline="always")
def _completed(
    jobs: PlanJobs,
    i: int,
    part: float,
    whole: float,
    order: Ints,
    pieces: int,
    parts_before: Floats,
    costs_before: Floats,
    units: Floats,
    ends: Floats,
) -> float:
    """Worth less further cost with progress in fractions, the cheapest first, for as long as it pays."""
    if jobs.needed[i] > 0:
        missing = whole - part
        if parts_before[pieces] < missing - whole * ROUNDING:
            return 0.0
        low, high = 0, pieces
        while low < high:
            middle = (low + high) // 2
            if parts_before[middle + 1] < missing:
                low = middle + 1
            else:
                high = middle
        extra = 0.0 if low == pieces else (missing - parts_before[low]) * units[order[low]]
        return jobs.worths[i] - costs_before[low] - extra
    low, high = 0, pieces
    while low < high:  # the first segment that does not pay from its start
        middle = (low + high) // 2
        if part + parts_before[middle] < ends[order[middle]]:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return _worth(jobs, i, part)
    piece = order[low - 1]
    bought = min(parts_before[low], ends[piece] - part)
    cost = costs_before[low - 1] + (bought - parts_before[low - 1]) * units[piece]
    return _worth(jobs, i, part + bought) - cost


@inner()
def _survivors(
    parts: Floats, costs: Floats, bounds: Floats, least: float, saving: float, room: int
) -> tuple[Ints, float]:
    """Labels whose bounds exceed the least, in order of their parts, and the largest bound of the others.

    Of two labels, that of the smaller part must save a cost.
    """
    count = 0
    for place in range(len(bounds)):
        count += bounds[place] > least
    if count > room:
        # Of all bounds the one above which there are fewer than ``room``: the smallest of those that are too many.
        least = bounds[stable_order(bounds)[len(bounds) - room]]
        count = 0
        for place in range(len(bounds)):
            count += bounds[place] > least
    dropped = 0.0
    good, keys = np.empty(count, np.int64), np.empty(count)
    count = 0
    for place in range(len(bounds)):
        if bounds[place] > least:
            good[count], keys[count] = place, -parts[place]
            count += 1
        else:
            dropped = max(dropped, bounds[place])
    order = stable_order(keys)
    kept, first = np.empty(count, np.int64), count
    cheapest = np.inf
    for rank in range(count):
        place = good[order[rank]]
        if costs[place] < cheapest - saving:
            cheapest = costs[place]
            first -= 1
            kept[first] = place
    return kept[first:], dropped


@kernel(f"({_JOBS}, i8[::1], f8[::1], f8, i8)", thorough=True)
def all_best_plans(
    jobs: PlanJobs, starts: Ints, prices: Floats, slack: float, room: int
) -> tuple[Floats, Floats, Ints]:
    """The best plan of every job: values, bounds, and widths by place in ``prices``.

    Parameters
    ----------
    starts : (I + 1,) array
        Into ``prices``: those of each job, increasing.
    slack : float
        As a part of each job's scale.
    """
    count = len(starts) - 1
    values, bounds = np.zeros(count), np.zeros(count)
    plans = np.zeros(len(prices), np.int64)
    for i in range(count):
        mine = prices[starts[i] : starts[i + 1]]
        values[i], bounds[i], plan = best_plan(jobs, i, mine, slack * jobs.worths[i], room)
        for place in range(len(plan)):
            plans[starts[i] + place] = plan[place]
    return values, bounds, plans
