"""Compiled simulation of gangs on servers: who starts where, and how fast each is among the others."""

# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.gangs.kernels import GOAL, Goal, move, objective_of
from ddlopt.models.kernels import inner, kernel
from ddlopt.models.tolerances import ROUNDING

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SPLIT, HOLD, CALM = 1, 2, 4
"""What a job may do: go to several servers though one could hold it; keep those behind it waiting while it waits; take
the servers with the fewest split jobs instead of the emptiest ones."""

_NEVER = np.int64(2**62)

_PLACING = "record(Placing, i8[::1], i8[::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8[::1], f8[::1], f8)"


class Placing(NamedTuple):
    """Gangs on servers.

    On n > 1 servers at contention level k, width / (base + ring slowdown[k] + n per_server) mini-batches are done in a
    slot; all times are in slots.

    Parameters
    ----------
    width, arrival, wanted : (I,) arrays
        Workers, first slot, mini-batches.
    demand : (I, R) array
    capacity : (S, R) array
        What every check lets pass.
    alone : (I,) array
        Mini-batches per slot on one server.
    base, ring : (I,) arrays
    slowdown : array
        By contention level.
    per_server : float
    """

    width: Ints
    arrival: Ints
    wanted: Floats
    demand: Floats
    capacity: Floats
    alone: Floats
    base: Floats
    ring: Floats
    slowdown: Floats
    per_server: float


@kernel(f"(i8[::1], i8[::1], {_PLACING}, i8[:, ::1], i8[::1], i8[::1])")
def dispatch(order: Ints, flags: Ints, gangs: Placing, placed: Ints, starts: Ints, slots: Ints) -> bool:
    """Simulate: whenever something ends or arrives, start all that fit, in this order; False if some job never fits.

    Parameters
    ----------
    order, flags : (I,) arrays
        Jobs first to last; sums of :data:`SPLIT`, :data:`HOLD` and :data:`CALM` by job.
    placed : (I, S) array
        Gets the workers of each job on each server.
    starts, slots : (I,) arrays
        Get when each job runs.
    """
    jobs, servers = len(order), len(gangs.capacity)
    free = gangs.capacity.copy()
    crowd, room = np.zeros(servers, np.int64), np.zeros(servers, np.int64)
    hosts, active = np.zeros(jobs, np.int64), np.empty(jobs, np.int64)
    waiting, rates, done = order.copy(), np.zeros(jobs), np.zeros(jobs)
    running, left, now = 0, jobs, np.int64(0)
    placed[:] = 0
    while left or running:
        following, kept, held = _NEVER, 0, False
        for place in range(left):
            job = waiting[place]
            if gangs.arrival[job] > now:
                following = min(following, gangs.arrival[job])
            elif not held:
                if _put(job, flags[job], gangs, free, crowd, room, placed[job]):
                    hosts[job] = _occupy(placed[job], crowd)
                    starts[job] = now
                    active[running] = job
                    running += 1
                    continue
                held = flags[job] & HOLD > 0
            waiting[kept] = job
            kept += 1
        left = kept
        if running == 0 and following == _NEVER:
            return False
        for job in active[:running]:
            rates[job] = _rate(job, hosts[job], crowd, placed[job], gangs)
            needed = np.int64(np.ceil((gangs.wanted[job] - done[job]) / rates[job]))
            following = min(following, now + max(np.int64(1), needed))
        kept = 0
        for job in active[:running]:
            done[job] += rates[job] * (following - now)
            if done[job] >= gangs.wanted[job] * (1 - ROUNDING):
                slots[job] = following - starts[job]
                _leave(job, gangs, hosts[job], placed[job], crowd, free)
            else:
                active[kept] = job
                kept += 1
        running, now = kept, following
    return True


@inner(inline="always")
def _occupy(mine: Ints, crowd: Ints) -> int:
    """Number of servers that a job is on; if there are several, it counts as split on each."""
    hosts = 0
    for s in range(len(crowd)):
        hosts += mine[s] > 0
    if hosts > 1:
        for s in range(len(crowd)):
            crowd[s] += mine[s] > 0
    return hosts


@inner(inline="always")
def _leave(job: int, gangs: Placing, hosts: int, mine: Ints, crowd: Ints, free: Floats) -> None:
    for s in range(len(crowd)):
        if mine[s]:
            crowd[s] -= hosts > 1
            for r in range(free.shape[1]):
                free[s, r] += mine[s] * gangs.demand[job, r]


@inner(inline="always")
def _rate(job: int, hosts: int, crowd: Ints, mine: Ints, gangs: Placing) -> float:
    """Mini-batches per slot."""
    if hosts == 1:
        return gangs.alone[job]
    level = 0
    for s in range(len(crowd)):
        if mine[s] and crowd[s] > level:
            level = crowd[s]
    moved = gangs.ring[job] * gangs.slowdown[level]
    return gangs.width[job] / (gangs.base[job] + moved + hosts * gangs.per_server)


@inner()
def _put(job: int, flag: int, gangs: Placing, free: Floats, crowd: Ints, room: Ints, mine: Ints) -> bool:
    """Place a job: on the server that it fills best, else on several; ``free`` and ``mine`` change if it fits."""
    width, demand = gangs.width[job], gangs.demand[job]
    servers = len(free)
    total, best, possible = 0, -1, False
    for s in range(servers):
        room[s] = _workers(free[s], demand, width)
        total += room[s]
        if room[s] >= width and (best < 0 or _slack(free[s], demand) < _slack(free[best], demand)):
            best = s
    if total < width:
        return False
    if best >= 0:
        mine[best] = width
    else:
        if not flag & SPLIT:
            for s in range(servers):
                possible |= _workers(gangs.capacity[s], demand, width) >= width
            if possible:
                return False
        _spread(width, flag & CALM > 0, crowd, room, mine)
    for s in range(servers):
        for r in range(len(demand)):
            free[s, r] -= mine[s] * demand[r]
    return True


@inner(inline="always")
def _spread(width: int, calm: bool, crowd: Ints, room: Ints, mine: Ints) -> None:
    """Workers on the servers with most room, or first on those with the least contention; the last is filled best."""
    left = width
    while left:
        chosen, last = -1, -1
        for s in range(len(room)):
            if room[s] == 0 or mine[s]:
                continue
            if room[s] >= left and (last < 0 or room[s] < room[last]):
                last = s
            calmer = crowd[chosen] - crowd[s] if calm else 0
            if chosen < 0 or calmer > 0 or (calmer == 0 and room[s] > room[chosen]):
                chosen = s
        if last >= 0 and not (calm and crowd[last] > crowd[chosen]):
            chosen = last
        mine[chosen] = min(left, room[chosen])
        left -= mine[chosen]


@inner()
def _workers(free: Floats, demand: Floats, most: int) -> int:
    """Workers that fit, at most ``most``."""
    fit = most
    for r in range(len(demand)):
        if demand[r] > 0:
            fit = min(fit, int(free[r] / demand[r]))
    return fit


@inner()
def _slack(free: Floats, demand: Floats) -> float:
    """How many more workers would fit, by the resource that is scarcest."""
    slack = np.inf
    for r in range(len(demand)):
        if demand[r] > 0:
            slack = min(slack, free[r] / demand[r])
    return slack


@kernel(f"(i8[::1], i8[::1], {_PLACING}, {GOAL}, i8, f8, f8, i8, i8[::1], i8[::1], f8)")
def anneal_placed(
    order: Ints,
    flags: Ints,
    gangs: Placing,
    goal: Goal,
    target: int,
    temperature: float,
    cooling: float,
    moves: int,
    best: Ints,
    best_flags: Ints,
    least: float,
) -> tuple[float, float]:
    """One stage of simulated annealing of ``order`` and ``flags`` in place; the best ones get those of a new least.

    Returns
    -------
    least : float
        The least objective so far, at most the one given.
    cost : float
        Of the order as it now is; 0 once the makespan is the target.
    """
    count = len(order)
    placed = np.empty((count, len(gangs.capacity)), np.int64)
    starts, slots = np.empty(count, np.int64), np.empty(count, np.int64)
    current = np.inf
    for tried in range(moves + 1):
        temperature *= cooling
        first, second = np.random.randint(count), np.random.randint(count)  # noqa: NPY002
        kind = np.random.randint(4) if tried else 3  # noqa: NPY002
        flipped = np.int64(1) << np.random.randint(3) if tried else np.int64(0)  # noqa: NPY002
        if kind < 2:
            flags[first] ^= flipped
        else:
            move(order, first, second if tried else first, kind == 2)
        objective, cost = np.inf, np.inf
        if dispatch(order, flags, gangs, placed, starts, slots):
            objective, cost = objective_of(starts, slots, goal, target)
        if objective < least:
            least = objective
            for i in range(count):
                best[i], best_flags[i] = order[i], flags[i]
        if cost <= current - temperature * np.log(1.0 - np.random.random()):  # noqa: NPY002
            current = cost
            if cost <= 0.0:
                break
        elif kind < 2:
            flags[first] ^= flipped
        else:
            move(order, second, first, kind == 2)
    return least, current
