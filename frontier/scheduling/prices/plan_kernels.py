"""Compiled search for the best plan of one job: at most one offer in every slot, each with a cost of its own.

One program of labels serves jobs that may change in every slot, those that lose time by it, and those that run on types
of accelerators. They differ in their offers: what one does, also in a slot in which the job changes, for how long it
has to be kept, and whether the label after it says which one it was.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices.lagrangian_kernels import part_worth, utility
from ddlopt.models.kernels import inner, kernel, leaf
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.sorting_kernels import stable_order
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LABELS = 1024
"""Beginnings of plans for which there is room at first."""
_FINISHED = float(DONE)
"""Part of all that a job wants from which on it has finished, as the check of a schedule sees it."""
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


@leaf
def worth_of(jobs: Utilities, i: int, part: float) -> float:
    """What a part is worth to job i."""
    if jobs.needed[i] > 0:
        return jobs.worths[i] if part >= jobs.needed[i] * (1 - ROUNDING) else 0.0
    return utility(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], min(part, 1.0))


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


@leaf
def _goals(jobs: Utilities, i: int) -> tuple[float, float]:
    """The part that job i wants, and that from which on it has finished."""
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    return whole, min(whole, _FINISHED) * (1 - ROUNDING)


class Offered(NamedTuple):
    """What a job may take in its slots, and what progress in fractions of that costs.

    ``prices`` (n, O): of each offer in each slot; ``gains``, ``changed`` (O,): the part that it does in a slot, and in
    one in which the job changes. ``whole``, ``finished``: what the job wants, and the part from which on it has
    finished. ``units``, ``amounts``, ``slots``, ``ends`` (S,): of each segment of the slots' concave envelopes, the
    cheapest first, the cost for all that the job wants, the part, the slot, and the part up to which more is worth its
    cost. ``pieces`` (R,): how many segments there are from a slot on, of which slot k has row k modulo R; ``order``
    (R, S): which; ``parts``, ``costs`` (R, S + 1): their sums before each.
    """

    prices: Floats
    gains: Floats
    changed: Floats
    whole: float
    finished: float
    units: Floats
    amounts: Floats
    slots: Ints
    ends: Floats
    pieces: Ints
    order: Ints
    parts: Floats
    costs: Floats


@leaf
def add_up(offers: Offered, k: int) -> None:
    """Set the sums from slot k on, which :func:`completed` needs."""
    row = k % len(offers.pieces)
    order, parts, costs = offers.order[row], offers.parts[row], offers.costs[row]
    piece, parts[0], costs[0] = 0, 0.0, 0.0
    for j in range(len(offers.units)):
        if offers.slots[j] >= k:
            order[piece] = j
            parts[piece + 1] = parts[piece] + offers.amounts[j]
            costs[piece + 1] = costs[piece] + offers.amounts[j] * offers.units[j]
            piece += 1
    offers.pieces[row] = piece


@inner()
def offered(
    jobs: Utilities, i: int, prices: Floats, gains: Floats, changed: Floats, ordered: bool, least: int
) -> tuple[Offered, Ints, Ints]:
    """What job i may take; (n, O) the offers of each slot that do more than all cheaper ones, (n,) how many.

    With room for the sums of ``least`` + 1 slots, and those of the first ones that can be reached from slot 0.
    """
    n, most = prices.shape
    whole, finished = _goals(jobs, i)
    useful, counts, hull = np.empty((n, most), np.int64), np.empty(n, np.int64), np.empty(most, np.int64)
    raw_units, raw_amounts, raw_slots = np.empty(n * most), np.empty(n * most), np.empty(n * most, np.int64)
    size = 0
    for k in range(n):
        counts[k], corners = _useful(prices[k], gains, ordered, useful[k], hull)
        cost, gain = 0.0, 0.0
        for rank in range(corners):
            o = hull[rank]
            raw_amounts[size], raw_slots[size] = gains[o] - gain, k
            raw_units[size] = (prices[k, o] - cost) / raw_amounts[size]
            cost, gain = prices[k, o], gains[o]
            size += 1
    ranks = stable_order(raw_units[:size])
    units, amounts, slots, ends = np.empty(size), np.empty(size), np.empty(size, np.int64), np.empty(size)
    for j in range(size):
        units[j], amounts[j], slots[j] = raw_units[ranks[j]], raw_amounts[ranks[j]], raw_slots[ranks[j]]
        ends[j] = min(whole, part_worth(jobs.kinds[i], jobs.values[i], jobs.shapes[i], jobs.offsets[i], units[j]))
    pieces, order = np.empty(least + 1, np.int64), np.empty((least + 1, size), np.int64)
    parts, costs = np.empty((least + 1, size + 1)), np.empty((least + 1, size + 1))
    found = Offered(prices, gains, changed, whole, finished, units, amounts, slots, ends, pieces, order, parts, costs)
    for k in range(1, min(least, n)):
        add_up(found, k)
    return found, useful, counts


@leaf
def completed(jobs: Utilities, i: int, offers: Offered, part: float, k: int) -> float:
    """Worth of a part less further cost with progress in fractions from slot k on, for as long as it pays.

    The cheapest come first, and no change loses anything, so that no plan is worth more.
    """
    row = k % len(offers.pieces)
    pieces, order, parts, costs = offers.pieces[row], offers.order[row], offers.parts[row], offers.costs[row]
    low, high = 0, pieces
    if jobs.needed[i] > 0:
        missing = offers.whole - part
        if parts[pieces] < missing - offers.whole * ROUNDING:
            return 0.0
        while low < high:
            middle = (low + high) // 2
            if parts[middle + 1] < missing:
                low = middle + 1
            else:
                high = middle
        extra = 0.0 if low == pieces else (missing - parts[low]) * offers.units[order[low]]
        return jobs.worths[i] - costs[low] - extra
    while low < high:  # the first segment that does not pay from its start
        middle = (low + high) // 2
        if part + parts[middle] < offers.ends[order[middle]]:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return worth_of(jobs, i, part)
    piece = order[low - 1]
    bought = min(parts[low], offers.ends[piece] - part)
    cost = costs[low - 1] + (bought - parts[low - 1]) * offers.units[piece]
    return worth_of(jobs, i, part + bought) - cost


@leaf
def run(
    offers: Offered, o: int, part: float, cost: float, changes: bool, start: int, end: int
) -> tuple[float, float, int]:
    """The part that is done, what it costs, and the slot after a run from one slot to another; it ends with the job."""
    k = start
    while k == start or (k < end and part < offers.finished):
        part += offers.changed[o] if changes and k == start else offers.gains[o]
        cost += offers.prices[k, o]
        k += 1
    return (offers.whole if part >= offers.finished else part), cost, k


@inner()
def grown(values: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """The same in an array of at least ``least`` rows, and twice as many as there were."""
    larger = np.empty((max(2 * len(values), least), values.shape[1]), values.dtype)
    larger[: len(values)] = values
    return larger


@inner()
def labels_of(label: int, links: Ints) -> Ints:
    """A label that waits, and those after it."""
    size, last = 0, label
    while last >= 0:
        size, last = size + 1, links[last, 3]
    found = np.empty(size, np.int64)
    for place in range(size):
        found[place], label = label, links[label, 3]
    return found


@inner()
def joined(one: Ints, other: Ints) -> Ints:
    """Both, one after the other."""
    both = np.empty(len(one) + len(other), np.int64)
    for place in range(len(both)):
        both[place] = one[place] if place < len(one) else other[place - len(one)]
    return both


@inner()
def _survivors(values: Floats, mine: Ints, least: float, saving: float, room: int) -> tuple[Ints, float]:
    """Labels of ``mine`` whose bounds exceed the least, in order of their parts, and the largest bound of the others.

    Of two labels, that of the smaller part must save a cost. ``values`` (L, 3): part, cost and bound.
    """
    bounds = np.empty(len(mine))
    for place in range(len(mine)):
        bounds[place] = values[mine[place], 2]
    if len(mine) > room:
        # Of all bounds the one above which there are fewer than ``room``.
        least = max(least, bounds[stable_order(bounds)[len(mine) - room]])
    dropped, count = 0.0, 0
    good, keys = np.empty(len(mine), np.int64), np.empty(len(mine))
    for place in range(len(mine)):
        if bounds[place] > least:
            good[count], keys[count] = mine[place], -values[mine[place], 0]
            count += 1
        else:
            dropped = max(dropped, bounds[place])
    order = stable_order(keys[:count])
    kept, first = np.empty(count, np.int64), count
    cheapest = np.inf
    for rank in range(count):
        label = good[order[rank]]
        if values[label, 1] < cheapest - saving:
            cheapest = values[label, 1]
            first -= 1
            kept[first] = label
    return kept[first:], dropped


@kernel(f"({UTILITIES}, i8, f8[:, ::1], f8[::1], f8[::1], i8, b1, b1, f8, i8)")
def best_plan(
    jobs: Utilities,
    i: int,
    prices: Floats,
    gains: Floats,
    changed: Floats,
    least: int,
    keeps: bool,
    ordered: bool,
    slack: float,
    room: int,
) -> tuple[float, float, Ints]:
    r"""The plan of largest worth less cost of job i, by labels slot after slot.

    A label is (part, cost) of a plan for the slots so far. Where a plan is *kept*, the job may go on from the slot
    before, and labels say with which offer. From each the job goes on for a slot with the same offer, starts with one
    for ``least`` slots (fewer where it finishes in them or its window ends), or is idle. Labels are dropped where
    another that may do the same has no smaller part at no larger cost, and where not even progress in fractions makes
    them better than the best plan known (:func:`completed`).

    Parameters
    ----------
    prices : (n, O) array
        Of each offer in each slot, not negative.
    gains, changed : (O,) arrays
        Part of what the job wants that an offer does, positive, and in a slot in which it changes.
    least : int
        Slots from a start or change to the next.
    keeps : bool
        Whether the plan is kept. If not, slots may be in any order, ``changed`` is ``gains`` and ``least`` is 1.
    ordered : bool
        Whether it is not, no offer costs less in a slot than in those before, and more costs of one are more costs of
        all. A best plan then has an offer in each of the first slots and none after. If not, a plan may leave out any
        slot.
    slack : float
        What a plan must be better by than the best one known.
    room : int
        Labels that may do the same beyond which those of the least promise are dropped too.

    Returns
    -------
    (float, float, (n,) array)
        Worth less cost of the plan found, a bound on that of every plan, and its offers, -1 for none.
    """
    n, most = prices.shape
    plan = np.full(n, -1, np.int64)
    if ordered:
        # Of a job that hardly gets on in a slot the quotient is more than any whole number.
        slowest = np.inf
        for o in range(most):
            slowest = min(slowest, gains[o])
        n = int(min(float(n), np.ceil(_goals(jobs, i)[0] / slowest)))
    offers, useful, counts = offered(jobs, i, prices[:n], gains, changed, ordered, least)
    free = most if keeps else 0

    # Labels that wait for their slot: part, cost and bound; the label before, the offer from it on, its first slot, and
    # the next label that waits for the same. The trail keeps the first three of all labels that were gone on from.
    values, links = np.empty((LABELS, 3)), np.empty((LABELS, 4), np.int64)
    waiting, size = np.full((n + 1, free + 1), -1, np.int64), 0
    trail, count = np.full((LABELS, 3), -1, np.int64), 1  # label 0: the job has not begun
    best, ceiling, best_end = 0.0, 0.0, 0
    label, choice, start = -1, -1, -1
    for k in range(n):
        if k + least < n:
            add_up(offers, k + least)
        mine, going = np.empty(0, np.int64), 0
        for state in range(free + 1):  # the last is idle: whatever goes on may as well stop, or start anew
            here = labels_of(waiting[k, state], links)
            if state == free:
                going, here = len(mine), joined(mine, here)
            kept, dropped = _survivors(values, here, best + slack, slack / (2 * n), room)
            ceiling, mine = max(ceiling, dropped), joined(mine, kept)
        if count + len(mine) > len(trail):
            trail = grown(trail, count + len(mine))
        parts, costs = np.zeros(len(mine) + 1), np.zeros(len(mine) + 1)
        for place in range(len(mine)):
            parts[place], costs[place] = values[mine[place], 0], values[mine[place], 1]
            for each in range(3):
                trail[count + place, each] = links[mine[place], each]
        if least == 1:
            size = 0  # nothing waits for a later slot
        if ordered and k > 0 and len(mine) == 0:
            break
        for place in range(len(mine) if ordered and k > 0 else len(mine) + 1):
            source = count + place if place < len(mine) else 0
            goes_on = place < going
            choices = 1 if goes_on else most if keeps else counts[k]
            # Who has not begun starts later from label 0 again.
            for rank in range(0 if goes_on or ordered or source == 0 else -1, choices):
                part, cost, end, state, o = parts[place], costs[place], k + 1, free, -1
                if rank >= 0:
                    o = trail[source, 1] if goes_on else rank if keeps else useful[k, rank]
                    if keeps and not goes_on and o == trail[source, 1]:
                        continue  # it had better go on
                    last = k + 1 if goes_on else min(k + least, n)
                    part, cost, end = run(offers, o, part, cost, not goes_on and source > 0, k, last)
                    state = o if keeps else 0
                    value = worth_of(jobs, i, part) - cost
                    if value > best:
                        best, label, choice, start, best_end = value, source, o, k, end
                if end == n or part >= offers.whole:
                    continue
                bound = completed(jobs, i, offers, part, end) - cost
                if bound <= best + slack:
                    ceiling = max(ceiling, bound)
                    continue
                if size == len(values):
                    values, links = grown(values, size + 1), grown(links, size + 1)
                values[size, 0], values[size, 1], values[size, 2] = part, cost, bound
                links[size, 0], links[size, 1], links[size, 2], links[size, 3] = source, o, k, waiting[end, state]
                waiting[end, state] = size
                size += 1
        count += len(mine)
    while label >= 0:
        for k in range(start, best_end):
            plan[k] = choice
        best_end = start
        label, choice, start = trail[label, 0], trail[label, 1], trail[label, 2]
    return best, max(best, ceiling) + slack, plan
