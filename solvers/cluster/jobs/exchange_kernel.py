"""Lists of rigid jobs and their widths, changed step by step, as a Numba kernel."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel
from ddlopt.solvers.cluster.jobs.list_moves import change, undo, value_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@helper
def _place(
    order: Ints, chosen: Ints, widths: Ints, lengths: Floats, jobs: Floats, servers: int, goal: int, room: Floats
) -> float:
    """The objective of a list: each job as early as its servers are free for all its time."""
    # Moments, and the servers that are free from each to the next.
    times, free, ends = room[0], room[1], room[2]
    count = 1
    times[0], free[0] = 0.0, servers
    for place in range(len(order)):
        job = order[place]
        width, length = widths[job, chosen[job]], lengths[job, chosen[job]]
        start = jobs[0, job]
        at = count - 1
        while times[at] > start:
            at -= 1
        while True:
            if free[at] < width:
                # Behind the last moment all servers are free.
                at += 1
                start = times[at]
            elif at + 1 == count or times[at + 1] >= start + length:
                break
            else:
                at += 1
        end = start + length
        for moment in (start, end):
            k = count
            while k > 0 and times[k - 1] > moment:
                k -= 1
            if times[k - 1] != moment:
                for other in range(count, k, -1):
                    times[other], free[other] = times[other - 1], free[other - 1]
                times[k], free[k] = moment, free[k - 1]
                count += 1
        k = count - 1
        while times[k] >= end:
            k -= 1
        while k >= 0 and times[k] >= start:
            free[k] -= width
            k -= 1
        ends[job] = end
    return value_of(ends, jobs, goal)


@kernel(
    "f8(i8[::1], i8[::1], const(i8[:, ::1]), const(f8[:, ::1]), const(i8[::1]), const(f8[:, ::1]), "
    "i8, i8, i8, i8, f8, i8)"
)
def exchange(
    order: Ints,
    chosen: Ints,
    widths: Ints,
    lengths: Floats,
    menus: Ints,
    jobs: Floats,
    servers: int,
    goal: int,
    first: int,
    tries: int,
    heat: float,
    seed: int,
) -> float:
    """Change a list and its widths; what is a little worse is kept at first, and the best one in the end.

    Parameters
    ----------
    order : (n,) array
        Jobs, in the order in which they are placed; the best list in the end.
    chosen : (n,) array
        Places in the menus; likewise.
    widths, lengths : (n, m) array
        Menus of jobs.
    menus : (n,) array
        How many of the m there are.
    jobs : (3, n) array
        Arrivals, weights, deadlines.
    servers : int
    goal : {0, 1, 2}
        Makespan, weighted sum of ends, of how late they are.
    first : int
        Place of the list from which on jobs are moved.
    tries : int
    heat : float
        Part of the objective by which a change may be worse, at first.
    seed : int

    Returns
    -------
    float
        The objective.
    """
    np.random.seed(seed)
    n = len(order)
    room = np.empty((3, 2 * n + 3))
    now = _place(order, chosen, widths, lengths, jobs, servers, goal, room)
    best, best_order, best_chosen = now, order.copy(), chosen.copy()
    for step in range(tries):
        job, old, a, b = change(order, chosen, menus, first)
        if job < 0 and a == b:
            continue
        value = _place(order, chosen, widths, lengths, jobs, servers, goal, room)
        worse = heat * best * (1 - step / tries) * np.random.random() ** 4
        if value <= now + worse:
            now = value
            if value < best:
                best = value
                best_order[:] = order
                best_chosen[:] = chosen
        else:
            undo(order, chosen, job, old, a, b)
    order[:] = best_order
    chosen[:] = best_chosen
    return best
