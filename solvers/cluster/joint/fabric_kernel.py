"""Lists of jobs that get hosts in a fabric and rates on its uplinks, changed step by step, as a Numba kernel."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel
from ddlopt.solvers.cluster.jobs.list_moves import change, undo, value_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_SLOWER = 4
"""Times that a job is slowed down further, since for longer there is less room on its uplinks."""
_LEAST = 1e-6
"""Part of an uplink below which nothing is reserved."""
_SAME = 1e-9
"""Part of a rate that is rounding; what is handed over here is less than an uplink has by more."""


@helper
def _least(profile: Floats, times: Floats, count: int, first: int, end: float, found: Floats) -> None:
    """What is free of each column from one moment until another."""
    for k in range(len(found)):
        found[k] = profile[first, k]
    at = first + 1
    while at < count and times[at] < end:
        for k in range(len(found)):
            found[k] = min(found[k], profile[at, k])
        at += 1


@helper
def _choose(
    width: int,
    free: Floats,
    rates: Floats,
    rate: float,
    above: Ints,
    racks: Ints,
    hosts: Ints,
    room: Floats,
    used: Floats,
) -> bool:
    """Hosts for a job, in ``used``: in the smallest group with room, of several the fullest; there in few parts.

    Parts with ``rate`` left on their uplinks come first.
    """
    many = len(above)
    for k in range(many):
        room[k], used[k] = free[k], 0.0
    total = 0.0
    for k in range(many - 1, -1, -1):
        if above[k] >= 0:
            room[above[k]] += room[k]
        else:
            total += room[k]
    if total < width:
        return False
    inside, best = -1, -1.0
    for k in range(many):
        if room[k] >= width and (
            best < 0 or hosts[k] < hosts[inside] or (hosts[k] == hosts[inside] and room[k] < best)
        ):
            inside, best = k, room[k]
    left = float(width)
    while left > 0:
        if inside >= 0 and racks[inside] == 1:
            used[inside] += left
            break
        # The child that has room for all that is left, and least to spare; else the largest one, whole.
        fits, largest = -1, -1
        for k in range(many):
            if above[k] != inside or room[k] <= 0:
                continue
            wide = rates[k] >= rate
            if room[k] >= left and (fits < 0 or _comes_first(wide, rates[fits] >= rate, room[fits] - room[k])):
                fits = k
            if largest < 0 or _comes_first(wide, rates[largest] >= rate, room[k] - room[largest]):
                largest = k
        if fits >= 0 and (rates[fits] >= rate or rates[largest] < rate):
            inside = fits
            continue
        left -= room[largest]
        _take(largest, free, above, used)
        room[largest] = 0.0
    for k in range(many - 1, -1, -1):
        if above[k] >= 0:
            used[above[k]] += used[k]
    return True


@helper
def _comes_first(wide: bool, other: bool, better: float) -> bool:
    return (wide and not other) or (wide == other and better > 0)


@helper
def _take(group: int, free: Floats, above: Ints, used: Floats) -> None:
    """All free hosts of a group."""
    for k in range(group, len(above)):
        own = k
        while own > group:
            own = above[own]
        if own == group and free[k] > 0:
            used[k] += free[k]


@helper
def _cut(times: Floats, hosts: Floats, rates: Floats, count: int, moment: float) -> int:
    """Put a moment among the others, if it is not there; how many there are."""
    k = count
    while k > 0 and times[k - 1] > moment:
        k -= 1
    if times[k - 1] == moment:
        return count
    for other in range(count, k, -1):
        times[other] = times[other - 1]
        hosts[other] = hosts[other - 1]
        rates[other] = rates[other - 1]
    times[k] = moment
    hosts[k] = hosts[k - 1]
    rates[k] = rates[k - 1]
    return count + 1


@helper
def _end(
    start: float,
    length: float,
    load: float,
    width: int,
    used: Floats,
    rates: Floats,
    times: Floats,
    count: int,
    at: int,
    uplinks: Floats,
    left: Floats,
) -> float:
    """When a job ends, as fast as its uplinks let it; infinite where they do not."""
    end = start + length
    for _ in range(_SLOWER):
        _least(rates, times, count, at, end, left)
        rate = np.inf
        for k in range(len(used)):
            if load > 0 and 0 < used[k] < width:
                rate = min(rate, left[k] if left[k] > _LEAST * uplinks[k] else 0.0)
        if rate == 0.0:
            return np.inf
        if load <= rate * (end - start) * (1 + _SAME):
            return end
        end = start + load / rate
    return np.inf


@helper
def _place(
    order: Ints,
    chosen: Ints,
    widths: Ints,
    lengths: Floats,
    sent: Floats,
    jobs: Floats,
    above: Ints,
    hosts: Ints,
    uplinks: Floats,
    goal: int,
    starts: Floats,
    ends: Floats,
    places: Floats,
) -> float:
    """The objective of a list: each job where it ends first, in what those ahead of it leave."""
    n, many = len(order), len(above)
    times = np.zeros(2 * n + 3)
    free, rates = np.zeros((2 * n + 3, many)), np.zeros((2 * n + 3, many))
    own_hosts, own_rates, room, used = np.empty(many), np.empty(many), np.empty(many), np.empty(many)
    count = 1
    racks = np.ones(many, np.int64)
    for k in range(many):
        rates[0, k] = uplinks[k]
        if above[k] >= 0:
            racks[above[k]] = 0
    for k in range(many):
        free[0, k] = racks[k] * hosts[k]
    for place in range(n):
        job = order[place]
        width, length, load = widths[job, chosen[job]], lengths[job, chosen[job]], sent[job, chosen[job]]
        ends[job] = np.inf
        at = count - 1
        while times[at] > jobs[0, job]:
            at -= 1
        while at < count:
            start = max(jobs[0, job], times[at])
            if start + length >= ends[job]:
                break
            _least(free, times, count, at, start + length, own_hosts)
            _least(rates, times, count, at, start + length, own_rates)
            for careful in (True, False):
                rate = load / length * (1 - _SAME) if careful else 0.0
                if not _choose(width, own_hosts, own_rates, rate, above, racks, hosts, room, used):
                    break
                end = _end(start, length, load, width, used, rates, times, count, at, uplinks, room)
                if end < ends[job] and end > start + length:
                    _least(free, times, count, at, end, room)
                    for k in range(many):
                        if racks[k] == 1 and used[k] > room[k]:
                            end = np.inf
                if end < ends[job]:
                    starts[job], ends[job] = start, end
                    places[job] = used
                if load == 0 or end <= start + length:
                    break
            at += 1
        count = _cut(times, free, rates, count, starts[job])
        count = _cut(times, free, rates, count, ends[job])
        rate = load / (ends[job] - starts[job])
        for k in range(count):
            if starts[job] <= times[k] < ends[job]:
                for g in range(many):
                    free[k, g] -= racks[g] * places[job, g]
                    if 0 < places[job, g] < width:
                        rates[k, g] -= rate
    return value_of(ends, jobs, goal)


@kernel(
    "f8(i8[::1], i8[::1], const(i8[:, ::1]), const(f8[:, ::1]), const(f8[:, ::1]), const(i8[::1]), const(f8[:, ::1]), "
    "const(i8[::1]), const(i8[::1]), const(f8[::1]), i8, i8, i8, f8, i8, f8[::1], f8[::1], f8[:, ::1])"
)
def exchange_in_fabric(
    order: Ints,
    chosen: Ints,
    widths: Ints,
    lengths: Floats,
    sent: Floats,
    menus: Ints,
    jobs: Floats,
    above: Ints,
    hosts: Ints,
    uplinks: Floats,
    goal: int,
    first: int,
    tries: int,
    heat: float,
    seed: int,
    starts: Floats,
    ends: Floats,
    places: Floats,
) -> float:
    """Change a list and its widths; what is a little worse is kept at first, and the best one in the end.

    Parameters
    ----------
    order : (n,) array
        Jobs, in the order in which they are placed; the best list in the end.
    chosen : (n,) array
        Places in the menus; likewise.
    widths, lengths, sent : (n, m) array
        Menus of jobs: servers, seconds at least, and bytes over each uplink that is crossed.
    menus : (n,) array
        How many of the m there are.
    jobs : (3, n) array
        Arrivals, weights, deadlines.
    above : (g,) array
        The group around each, which comes before it; -1 for none.
    hosts : (g,) array
        Of each group, with those inside.
    uplinks : (g,) array
        Bytes per second.
    goal : {0, 1, 2}
        Makespan, weighted sum of ends, of how late they are.
    first : int
        Place of the list from which on jobs are moved.
    tries : int
    heat : float
        Part of the objective by which a change may be worse, at first.
    seed : int
    starts, ends : (n,) array
        Of the best list, in the end.
    places : (n, g) array
        Likewise, servers of each job in each group.

    Returns
    -------
    float
        The objective.
    """
    np.random.seed(seed)
    now = _place(order, chosen, widths, lengths, sent, jobs, above, hosts, uplinks, goal, starts, ends, places)
    best, best_order, best_chosen = now, order.copy(), chosen.copy()
    for step in range(tries):
        job, old, a, b = change(order, chosen, menus, first)
        if job < 0 and a == b:
            continue
        value = _place(order, chosen, widths, lengths, sent, jobs, above, hosts, uplinks, goal, starts, ends, places)
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
    return _place(order, chosen, widths, lengths, sent, jobs, above, hosts, uplinks, goal, starts, ends, places)
