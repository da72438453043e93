"""Blink's packing of trees out of one root, as it is published: many by multiplicative weights, then few of these.

1. Multiplicative weights (its section 3.2): the least tree under prices of links, as much on it as its narrowest link
   carries, links dearer by that, again and again; that is a packing near the optimum, of very many trees.
2. An integer program takes as many units of these trees as fit, a unit being the bandwidth of the slowest link. Where
   that is not within 5 % of the packing before, units are halved, and so on. (The paper relaxes its weights of 0 and 1
   "to take fractional values" without saying which; links that are far too slow to matter are no unit here.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.cuts import broadcast_cut, capacities
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path, Tree
from ddlopt.models.topology.collective.paths import loads
from ddlopt.solvers.topology.collective.spanning import least_spanning, over_switches, path_of


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    step: float = 0.1
    """By which a link that a tree fills gets dearer: smaller steps pack better and take longer."""
    near: float = 0.99
    """Of the narrowest cut, which no packing passes, from which on a packing is good enough."""
    halvings: int = 6
    """Of a tree's unit: beyond, the best so far is taken."""
    most_units: int = 256
    """In which the packing is counted at first, at most."""
    program_s: float = 20.0
    """For an integer program; what it has found by then is taken."""


_EFFORT = Effort()

_WITHIN = Fraction(19, 20)
"""Of the packing by multiplicative weights, that few trees have to carry (the paper's 5 %)."""

Paths = tuple[Path, ...]


def blink_trees(instance: CollectiveInstance, expired: Callable[[], bool]) -> list[Tree]:
    """The trees of a broadcast.

    Raises
    ------
    NoSolutionError
        If the time is up before trees are found.
    """
    packing = _weighted(instance, expired)
    rate, trees, network = sum(packing.values()), list(packing), capacities(instance)
    unit, best, most = max(min(network.values()), Fraction(rate) / _EFFORT.most_units), dict[Paths, int](), Fraction(0)
    for _ in range(_EFFORT.halvings):
        found = _few(trees, {link: int(each / unit) for link, each in network.items()})
        if sum(found.values()) * unit > most:
            best, most = found, sum(found.values()) * unit
        if most >= _WITHIN * Fraction(rate) or (best and expired()):
            break
        unit /= 2
    total = sum(best.values())
    if not total:
        raise NoSolutionError("no trees were found within the time")
    return [
        Tree(share=str(Fraction(each, total)), root=instance.root or 0, spread=paths) for paths, each in best.items()
    ]


def _weighted(instance: CollectiveInstance, expired: Callable[[], bool]) -> dict[Paths, float]:
    """Trees and bytes per second on each, by multiplicative weights (Garg and Könemann), scaled down to what fits."""
    root, network = instance.root or 0, instance.bandwidth
    place = {link: number for number, link in enumerate(network)}
    capacity, most = np.array(list(network.values())), float(broadcast_cut(instance).value)
    links = len(network)
    start = (1 + _EFFORT.step) * ((1 + _EFFORT.step) * links) ** (-1 / _EFFORT.step)
    prices, carried = start / capacity, np.zeros(links)
    found: dict[Paths, float] = {}
    while prices @ capacity < 1:
        costs, before = over_switches(instance, dict(zip(network, prices.tolist(), strict=True)))
        paths = tuple(
            path_of(instance, before, near, node)
            for node, near in enumerate(least_spanning(costs, root))
            if node != root
        )
        load = np.zeros(links)
        for link, times in loads(paths).items():
            load[place[link]] = times
        amount = float((capacity[load > 0] / load[load > 0]).min())
        found[paths] = found.get(paths, 0.0) + amount
        carried += amount * load
        prices *= 1 + _EFFORT.step * amount * load / capacity
        over = float((carried / capacity).max())
        if sum(found.values()) >= _EFFORT.near * most * over or expired():
            break
    return {paths: amount / over for paths, amount in found.items()}


def _few(trees: list[Paths], links: dict[Arc, int]) -> dict[Paths, int]:
    """As many units of trees as fit; none where the integer program finds none in time."""
    place = {link: number for number, link in enumerate(links)}
    entries = [
        (place[link], number, times) for number, paths in enumerate(trees) for link, times in loads(paths).items()
    ]
    rows, columns, values = zip(*entries, strict=True)
    used = csr_array((values, (rows, columns)), shape=(len(links), len(trees)))
    found = milp(
        -np.ones(len(trees)),
        constraints=LinearConstraint(used, ub=np.array(list(links.values()), dtype=np.float64)),
        integrality=np.ones(len(trees)),
        options={"time_limit": _EFFORT.program_s},
    )
    if found.x is None:
        return {}
    return {paths: round(each) for paths, each in zip(trees, found.x, strict=True) if round(each) > 0}
