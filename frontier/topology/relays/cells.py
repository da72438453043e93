"""How servers of a block share out their links, and what rings that leave the block lose by it."""

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from ddlopt.models.tolerances import ROUNDING

Pair = tuple[int, int]


class Cell(NamedTuple):
    """What rings that leave a block have of one of its servers, or of two.

    Parameters
    ----------
    own : tuple of float
        For each of them the hop bytes of groups that have it alone of the block.
    shared : float
        Hop bytes of groups that have both.
    """

    own: tuple[float, ...]
    shared: float


class Ports(NamedTuple):
    """Links of a cell's servers that do not lead to a server of their block, or come from one.

    Parameters
    ----------
    cost : float
        Bytes that take a hop more: of rings, and half a piece of traffic for each of these links.
    outward, inward : tuple of int
        Links of each server.
    elsewhere, from_elsewhere : tuple of int
        How many of them, 0 or 1, do not lead to members of the cell's groups, or come from them.
    arcs : tuple of int
        Of two servers: whether the first has a link to the second, and the second to the first.
    """

    cost: float
    outward: tuple[int, ...]
    inward: tuple[int, ...]
    elsewhere: tuple[int, ...]
    from_elsewhere: tuple[int, ...]
    arcs: tuple[int, ...]


def least_cost(cell: Cell, degree: int, load: float, piece: float) -> float:
    """What the cell costs at least; links elsewhere are of no use for that."""
    return min(ports.cost for ports in _ports(cell, degree, load, piece, math.inf, elsewhere=False))


def ports_of(cell: Cell, degree: int, load: float, piece: float, most: float) -> list[Ports]:
    """All that cost at most ``most``, cheapest first, but for those whose arcs are needless.

    Parameters
    ----------
    cell : Cell
    degree : int
        Links of each server, in each direction.
    load : float
        Most bytes on a link.
    piece : float
        Bytes of traffic between any two servers of the block.
    most : float
    """
    kept: dict[tuple[tuple[int, ...], ...], list[Ports]] = {}
    for ports in _ports(cell, degree, load, piece, most, elsewhere=True):
        alike = kept.setdefault(ports[1:5], [])
        if not any(_as_good(each, ports) for each in alike):
            alike.append(ports)
    return sorted(ports for alike in kept.values() for ports in alike)


def _ports(cell: Cell, degree: int, load: float, piece: float, most: float, elsewhere: bool) -> Iterator[Ports]:
    """All of them, those with few arcs first."""
    size = len(cell.own)
    links = list(product(range(degree + 1), repeat=size))
    some = list(product((0, 1) if elsewhere else (0,), repeat=size))
    for arcs in sorted(product((0, 1), repeat=size * (size - 1)), key=sum):
        for outward, inward in product(links, repeat=2):
            beside = piece * (sum(outward) + sum(inward)) / 2
            if beside > most or not _fit(outward, inward, arcs, degree):
                continue
            for out, into in product(some, repeat=2):
                useful = tuple(x - o for x, o in zip(outward, out, strict=True))
                arriving = tuple(y - i for y, i in zip(inward, into, strict=True))
                if min(useful) < 0 or min(arriving) < 0:
                    continue
                cost = beside + least_detours(cell, useful, arriving, arcs, load)
                if cost <= most:
                    yield Ports(cost, outward, inward, out, into, arcs)


def _fit(outward: tuple[int, ...], inward: tuple[int, ...], arcs: tuple[int, ...], degree: int) -> bool:
    """Whether servers have ports for their arcs."""
    return not arcs or (
        max(outward[0] + arcs[0], outward[1] + arcs[1], inward[1] + arcs[0], inward[0] + arcs[1]) <= degree
    )


def _as_good(one: Ports, other: Ports) -> bool:
    """Whether ``one``, with the same links, costs no more; it may have fewer arcs, as others are free."""
    fewer = all(a <= b for a, b in zip(one.arcs, other.arcs, strict=True))
    return fewer and one.cost <= other.cost * (1 + ROUNDING)


def least_detours(
    cell: Cell, outward: tuple[int, ...], inward: tuple[int, ...], arcs: tuple[int, ...], load: float
) -> float:
    """Bytes of the cell's rings on their way out of and into the block that find no link, half of either, at least.

    A ring of a group that has both servers leads from one to the other at most once, as it has other members. With
    shares t and s of rings that lead from the first to the second, and back, the first sends 1 - t of them out of the
    block, and receives 1 - s. The loss is a convex function of t, and one of s, both linear between few points.
    """
    if len(cell.own) == 1:
        return max(0.0, cell.own[0] - outward[0] * load) / 2 + max(0.0, cell.own[0] - inward[0] * load) / 2
    (first, second), ring = cell.own, cell.shared
    ways = (
        (first - outward[0] * load, second - inward[1] * load, 0.0 if arcs[0] else ring),
        (second - outward[1] * load, first - inward[0] * load, 0.0 if arcs[1] else ring),
    )
    points = [list(_kinks(short, entering, ring)) for short, entering, _ in ways]
    tried = [points[0] + [1 - p for p in points[1]], points[1] + [1 - p for p in points[0]]]
    return min(
        _lost(ways[0], t, ring) + _lost(ways[1], s, ring)
        for t, s in product(*tried)
        if min(t, s) >= 0 and t + s <= 1 + ROUNDING
    )


def _kinks(short: float, entering: float, ring: float) -> Iterator[float]:
    """Shares at which the loss bends."""
    yield from (0.0, 1.0)
    if ring:
        yield from (p for p in (1 + short / ring, 1 + entering / ring) if 0 < p < 1)


def _lost(way: tuple[float, float, float], share: float, ring: float) -> float:
    short, entering, inside = way
    leaving = (1 - share) * ring
    return max(0.0, short + leaving) / 2 + max(0.0, entering + leaving) / 2 + inside * share
