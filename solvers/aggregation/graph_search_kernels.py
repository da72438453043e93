"""Numba kernels of the search over aggregation trees: jobs are taken out of the network and sent anew."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit

from ddlopt.solvers.aggregation import graph_kernels as trees
from ddlopt.solvers.aggregation.graph_kernels import Floats, Ints, Net, Prices, Rules, Tree

UTILIZATION, CONGESTION, RATES = 0, 1, 2
_POWER = 16
"""Of the norm of loads by which a search compares: near to the largest, but it sees the others too."""
_TIE = 1e-3
"""Weight of that norm beside a sum of rates."""
_SHARPEST = 8.0
_CROWD, _WIDE = 2.0, 3.0


class Demand(NamedTuple):
    """Jobs: ``workers[first[j] : first[j + 1]]``, (J,) servers, bytes and slots, and the goal."""

    first: Ints
    workers: Ints
    server: Ints
    bytes_: Floats
    slots: Ints
    goal: int


class Forest(NamedTuple):
    """Trees of all jobs, stacked; (J, m) messages, (J, n) ended, and (m,), (n,), (n,) loads in seconds and slots used.

    Where rates are the goal, loads are those of messages of one byte, and a switch counts every job once.
    """

    routes: Ints
    length: Ints
    number: Ints
    aggregates: trees.Flags
    senders: Ints
    messages: Ints
    ended: Ints
    link: Floats
    switch: Floats
    used: Ints


@njit(cache=True)
def tree_of(forest: Forest, j: int) -> Tree:
    """A view of the tree of one job."""
    return Tree(forest.routes[j], forest.length[j], forest.number[j], forest.aggregates[j], forest.senders[j])


@njit(cache=True)
def _add(net: Net, demand: Demand, forest: Forest, j: int, sign: int) -> None:
    """Add (1) or take away (-1) what a job loads."""
    size = 1.0 if demand.goal == RATES else demand.bytes_[j]
    for a in range(len(net.tail)):
        if forest.messages[j, a] > 0:
            forest.link[a] += sign * size * forest.messages[j, a] * net.link_s[a]
    for v in range(len(net.forwards)):
        if forest.ended[j, v] > 0:
            times = 1 if demand.goal == RATES else forest.ended[j, v]
            forest.switch[v] += sign * size * times * net.switch_s[v]
            forest.used[v] += sign * demand.slots[j]


@njit(cache=True)
def put(net: Net, demand: Demand, forest: Forest, j: int) -> None:
    """Count and add the tree that a job has."""
    trees.count(net, tree_of(forest, j), demand.server[j], forest.messages[j], forest.ended[j])
    _add(net, demand, forest, j, 1)


@njit(cache=True)
def take(net: Net, demand: Demand, forest: Forest, j: int) -> None:
    """Take a job out of the network."""
    _add(net, demand, forest, j, -1)
    forest.messages[j] = 0
    forest.ended[j] = 0


@njit(cache=True)
def reset(net: Net, demand: Demand, forest: Forest) -> None:
    """Loads anew from messages, as sums of floats drift."""
    forest.link[:] = 0.0
    forest.switch[:] = 0.0
    forest.used[:] = 0
    for j in range(len(demand.server)):
        _add(net, demand, forest, j, 1)


@njit(cache=True)
def opened(forest: Forest) -> int:
    """Pairs of a job and a node that aggregates for it."""
    return int((forest.ended > 0).sum())


@njit(cache=True)
def objective(net: Net, demand: Demand, forest: Forest) -> float:
    """The goal, to be minimised: a sum of rates counts as negative."""
    if demand.goal == UTILIZATION:
        return forest.link.sum()
    if demand.goal == CONGESTION:
        return max(forest.link.max(), forest.switch.max())
    total = 0.0
    for j in range(len(demand.server)):
        slowest = 0.0
        for a in range(len(net.tail)):
            if forest.messages[j, a] > 0:
                slowest = max(slowest, forest.link[a])
        for v in range(len(net.forwards)):
            if forest.ended[j, v] > 0:
                slowest = max(slowest, forest.switch[v])
        total += 1.0 / slowest
    return -total


@njit(cache=True)
def _score(net: Net, demand: Demand, forest: Forest, value: float, scale: float) -> float:
    """What the search compares."""
    if demand.goal == UTILIZATION:
        return value
    most = max(forest.link.max(), forest.switch.max())
    norm = 0.0
    for load in forest.link:
        norm += (load / most) ** _POWER
    for load in forest.switch:
        norm += (load / most) ** _POWER
    norm = most * norm ** (1.0 / _POWER)
    return norm if demand.goal == CONGESTION else value * (1.0 + _TIE * min(1.0, scale / norm))


@njit(cache=True)
def set_prices(
    net: Net, demand: Demand, forest: Forest, j: int, sharpness: float, noise: Floats, opening: float, prices: Prices
) -> None:
    """Prices of a job that is not in the network: arcs and switches are the dearer, the busier they would be.

    ``noise`` is (m,), factors; ``opening`` is the price to begin, relative to a mean arc. A sharpness of 0 leaves the
    seconds that a message takes.
    """
    size = 1.0 if demand.goal == RATES else demand.bytes_[j]
    most = 0.0
    for a in range(len(net.tail)):
        most = max(most, forest.link[a] + size * net.link_s[a])
    for v in range(len(net.forwards)):
        most = max(most, forest.switch[v] + size * net.switch_s[v])
    mean = 0.0
    for a in range(len(net.tail)):
        time = size * net.link_s[a]
        busy = 1.0 if sharpness == 0.0 else ((forest.link[a] + time) / most) ** sharpness + 1e-6
        prices.arc[a] = time * busy * noise[a]
        mean += prices.arc[a] / len(net.tail)
    for v in range(len(net.forwards)):
        time = size * net.switch_s[v]
        busy = 1.0 if sharpness == 0.0 else ((forest.switch[v] + time) / most) ** sharpness
        prices.ending[v] = 0.0 if demand.goal == UTILIZATION else time * busy
        free = net.slots[v] - forest.used[v] >= demand.slots[j] and v != demand.server[j]
        prices.opening[v] = opening * mean if free else np.inf


@njit(cache=True)
def send(
    net: Net, demand: Demand, rules: Rules, forest: Forest, j: int, prices: Prices, order: Floats, hub: float
) -> bool:
    """Give a job that is not in the network a tree, its workers in the order of random numbers; False: there is none.

    A ``hub`` of at least 0 first has a node aggregate that is free for it, by that part of all that are.
    """
    workers = demand.workers[demand.first[j] : demand.first[j + 1]]
    queue = workers[np.argsort(order[: len(workers)])]
    left = rules.aggregators - opened(forest)
    hubs = 0
    if hub >= 0.0:
        free = np.flatnonzero(prices.opening < np.inf)
        if len(free) > 0:
            node = free[int(hub * len(free))]
            queue = np.concatenate((np.array([node]), queue[queue != node]))
            hubs = 0 if (workers == node).any() else 1
    if not trees.grow(net, queue, hubs, demand.server[j], prices, rules, left, tree_of(forest, j)):
        return False
    put(net, demand, forest, j)
    return True


@njit(cache=True)
def copy_job(source: Forest, j: int, target: Forest) -> None:
    """Copy the tree of a job and its counts; loads are left."""
    target.routes[j] = source.routes[j]
    target.length[j] = source.length[j]
    target.number[j] = source.number[j]
    target.aggregates[j] = source.aggregates[j]
    target.senders[j] = source.senders[j]
    target.messages[j] = source.messages[j]
    target.ended[j] = source.ended[j]


@njit(cache=True)
def _chosen(net: Net, demand: Demand, forest: Forest, dice: Floats) -> Ints:
    """One to three jobs; the first is often one of those on the busiest arc or switch."""
    count = len(demand.server)
    first = int(dice[0] * count)
    if demand.goal != UTILIZATION and dice[1] < 0.6:
        if forest.link.max() >= forest.switch.max():
            guilty = np.flatnonzero(forest.messages[:, forest.link.argmax()])
        else:
            guilty = np.flatnonzero(forest.ended[:, forest.switch.argmax()])
        if len(guilty) > 0:
            first = guilty[int(dice[0] * len(guilty))]
    jobs = [first]
    for number in range(min(int(dice[2] * 3), count - 1)):
        other = int(dice[3 + number] * count)
        if other not in jobs:
            jobs.append(other)
    return np.array(jobs)


@njit(cache=True)
def search(net: Net, demand: Demand, rules: Rules, now: Forest, best: Forest, dice: Floats, heat: Floats) -> float:
    """Some rounds: jobs are taken out and sent anew; what is not much worse stays.

    Parameters
    ----------
    now, best : Forest
        Changed in place.
    dice : (rounds, 11 + m + most workers) floats
        Random numbers within 0..1.
    heat : (rounds,) floats
        By which part a score may be worse.

    Returns
    -------
    float
        Goal of ``best``, to be minimised.
    """
    m, n = len(net.tail), len(net.forwards)
    prices = Prices(np.empty(m), np.empty(n), np.empty(n))
    reset(net, demand, now)
    reset(net, demand, best)
    goal = objective(net, demand, best)
    scale = max(best.link.max(), best.switch.max())
    score = _score(net, demand, now, objective(net, demand, now), scale)
    for row in range(len(dice)):
        luck = dice[row]
        jobs = _chosen(net, demand, now, luck)
        before = _saved(now, jobs)
        for j in jobs:
            take(net, demand, now, j)
        sharpness = 0.0 if demand.goal == UTILIZATION else _SHARPEST * luck[6]
        if demand.goal == RATES:
            # The sum is large where a few jobs have links for themselves and others crowd together.
            sharpness -= _CROWD
            noise = np.exp(_WIDE * luck[7] * luck[11 : 11 + m])
        else:
            noise = 1.0 + (0.6 * luck[7]) * luck[11 : 11 + m]
        opening = 0.0 if luck[8] < 0.5 else 4.0 * (luck[8] - 0.5)
        sent = True
        for j in jobs:
            set_prices(net, demand, now, j, sharpness, noise, opening, prices)
            hub = luck[10] if luck[9] < 0.15 else -1.0
            sent = send(net, demand, rules, now, j, prices, luck[11 + m :], hub)
            if not sent and hub < 0.0:
                sent = send(net, demand, rules, now, j, prices, luck[11 + m :], luck[10])
            if not sent:
                break
        after, value = np.inf, np.inf
        if sent:
            value = objective(net, demand, now)
            after = _score(net, demand, now, value, scale)
        if after <= score + heat[row] * abs(score):
            score = after
            if value < goal - 1e-12 * abs(goal):
                goal = value
                for j in range(len(demand.server)):
                    copy_job(now, j, best)
        else:
            for j in jobs:
                take(net, demand, now, j)
            _restore(net, demand, now, jobs, before)
    return goal


class _Saved(NamedTuple):
    routes: Ints
    length: Ints
    number: Ints
    aggregates: trees.Flags
    senders: Ints
    messages: Ints
    ended: Ints


@njit(cache=True)
def _saved(forest: Forest, jobs: Ints) -> _Saved:
    return _Saved(
        forest.routes[jobs],
        forest.length[jobs],
        forest.number[jobs],
        forest.aggregates[jobs],
        forest.senders[jobs],
        forest.messages[jobs],
        forest.ended[jobs],
    )


@njit(cache=True)
def _restore(net: Net, demand: Demand, forest: Forest, jobs: Ints, before: _Saved) -> None:
    for place, j in enumerate(jobs):
        forest.routes[j] = before.routes[place]
        forest.length[j] = before.length[place]
        forest.number[j] = before.number[place]
        forest.aggregates[j] = before.aggregates[place]
        forest.senders[j] = before.senders[place]
        forest.messages[j] = before.messages[place]
        forest.ended[j] = before.ended[place]
        _add(net, demand, forest, j, 1)
