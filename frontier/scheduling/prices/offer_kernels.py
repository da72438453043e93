"""Compiled search for the best plan of one job where every slot has offers of its own, each with a cost."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices.plan_kernels import _JOBS, PlanJobs, _completed, _survivors, _worth, grown
from ddlopt.models.kernels import inner, kernel
from ddlopt.models.scheduling.prices.lagrangian_kernels import part_worth
from ddlopt.models.sorting_kernels import stable_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inner()
def _useful(costs: Floats, gains: Floats, useful: Ints, hull: Ints) -> tuple[int, int]:
    """How many offers of a slot do more than all cheaper ones, and how many of them are on the concave envelope."""
    order = stable_order(costs)
    count, corners, most = 0, 0, 0.0
    for rank in range(len(order)):
        o = order[rank]
        if gains[o] <= most:
            continue
        most = gains[o]
        if count > 0 and costs[useful[count - 1]] == costs[o]:
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


@kernel(f"({_JOBS}, i8, f8[:, ::1], f8[::1], f8, i8)", thorough=True)
def best_offers(
    jobs: PlanJobs, i: int, costs: Floats, gains: Floats, slack: float, room: int
) -> tuple[float, float, Ints]:
    r"""The plan of largest worth less cost of job i: at most one offer in each slot.

    As :func:`~ddlopt.frontier.scheduling.prices.plan_kernels.best_plan`, but with slots in any order, any of which a
    plan may leave out.

    Parameters
    ----------
    costs : (n, O) array
        Of each offer in each slot, not negative.
    gains : (O,) array
        Part of what the job wants that an offer does.
    slack, room
        As there.

    Returns
    -------
    (float, float, (n,) array)
        Worth less cost of the plan found, a bound on that of every plan, and its offers, -1 for none.
    """
    n, most = costs.shape
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    useful, counts = np.empty((n, most), np.int64), np.zeros(n, np.int64)
    raw_units, raw_amounts = np.empty(n * most), np.empty(n * most)
    raw_slots, hull = np.empty(n * most, np.int64), np.empty(most, np.int64)
    segments = 0
    for k in range(n):
        counts[k], corners = _useful(costs[k], gains, useful[k], hull)
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
            for rank in range(-1, counts[k]):
                part, cost, o = parts[label], spent[label], -1
                if rank >= 0:
                    o = useful[k, rank]
                    part += gains[o]
                    cost += costs[k, o]
                    value = _worth(jobs, i, part) - cost
                    if value > best:
                        best, best_label, best_offer, best_slot = value, label, o, k
                if part < whole and k + 1 < n:
                    bound = (
                        _completed(jobs, i, part, whole, order, pieces, parts_before, costs_before, units, ends) - cost
                    )
                    new_parts[found], new_costs[found], new_bounds[found] = part, cost, bound
                    new_parents[found], new_choices[found] = label, o
                    found += 1
        kept, dropped = _survivors(
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
    plan = np.full(n, -1, np.int64)
    if best_label >= 0:
        plan[best_slot] = best_offer
        label, k = best_label, best_slot - 1
        while k >= 0:  # a label of slot k has its offer there
            plan[k] = choices[label]
            label = parents[label]
            k -= 1
    return best, max(best, ceiling) + slack, plan
