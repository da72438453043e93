"""Numba kernels for the trees of all jobs in a network: what they load, what that costs others, and sending one."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import stable_order
from ddlopt.solvers.aggregation.graph.kernels import messages as trees
from ddlopt.solvers.aggregation.graph.kernels.messages import (
    NET,
    PRICES,
    RULES,
    Flags,
    Floats,
    Ints,
    Net,
    Prices,
    Rules,
    Tree,
)

# Goals as numbers, for compiled code.
UTILIZATION, CONGESTION, RATES = 0, 1, 2
_POWER = 16
"""Of the norm of loads by which a search compares: near to the largest, but it sees the others too."""
_TIE = 1e-3
"""Weight of that norm beside a sum of rates."""

DEMAND = "record(Demand, i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8)"
FOREST = (
    "record(Forest, i8[:, :, ::1], i8[:, ::1], i8[:, ::1], b1[:, ::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], "
    "f8[::1], f8[::1], i8[::1])"
)


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
    aggregates: Flags
    senders: Ints
    messages: Ints
    ended: Ints
    link: Floats
    switch: Floats
    used: Ints

    def tree(self, j: int) -> Tree:
        """A view of the tree of one job, for Python."""
        return Tree(self.routes[j], self.length[j], self.number[j], self.aggregates[j], self.senders[j])


@inner(inline="always")
def tree_of(forest: Forest, j: int) -> Tree:
    """The same for kernels."""
    return Tree(forest.routes[j], forest.length[j], forest.number[j], forest.aggregates[j], forest.senders[j])


@inner()
def add(net: Net, demand: Demand, forest: Forest, j: int, sign: float) -> None:
    """Add (1.0) or take away (-1.0) what a job loads."""
    link_s, switch_s, link, switch, used = net.link_s, net.switch_s, forest.link, forest.switch, forest.used
    messages, ended = forest.messages[j], forest.ended[j]
    rates, slots = demand.goal == RATES, int(sign) * demand.slots[j]
    load = sign if rates else sign * demand.bytes_[j]
    for a in range(len(link)):
        if messages[a] > 0:
            link[a] += load * messages[a] * link_s[a]
    for v in range(len(switch)):
        if ended[v] > 0:
            switch[v] += load * (1 if rates else ended[v]) * switch_s[v]
            used[v] += slots


@kernel(f"({NET}, {DEMAND}, {FOREST}, i8)")
def insert_job(net: Net, demand: Demand, forest: Forest, j: int) -> None:
    """Count and add the tree that a job has."""
    trees.count(net.head, tree_of(forest, j), demand.server[j], forest.messages[j], forest.ended[j])
    add(net, demand, forest, j, 1.0)


@inner()
def remove_job(net: Net, demand: Demand, forest: Forest, j: int) -> None:
    """Take a job out of the network."""
    add(net, demand, forest, j, -1.0)
    forest.messages[j] = 0
    forest.ended[j] = 0


@inner()
def busiest(loads: Floats) -> int:
    """Where the largest of these is, the first of equals."""
    best = 0
    for place in range(1, len(loads)):
        if loads[place] > loads[best]:
            best = place
    return best


@inner()
def objective(net: Net, demand: Demand, forest: Forest) -> float:
    """The goal, to be minimised: a sum of rates counts as negative."""
    link, switch = forest.link, forest.switch
    if demand.goal == UTILIZATION:
        used = 0.0
        for a in range(len(link)):
            used += link[a]
        return used
    if demand.goal == CONGESTION:
        return max(link[busiest(link)], switch[busiest(switch)])
    total = 0.0
    for j in range(len(demand.server)):
        slowest = 0.0
        for a in range(len(link)):
            if forest.messages[j, a] > 0:
                slowest = max(slowest, link[a])
        for v in range(len(switch)):
            if forest.ended[j, v] > 0:
                slowest = max(slowest, switch[v])
        total += 1.0 / slowest
    return -total


@inner()
def recomputed(net: Net, demand: Demand, forest: Forest) -> tuple[float, float]:
    """The goal and the largest load, with loads anew from messages, as sums of floats drift."""
    link, switch = forest.link, forest.switch
    link[:] = 0.0
    switch[:] = 0.0
    forest.used[:] = 0
    for j in range(len(demand.server)):
        add(net, demand, forest, j, 1.0)
    return objective(net, demand, forest), max(link[busiest(link)], switch[busiest(switch)])


@inner()
def score(goal: int, link: Floats, switch: Floats, value: float, scale: float) -> float:
    """What a search compares."""
    if goal == UTILIZATION:
        return value
    most = max(link[busiest(link)], switch[busiest(switch)])
    norm = 0.0
    for a in range(len(link)):
        norm += (link[a] / most) ** _POWER
    for v in range(len(switch)):
        norm += (switch[v] / most) ** _POWER
    norm = most * norm ** (1.0 / _POWER)
    return norm if goal == CONGESTION else value * (1.0 + _TIE * min(1.0, scale / norm))


@kernel(f"({NET}, {DEMAND}, {FOREST}, i8, f8, f8[::1], f8, {PRICES})")
def set_prices(
    net: Net, demand: Demand, forest: Forest, j: int, sharpness: float, noise: Floats, opening: float, prices: Prices
) -> None:
    """Prices of a job that is not in the network: arcs and switches are the dearer, the busier they would be.

    ``noise`` is (m,), factors; ``opening`` is the price to begin, relative to a mean arc. A sharpness of 0 leaves the
    seconds that a message takes.
    """
    link, switch, link_s, switch_s = forest.link, forest.switch, net.link_s, net.switch_s
    size, slots, server = 1.0 if demand.goal == RATES else demand.bytes_[j], demand.slots[j], demand.server[j]
    most = 0.0
    for a in range(len(link)):
        most = max(most, link[a] + size * link_s[a])
    for v in range(len(switch)):
        most = max(most, switch[v] + size * switch_s[v])
    mean = 0.0
    for a in range(len(link)):
        time = size * link_s[a]
        # Idle arcs keep a price, so that routes are short, too.
        busy = 1.0 if sharpness == 0.0 else ((link[a] + time) / most) ** sharpness + 1e-6
        prices.arc[a] = time * busy * noise[a]
        mean += prices.arc[a] / len(link)
    for v in range(len(switch)):
        time = size * switch_s[v]
        busy = 1.0 if sharpness == 0.0 else ((switch[v] + time) / most) ** sharpness
        prices.ending[v] = 0.0 if demand.goal == UTILIZATION else time * busy
        free = net.slots[v] - forest.used[v] >= slots and v != server
        prices.opening[v] = opening * mean if free else np.inf


@kernel(f"({NET}, {DEMAND}, {RULES}, {FOREST}, i8, {PRICES}, f8[::1], f8)")
def route_job(
    net: Net, demand: Demand, rules: Rules, forest: Forest, j: int, prices: Prices, order: Floats, hub: float
) -> bool:
    """Give a job that is not in the network a tree, its workers in the order of random numbers; False: there is none.

    A ``hub`` of at least 0 first has a node aggregate that is free for it, by that part of all that are.
    """
    start, count = demand.first[j], demand.first[j + 1] - demand.first[j]
    ranks = stable_order(order[:count])
    node, hubs, size = -1, 0, 0
    if hub >= 0.0:
        free = 0
        for v in range(len(prices.opening)):
            free += prices.opening[v] < np.inf
        chosen = int(hub * free)
        for v in range(len(prices.opening)):
            if prices.opening[v] < np.inf:
                if chosen == 0:
                    node, hubs, size = v, 1, 1
                chosen -= 1
    queue = np.empty(count + 1, np.int64)
    queue[0] = node
    for place in range(count):
        worker = demand.workers[start + ranks[place]]
        if worker == node:
            hubs = 0
        else:
            queue[size] = worker
            size += 1
    left = rules.aggregators
    for job in range(len(demand.server)):
        for v in range(len(net.slots)):
            left -= forest.ended[job, v] > 0
    if not trees.grow(net, queue[:size], hubs, demand.server[j], prices, rules, left, tree_of(forest, j)):
        return False
    insert_job(net, demand, forest, j)
    return True


@inner()
def copy_job(source: Forest, j: int, target: Forest, place: int) -> None:
    """Copy the tree of a job and its counts to a place of a forest; loads are left."""
    senders = source.senders[j, 0]
    target.senders[place, 0] = senders
    for o in range(senders):
        target.length[place, o] = source.length[j, o]
        for i in range(source.length[j, o]):
            target.routes[place, o, i] = source.routes[j, o, i]
    for v in range(source.number.shape[1]):
        target.number[place, v] = source.number[j, v]
        target.aggregates[place, v] = source.aggregates[j, v]
        target.ended[place, v] = source.ended[j, v]
    for a in range(source.messages.shape[1]):
        target.messages[place, a] = source.messages[j, a]
