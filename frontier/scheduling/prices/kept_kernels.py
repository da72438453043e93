"""Compiled search for the best plan of one job that loses time when it changes, or may not change in every slot."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices.plan_kernels import UTILITIES, Utilities, grown, survivors, worth_of
from ddlopt.models.kernels import inner, kernel
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LABELS = 1024
"""Beginnings of plans for which there is room at first."""
_FINISHED = float(DONE)
"""Part of all that a job wants from which on it has finished, as the check of a schedule sees it."""


@inner()
def _paid(prices: Floats) -> Floats:
    """(W, n + 1) what each width costs in all slots before."""
    n, widths = prices.shape
    paid = np.zeros((widths, n + 1))
    for w in range(widths):
        for k in range(n):
            paid[w, k + 1] = paid[w, k] + prices[k, w]
    return paid


@inner()
def _ahead(jobs: Utilities, i: int, paid: Floats, gains: Floats, changed: Floats, least: int, steps: int) -> Floats:
    """(n + 1, W + 1, steps + 1) what progress before a slot may lead to at most, further costs taken off.

    By what the job did in the slot before: it ran at a width for long enough, or (the last) it had run before that.
    Progress is rounded up to steps. ``paid`` (W, n + 1): what each width costs in all slots before.
    """
    n, idle = paid.shape[1] - 1, len(gains)
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    ahead = np.empty((n + 1, idle + 1, steps + 1))
    for p in range(steps + 1):
        ahead[n, idle, p] = worth_of(jobs, i, whole * p / steps)
    for w in range(idle):
        ahead[n, w] = ahead[n, idle]
    finished = ahead[n, idle, steps]
    ups = np.zeros(least + 1, np.int64)
    for k in range(n - 1, -1, -1):
        here = ahead[k, idle]
        here[:] = ahead[k + 1, idle]
        length = min(least, n - k)
        for w in range(idle):
            for m in range(1, length + 1):
                ups[m] = np.int64(np.ceil((changed[w] + (m - 1) * gains[w]) / whole * steps))
            cost = paid[w, k + length] - paid[w, k]
            then = ahead[k + length, w]
            over = max(0, steps - ups[length])  # from this progress on it finishes in its first slots
            for p in range(over):
                here[p] = max(here[p], then[p + ups[length]] - cost)
            m = length
            for p in range(over, steps):
                while m > 1 and p + ups[m - 1] >= steps:
                    m -= 1
                here[p] = max(here[p], finished - (paid[w, k + m] - paid[w, k]))
        for w in range(idle):
            up = np.int64(np.ceil(gains[w] / whole * steps))
            cost, then = paid[w, k + 1] - paid[w, k], ahead[k + 1, w]
            for p in range(steps + 1):
                ahead[k, w, p] = max(here[p], then[min(steps, p + up)] - cost)
    return ahead


@inner()
def _run(part: float, opening: float, gain: float, length: int, finished: float, whole: float) -> tuple[float, int]:
    """The part that is done, and the slots that are taken, after a run of ``length`` slots; it ends with the job."""
    m = 1
    while m < length and part + opening + (m - 1) * gain < finished:
        m += 1
    part += opening + (m - 1) * gain
    return (whole if part >= finished else part), m


@kernel(f"({UTILITIES}, i8, f8[:, ::1], f8[::1], f8[::1], i8, i8, f8, i8)", thorough=True)
def best_kept_plan(
    jobs: Utilities,
    i: int,
    prices: Floats,
    gains: Floats,
    changed: Floats,
    least: int,
    steps: int,
    slack: float,
    room: int,
) -> tuple[float, float, Ints]:
    r"""The plan of largest worth less cost of job i, by labels slot after slot, in the order of time.

    A label is (part, cost) of a plan for the slots so far, and whether the job goes on from the slot before and at
    which width. From it a job goes on for a slot at the same width, starts at a width for ``least`` slots (fewer where
    it finishes in them or its window ends), or is idle. Of labels at one width those are dropped that another beats
    (no smaller part at no larger cost), and those from which not even progress in coarse steps (``_ahead``) leads to a
    better plan than the best one known.

    Parameters
    ----------
    prices : (n, W) array
        Of each width in each slot of the job's window, not negative.
    gains, changed : (W,) arrays
        What the job does in a slot at a width, as a part of all that it wants, and in one in which it changes.
    least : int
        Slots from a start or change to the next.
    steps : int
        Of progress, in the coarse look ahead.
    slack : float
        What a plan must be better by than the best one known.
    room : int
        Labels of one width and slot beyond which those of the least promise are dropped too.

    Returns
    -------
    (float, float, (n,) array)
        Worth less cost of the plan found, a bound on that of every plan, and the places of its widths, -1 for none.
    """
    n, idle = prices.shape
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    finished = (whole if jobs.needed[i] > 0 else _FINISHED) * (1 - ROUNDING)
    paid = _paid(prices)
    ahead = _ahead(jobs, i, paid, gains, changed, least, steps)

    parts, costs, promises = np.zeros(_LABELS), np.zeros(_LABELS), np.zeros(_LABELS)
    parents, choices = np.full(_LABELS, -1, np.int64), np.full(_LABELS, idle, np.int64)
    froms, others = np.zeros(_LABELS, np.int64), np.full(_LABELS, -1, np.int64)
    first = np.full((n + 1, idle + 1), -1, np.int64)  # label of each slot and width; ``others`` are the next ones
    best, ceiling, best_label, best_end = 0.0, 0.0, -1, 0
    count = 1  # label 0: the job has not begun
    for k in range(n):
        # What goes on, of each width; all of it, and what was idle, may start anew. Label 0 starts as if unchanged.
        going = np.empty(0, np.int64)
        for state in range(idle + 1):
            size, label = 0, first[k, state]
            while label >= 0:
                size, label = size + 1, others[label]
            mine, label = np.empty(size, np.int64), first[k, state]
            for place in range(size):
                mine[place], label = label, others[label]
            kept, dropped = survivors(parts[mine], costs[mine], promises[mine], best + slack, slack / (2 * n), room)
            ceiling = max(ceiling, dropped)
            going = np.concatenate((going, mine[kept]))
        fresh = np.empty(len(going))
        for place in range(len(going)):
            step = min(steps, np.int64(np.ceil(parts[going[place]] / whole * steps * (1 - ROUNDING))))
            fresh[place] = ahead[k, idle, step] - costs[going[place]]
        starting, dropped = survivors(parts[going], costs[going], fresh, best + slack, slack / (2 * n), room)
        ceiling = max(ceiling, dropped)
        sources = np.concatenate((going, going[starting], np.zeros(1, np.int64)))
        for place in range(len(sources)):
            source = sources[place]
            goes_on = place < len(going)
            for w in range(idle + 1):
                part, cost, end = parts[source], costs[source], k + 1
                if goes_on and (w != choices[source] or w == idle):
                    continue
                if not goes_on and w == choices[source] and (w < idle or source == 0):
                    continue  # it had better go on; and who has not begun starts later from label 0 again
                if w < idle:
                    length = 1 if goes_on else min(least, n - k)
                    opening = gains[w] if goes_on or source == 0 else changed[w]
                    part, m = _run(part, opening, gains[w], length, finished, whole)
                    end = k + m
                    cost += paid[w, end] - paid[w, k]
                    value = worth_of(jobs, i, part) - cost
                else:
                    value = -1.0
                step = min(steps, np.int64(np.ceil(part / whole * steps * (1 - ROUNDING))))
                promise = ahead[end, w, step] - cost
                better = value > best
                if not better and promise <= best + slack:
                    ceiling = max(ceiling, promise)
                    continue
                if count == len(parts):
                    parts, costs, promises = (
                        grown(parts, count + 1),
                        grown(costs, count + 1),
                        grown(promises, count + 1),
                    )
                    parents, choices = grown(parents, count + 1), grown(choices, count + 1)
                    froms, others = grown(froms, count + 1), grown(others, count + 1)
                parts[count], costs[count], promises[count] = part, cost, promise
                parents[count], choices[count], froms[count] = source, w, k
                if better:
                    best, best_label, best_end = value, count, end
                if end < n and part < whole:
                    others[count] = first[end, w]
                    first[end, w] = count
                count += 1
    plan = np.full(n, -1, np.int64)
    label, end = best_label, best_end
    while label > 0:
        if choices[label] < idle:
            for k in range(froms[label], end):
                plan[k] = choices[label]
        label, end = parents[label], froms[label]
    return best, max(best, ceiling) + slack, plan


@kernel(f"({UTILITIES}, i8, f8[:, ::1], f8[::1], f8[::1], i8, i8, f8, i8)", thorough=True)
def near_best_plans(
    jobs: Utilities,
    i: int,
    prices: Floats,
    gains: Floats,
    changed: Floats,
    least: int,
    steps: int,
    bar: float,
    most: int,
) -> tuple[bool, Ints]:
    """(m, n) places of widths, of all plans of job i worth, less cost, at least ``bar``, unless they are too many.

    Plans that go on although the job has finished are left out, and so is that of no slot. As in
    :func:`best_kept_plan`, but no label is dropped for another.

    Parameters
    ----------
    most : int
        Labels up to which they are listed.

    Returns
    -------
    (bool, (m, n) array)
        Whether these are all of them.
    """
    n, idle = prices.shape
    whole = jobs.needed[i] if jobs.needed[i] > 0 else 1.0
    finished = (whole if jobs.needed[i] > 0 else _FINISHED) * (1 - ROUNDING)
    paid = _paid(prices)
    ahead = _ahead(jobs, i, paid, gains, changed, least, steps)
    parts, costs, ends = np.zeros(_LABELS), np.zeros(_LABELS), np.zeros(_LABELS, np.int64)
    parents, choices = np.full(_LABELS, -1, np.int64), np.full(_LABELS, idle, np.int64)
    good, count, source, listed = np.zeros(_LABELS, np.int64), 1, 0, 0
    while source < count:
        first = ends[source]
        for k in range(first, n if source == 0 else min(n, first + 1)):
            for w in range(idle + 1):
                goes_on = w == choices[source]
                if w == idle and (source == 0 or k + 1 == n):
                    continue
                if source > 0 and parts[source] >= whole:
                    continue
                part, cost, end = parts[source], costs[source], k + 1
                value = -np.inf
                if w < idle:
                    length = 1 if goes_on else min(least, n - k)
                    opening = gains[w] if goes_on or source == 0 else changed[w]
                    part, m = _run(part, opening, gains[w], length, finished, whole)
                    end = k + m
                    cost += paid[w, end] - paid[w, k]
                    value = worth_of(jobs, i, part) - cost
                step = min(steps, np.int64(np.ceil(part / whole * steps * (1 - ROUNDING))))
                if max(value, ahead[end, w, step] - cost) < bar:
                    continue
                if count >= most:
                    return False, np.zeros((0, n), np.int64)
                if count == len(parts):
                    parts, costs, ends = grown(parts, count + 1), grown(costs, count + 1), grown(ends, count + 1)
                    parents, choices = grown(parents, count + 1), grown(choices, count + 1)
                    good = grown(good, count + 1)
                parts[count], costs[count], ends[count] = part, cost, end
                parents[count], choices[count] = source, w
                # Label 0 has waited up to slot k; what is between ``ends`` of a parent and the start is idle.
                good[count] = end - k if w < idle else 0
                if value >= bar:
                    good[count] = -good[count]
                    listed += 1
                count += 1
        source += 1
    plans, row = np.full((listed, n), -1, np.int64), 0
    for label in range(count):
        if good[label] < 0:
            here = label
            while here > 0:
                if choices[here] < idle:
                    for k in range(ends[here] - abs(good[here]), ends[here]):
                        plans[row, k] = choices[here]
                here = parents[here]
            row += 1
    return True, plans
