"""Shifts of the accelerators of a network that keep all its links.

Accelerators are numbered by digits, as boxes and the places in them or the coordinates of a torus are. To add one to a
digit of all of them at once may take each link to one of the same bandwidth, and then all such shifts do. What they
take an accelerator or a link to is its orbit.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ddlopt.models.remembered import remembered
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shifts:
    """Shifts that keep all links.

    Parameters
    ----------
    images : (shifts, nodes) int array
        Where each shift takes each node; the first one leaves them where they are.
    roots : tuple of int
        An accelerator of each orbit.
    orbits : mapping
        Of each link, a link that stands for all those to which shifts take it.
    """

    images: Ints
    roots: tuple[int, ...]
    orbits: dict[Arc, Arc]


@remembered
def shifts(instance: CollectiveInstance) -> Shifts | None:
    """The shifts of the numbering by digits that has the most of them, then the fewest digits; None if there is none.

    A digit is told by its size and by what it counts, the product of the sizes of all later ones.
    """
    count = instance.accelerators
    divisors = [each for each in range(1, count + 1) if count % each == 0]
    kept: dict[tuple[int, int], list[int] | None] = {}
    best: dict[int, tuple[int, int, list[tuple[int, int]]]] = {count: (1, 0, [])}
    for after in divisors[-2::-1]:
        found = []
        for most in (each for each in divisors if each > after and each % after == 0):
            digit = (after, most // after)
            kept[digit] = _shift(instance, *digit)
            many, digits, rest = best[most]
            found.append((many * (digit[1] if kept[digit] else 1), digits - 1, [digit, *rest]))
        best[after] = max(found, key=lambda each: each[:2])
    steps = [(digit, kept[digit]) for digit in best[1][2]]
    return _all(instance, [(*digit, step) for digit, step in steps if step]) if best[1][0] > 1 else None


def _shift(instance: CollectiveInstance, after: int, size: int) -> list[int] | None:
    """Where each node goes when one is added to a digit; None where that does not keep the links."""
    count, links = instance.accelerators, instance.bandwidth
    image = [v + after if v // after % size < size - 1 else v - after * (size - 1) for v in range(count)]
    known = dict(enumerate(image))
    if any(links.get((known[i], known[j])) != each for (i, j), each in links.items() if i < count and j < count):
        return None
    _switches(instance, known)
    if len(known) != instance.nodes or len(set(known.values())) != instance.nodes:
        return None
    if any(links.get((known[i], known[j])) != each for (i, j), each in links.items()):
        return None
    return [known[node] for node in range(instance.nodes)]


def _switches(instance: CollectiveInstance, known: dict[int, int]) -> None:
    """Where switches go: each to one whose links to nodes with known places are those of its own, turned."""
    left, free = set(range(instance.accelerators, instance.nodes)), set(range(instance.accelerators, instance.nodes))
    while left:
        come_from = {after: before for before, after in known.items()}
        there: dict[Any, list[int]] = defaultdict(list)
        for switch in sorted(free):
            there[_seen(instance, switch, {node: node for node in come_from})].append(switch)
        placed = {}
        for switch in sorted(left):
            seen = _seen(instance, switch, known)
            if seen and there[seen]:
                placed[switch] = there[seen].pop(0)
        if not placed:
            return
        known |= placed
        left -= placed.keys()
        free -= set(placed.values())


def _seen(instance: CollectiveInstance, switch: int, places: Mapping[int, int]) -> frozenset[tuple[int, int, float]]:
    """Links of a switch to nodes with places, told by these."""
    out = [(0, places[j], instance.bandwidth[switch, j]) for j in instance.heads[switch] if j in places]
    into = [(1, places[i], instance.bandwidth[i, switch]) for i in instance.tails[switch] if i in places]
    return frozenset([*out, *into])


def _all(instance: CollectiveInstance, digits: list[tuple[int, int, list[int]]]) -> Shifts:
    """All that adding to these digits does: what a digit counts, its size, and where one more takes each node."""
    links = list(instance.bandwidth)
    place = {link: number for number, link in enumerate(links)}
    images, roots, ends = np.arange(instance.nodes)[None], np.arange(instance.accelerators), []
    for after, size, step in digits:
        ends.append([place[step[i], step[j]] for i, j in links])
        roots = roots[roots // after % size == 0]
        rows = [images]
        for _ in range(size - 1):
            rows.append(np.array(step)[rows[-1]])
        images = np.concatenate(rows)
    joined = (np.ones(len(ends) * len(links)), (np.tile(np.arange(len(links)), len(ends)), np.ravel(ends)))
    _, orbit = connected_components(csr_array(joined, shape=(len(links),) * 2), directed=False)
    first: dict[int, Arc] = {}
    for link, number in zip(links, orbit.tolist(), strict=True):
        first.setdefault(number, link)
    orbits = {link: first[number] for link, number in zip(links, orbit.tolist(), strict=True)}
    return Shifts(images, tuple(roots.tolist()), orbits)
