"""Compiled search for the best plan of one job: at most one offer in every slot, each with a cost of its own."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices.lagrangian_kernels import part_worth, utility
from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import stable_order
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UTILITIES = "record(Utilities, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])"


class Utilities(NamedTuple):
    """What progress is worth to each job, as the kernels take it.

    ``kinds``, ``values``, ``shapes``, ``offsets`` (I,) of the utility; ``worths`` (I,): its scale; ``needed`` (I,): the
    part from which an all-or-nothing job counts, 0 for others.
    """

    kinds: Ints
    values: Floats
    shapes: Floats
    offsets: Floats
    worths: Floats
    needed: Floats


@inner()
def worth_of(jobs: Utilities, i: int, part: float) -> float:
    """What a part is worth to job i."""
    if jobs.needed[i] > 0:
        return jobs.worths[i] if part >= jobs.needed[i] * (1 - ROUNDING) else 0.0
    return utility(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], min(part, 1.0))


@inner()
def grown(values: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """The same in an array of at least ``least`` places, and twice as many as there were."""
    larger = np.empty(max(2 * len(values), least), values.dtype)
    larger[: len(values)] = values
    return larger


@inner()
def _useful(costs: Floats, gains: Floats, ordered: bool, useful: Ints, hull: Ints) -> tuple[int, int]:
    """How many offers of a slot do more than all cheaper ones, and how many of them are on the concave envelope.

    Where slots are ``ordered``, narrow offers stay beside wide ones that are as cheap: they leave more for other jobs.
    """
    order = stable_order(costs)
    count, corners, most = 0, 0, 0.0
    for rank in range(len(order)):
        o = order[rank]
        if gains[o] <= most:
            continue
        most = gains[o]
        if not ordered and count > 0 and costs[useful[count - 1]] == costs[o]:
            count -= 1  # as cheap, and does more
        useful[count] = o
        count += 1
    for rank in range(count):
        o = useful[rank]
        while corners > 0:
            b = hull[corners - 1]
            a_cost, a_gain = 0.0, 0.0
            if corners > 1:
                a_cost, a_gain = costs[hull[corners - 2]], gains[hull[corners - 2]]
            if (gains[b] - a_gain) * (costs[o] - a_cost) > (gains[o] - a_gain) * (costs[b] - a_cost):
                break
            corners -= 1
        hull[corners] = o
        corners += 1
    return count, corners


@inner(inline="always")
def _completed(
    jobs: Utilities,
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
        return worth_of(jobs, i, part)
    piece = order[low - 1]
    bought = min(parts_before[low], ends[piece] - part)
    cost = costs_before[low - 1] + (bought - parts_before[low - 1]) * units[piece]
    return worth_of(jobs, i, part + bought) - cost


@inner()
def survivors(
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


@kernel(f"({UTILITIES}, i8, f8[:, ::1], f8[::1], b1, f8, i8)", thorough=True)
def best_plan(
    jobs: Utilities, i: int, costs: Floats, gains: Floats, ordered: bool, slack: float, room: int
) -> tuple[float, float, Ints]:
    r"""The plan of largest worth less cost of job i, by labels slot after slot.

    Labels (part, cost) of plans for the slots so far are dropped where another has no smaller part at no larger cost,
    and where not even progress in fractions, cheapest first, makes them better than the best plan known.

    Parameters
    ----------
    costs : (n, O) array
        Of each offer in each slot, not negative.
    gains : (O,) array
        Part of what the job wants that an offer does, positive.
    ordered : bool
        Whether no offer costs less in a slot than in those before, and more costs of one are more costs of all. A best
        plan then has an offer in each of the first slots and none after. If not, a plan may leave out any slot.
    slack : float
        What a plan must be better by than the best one known.
    room : int
        Labels beyond which those of the least promise are dropped too.

    Returns
    -------
    (float, float, (n,) array)
        Worth less cost of the plan found, a bound on that of every plan, and its offers, -1 for none.
    """
    slots_given, most = costs.shape
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    n = slots_given
    if ordered:
        # Of a job that hardly gets on in a slot the quotient is more than any whole number.
        n = int(min(float(n), np.ceil(whole / gains.min())))
    useful, counts = np.empty((n, most), np.int64), np.zeros(n, np.int64)
    raw_units, raw_amounts = np.empty(n * most), np.empty(n * most)
    raw_slots, hull = np.empty(n * most, np.int64), np.empty(most, np.int64)
    segments = 0
    for k in range(n):
        counts[k], corners = _useful(costs[k], gains, ordered, useful[k], hull)
        cost, gain = 0.0, 0.0
        for rank in range(corners):
            o = hull[rank]
            raw_amounts[segments] = gains[o] - gain
            raw_units[segments] = (costs[k, o] - cost) / (gains[o] - gain)
            raw_slots[segments] = k
            cost, gain = costs[k, o], gains[o]
            segments += 1
    ranks = stable_order(raw_units[:segments])
    units, amounts, slots = np.empty(segments), np.empty(segments), np.empty(segments, np.int64)
    ends = np.empty(segments)
    for j in range(segments):
        units[j], amounts[j], slots[j] = raw_units[ranks[j]], raw_amounts[ranks[j]], raw_slots[ranks[j]]
        ends[j] = min(whole, part_worth(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], units[j]))
    costs_before, parts_before = np.zeros(segments + 1), np.zeros(segments + 1)
    order = np.zeros(segments, np.int64)

    best, ceiling = 0.0, 0.0
    best_label, best_offer, best_slot = -1, -1, -1
    parts, spent = np.zeros(1), np.zeros(1)
    parents, choices = np.zeros(1, np.int64), np.zeros(1, np.int64)
    parents[0], choices[0] = -1, -1
    stage_start, count = 0, 1
    for k in range(n):
        pieces = 0
        for j in range(segments):
            if slots[j] > k:
                order[pieces] = j
                parts_before[pieces + 1] = parts_before[pieces] + amounts[j]
                costs_before[pieces + 1] = costs_before[pieces] + amounts[j] * units[j]
                pieces += 1
        size = (count - stage_start) * (counts[k] + 1)
        new_parts, new_costs, new_bounds = np.empty(size), np.empty(size), np.empty(size)
        new_parents, new_choices = np.empty(size, np.int64), np.empty(size, np.int64)
        found = 0
        for label in range(stage_start, count):
            for rank in range(0 if ordered else -1, counts[k]):
                part, cost, o = parts[label], spent[label], -1
                if rank >= 0:
                    o = useful[k, rank]
                    part += gains[o]
                    cost += costs[k, o]
                    value = worth_of(jobs, i, part) - cost
                    if value > best:
                        best, best_label, best_offer, best_slot = value, label, o, k
                if part < whole and k + 1 < n:
                    bound = (
                        _completed(jobs, i, part, whole, order, pieces, parts_before, costs_before, units, ends) - cost
                    )
                    new_parts[found], new_costs[found], new_bounds[found] = part, cost, bound
                    new_parents[found], new_choices[found] = label, o
                    found += 1
        kept, dropped = survivors(
            new_parts[:found], new_costs[:found], new_bounds[:found], best + slack, slack / n, room
        )
        ceiling = max(ceiling, dropped)
        if len(kept) == 0:
            break
        if count + len(kept) > len(parts):
            parts, spent = grown(parts, count + len(kept)), grown(spent, count + len(kept))
            parents, choices = grown(parents, count + len(kept)), grown(choices, count + len(kept))
        stage_start = count
        for rank in range(len(kept)):
            place = kept[rank]
            parts[count], spent[count] = new_parts[place], new_costs[place]
            parents[count], choices[count] = new_parents[place], new_choices[place]
            count += 1
    plan = np.full(slots_given, -1, np.int64)
    if best_label >= 0:
        plan[best_slot] = best_offer
        label, k = best_label, best_slot - 1
        while k >= 0:  # a label of slot k has its offer there
            plan[k] = choices[label]
            label = parents[label]
            k -= 1
    return best, max(best, ceiling) + slack, plan
