"""A bound by all choices but those of embedding tables, of which there are too many ways to split each its own way."""

import math
from collections.abc import Iterator

import pyomo.environ as pyo

from ddlopt.frontier.codesign.classes import closed_parts_below
from ddlopt.frontier.codesign.joint.open_links import OpenPart, Options, links_of_block
from ddlopt.frontier.codesign.layer_tree import is_tree
from ddlopt.frontier.codesign.open_layers import (
    looks_alike,
    needs_of,
    open_layers,
    strategies_of_readers,
    tables_left_open,
    with_images,
)
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

Images = tuple[tuple[int, ...], ...]

_MOST_PARTS = 200_000
"""Ways to choose for some layers in the listing; a second or two."""
_MOST_SERVERS = 16
"""Programs with routes to more servers take minutes."""
_SIZES = (1, 2, 4)
"""Of blocks: one server's whole links take a second, and often are enough; those of four take up to a minute."""
_STEPS = 2
"""The distance to the target is taken in so many steps, each halved where it is too much."""
_LEAST_STEP = 1 / 64
"""Of the distance; a program for less gains less than it takes."""
_PROGRAM_S = 40.0
"""Seconds after which a program is given up."""
_FIRST = {"mip_max_improving_sols": 1}
"""Any solution says that the time is not refuted."""


class _Part:
    """One part, and how far it is to be raised."""

    def __init__(self, part: OpenPart) -> None:
        self.part, self.step_s = part, 0.0


def bound_by_open_parts(
    instance: CodesignInstance, target_s: float, seed: int, clock: Clock, known_s: float = 0.0
) -> float:
    """Seconds that no plan gets below, at most ``target_s``; 0 where there are too many choices, or no tables.

    ``known_s`` is a bound for all plans. Choices for all other layers (:func:`.closed_parts_below`) are raised one by
    one, the one of least bound first: if no links of a block of servers, or of all where blocks are not alike, serve it
    so fast with any strategies of the tables (:func:`.links_of_block`), that is its bound now.
    """
    tables = tables_of(instance)
    layers = tables_left_open(tables) if is_tree(instance) else ()
    if not layers or not instance.host_forwarding or instance.servers > _MOST_SERVERS:
        return 0.0
    blocks = _Blocks(instance)
    left: OpenNodes[_Part] = OpenNodes()
    for readers in strategies_of_readers(tables, layers):
        found = closed_parts_below(instance, layers, readers, target_s, _MOST_PARTS)
        if found is None or clock.expired:
            return 0.0
        options = Options(instance, open_layers(tables, layers, readers))
        for each in found:
            part = OpenPart(needs_of(tables, *each), options)
            least_s = part.least_s(target_s)
            if least_s < target_s:
                left.push(max(least_s, known_s), _Part(part))
            if clock.expired:
                return 0.0
    if not left:
        return target_s
    distance = target_s - left.least
    for first in left:
        first.step_s = distance / _STEPS
    while left:
        bound_s, lowest = left.first()
        level = min(target_s, bound_s + lowest.step_s)
        if lowest.step_s < distance * _LEAST_STEP or clock.expired:
            return bound_s
        if not blocks.refutes(lowest.part, level, seed, clock):
            lowest.step_s /= 2
        elif level < target_s:
            left.raise_first(level)
        else:
            left.pop()
    return target_s


class _Blocks:
    """Blocks of servers, and options of open layers with their images."""

    def __init__(self, instance: CodesignInstance) -> None:
        self.instance, self.tables = instance, tables_of(instance)
        self.blocks = [each for size in _SIZES for each in blocks_of_digits(instance.servers, size)]
        self.known: dict[tuple[Options, Images], Options | None] = {}

    def refutes(self, part: OpenPart, level_s: float, seed: int, clock: Clock) -> bool:
        """Whether no plan of the part takes at most so long."""
        for servers, options in self._blocks(part).items():
            model = links_of_block(OpenPart(part.chosen, options), level_s, servers)
            if model is None:
                return True
            if (found := infeasible(model, seed, clock, _PROGRAM_S)) or clock.expired:
                return found
        return False

    def _blocks(self, part: OpenPart) -> dict[tuple[int, ...], Options]:
        """Blocks with the fewest options that make all of them alike; where none are, all servers."""
        found: dict[tuple[int, ...], Options] = {}
        for servers, images in self.blocks:
            new, old = self._options(part, images), found.get(servers)
            if new is not None and (old is None or len(new.layers.choices) < len(old.layers.choices)):
                found[servers] = new
        return found or {tuple(range(self.instance.servers)): part.options}

    def _options(self, part: OpenPart, images: Images) -> Options | None:
        """With all images; None if they do not leave what is chosen as it is."""
        if not all(looks_alike(self.tables, part.chosen, image) for image in images):
            return None
        key = part.options, images
        if key not in self.known:
            layers = with_images(self.tables, part.options.layers, images)
            self.known[key] = None if layers is None else Options(self.instance, layers)
        return self.known[key]


def infeasible(model: pyo.ConcreteModel, seed: int, clock: Clock, most_s: float = math.inf) -> bool:
    """Whether a program has no solution; False also where that is not known in time."""
    seconds = min(most_s, max(clock.left_s, 1e-3))
    with clock.lending_ctrl_c():
        outcome = Highs(_FIRST).solve(model, Limits(None if math.isinf(seconds) else seconds), seed)
    clock.interrupted |= outcome.interrupted
    return outcome.status is Status.INFEASIBLE


def blocks_of_digits(n: int, size: int) -> list[tuple[tuple[int, ...], Images]]:
    """Blocks of some servers with permutations that together take them to all other blocks, each of these once.

    For n as a product of factors, a server is a number of as many digits, of these bases. A block has all servers whose
    last digits are the same, or all whose first are, and permutations turn one of these digits.
    """
    found: dict[tuple[tuple[int, ...], frozenset[tuple[int, ...]]], Images] = {}
    for bases in _factors(n):
        places = [math.prod(bases[:digit]) for digit in range(len(bases) + 1)]
        turns = [
            tuple(s - s % (place * base) + (s + place) % (place * base) for s in range(n))
            for place, base in zip(places, bases, strict=False)
        ]
        for digit, place in enumerate(places):
            if place == size:
                found.setdefault((tuple(range(size)), frozenset(turns[digit:])), tuple(turns[digit:]))
            if n // place == size:
                found.setdefault((tuple(range(0, n, place)), frozenset(turns[:digit])), tuple(turns[:digit]))
    return [(servers, images) for (servers, _), images in found.items()]


def _factors(n: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as a product in order, few factors first."""
    if n > 1:
        yield (n,)
    for first in range(2, n):
        if n % first == 0:
            yield from ((first, *rest) for rest in _factors(n // first))
