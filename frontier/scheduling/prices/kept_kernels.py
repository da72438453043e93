"""Compiled list of all plans of one job that are near its best one, where plans are kept."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices.plan_kernels import (
    LABELS,
    UTILITIES,
    Utilities,
    add_up,
    completed,
    grown,
    joined,
    labels_of,
    offered,
    run,
    worth_of,
)
from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel(f"({UTILITIES}, i8, f8[:, ::1], f8[::1], f8[::1], i8, f8, i8)")
def near_best_plans(
    jobs: Utilities, i: int, prices: Floats, gains: Floats, changed: Floats, least: int, bar: float, most: int
) -> tuple[bool, Ints]:
    """(m, n) offers of all plans of job i worth, less cost, at least ``bar``, unless they are too many.

    Plans that go on although the job has finished are left out, and so is that of no slot. As in
    :func:`~ddlopt.frontier.scheduling.prices.plan_kernels.best_plan`, but no label is dropped for another.

    Parameters
    ----------
    most : int
        Labels up to which they are listed.

    Returns
    -------
    (bool, (m, n) array)
        Whether these are all of them.
    """
    n, widest = prices.shape
    offers, _, _ = offered(jobs, i, prices, gains, changed, False, least)
    # Part, cost and value of each label; the one before, the offer from it on, its first slot, the next label that
    # waits for the same, and the slot that it waits for.
    values, links = np.zeros((LABELS, 3)), np.full((LABELS, 5), -1, np.int64)
    waiting = np.full(n + 1, -1, np.int64)
    count, listed = 1, 0  # label 0: the job has not begun
    for k in range(n):
        if k + least < n:
            add_up(offers, k + least)
        for source in joined(labels_of(waiting[k], links), np.zeros(1, np.int64)):
            for o in range(0 if source == 0 or k + 1 == n else -1, widest):
                part, cost, end, value = values[source, 0], values[source, 1], k + 1, -np.inf
                if o >= 0:
                    goes_on = o == links[source, 1]
                    last = k + 1 if goes_on else min(k + least, n)
                    part, cost, end = run(offers, o, part, cost, not goes_on and source > 0, k, last)
                    value = worth_of(jobs, i, part) - cost
                ends = end == n or part >= offers.whole
                if value < bar and (ends or completed(jobs, i, offers, part, end) - cost < bar):
                    continue
                if count >= most:
                    return False, np.zeros((0, n), np.int64)
                if count == len(values):
                    values, links = grown(values, count + 1), grown(links, count + 1)
                values[count, 0], values[count, 1], values[count, 2] = part, cost, value
                links[count, 0], links[count, 1], links[count, 2], links[count, 4] = source, o, k, end
                links[count, 3] = waiting[end]
                if not ends:
                    waiting[end] = count
                listed += value >= bar
                count += 1
    plans, row = np.full((listed, n), -1, np.int64), 0
    for label in range(1, count):
        if values[label, 2] >= bar:
            here = label
            while here > 0:
                plans[row, links[here, 2] : links[here, 4]] = links[here, 1]
                here = links[here, 0]
            row += 1
    return True, plans
