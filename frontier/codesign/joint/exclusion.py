"""Whether any links serve a load in time: programs with whole links out of one of many interchangeable blocks."""

import math
from collections.abc import Iterator

import pyomo.environ as pyo

from ddlopt.frontier.codesign.joint.open_links import OpenPart, Options, links_of_block
from ddlopt.frontier.codesign.open_layers import is_symmetric, with_images
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

Images = tuple[tuple[int, ...], ...]

_SIZES = (1, 2, 4)
"""Servers of a block: one server's whole links take a second, and often are enough; those of four up to a minute."""
_FIRST = {"mip_max_improving_sols": 1}
"""Any solution says that the time is not excluded."""


class Blocks:
    """Blocks of servers of an instance, and programs that exclude times by the whole links out of one of them.

    Parameters
    ----------
    instance : CodesignInstance
    """

    def __init__(self, instance: CodesignInstance) -> None:
        self.instance, self.tables = instance, tables_of(instance)
        self.blocks = [each for size in _SIZES for each in blocks_of_digits(instance.servers, size)]
        self._known: dict[tuple[Options, Images], Options | None] = {}

    def exclude(
        self, part: OpenPart, level_s: float, seed: int, clock: Clock, most_s: float = math.inf, all_too: bool = False
    ) -> bool:
        """Whether it is proven that no plan of the part takes at most ``level_s``.

        Parameters
        ----------
        part : OpenPart
        level_s : float
        seed : int
        clock : Clock
        most_s : float
            Seconds after which a program is given up.
        all_too : bool
            Ask for whole links of all servers after those of blocks; otherwise only where blocks are not symmetric.
        """
        programs = self._symmetric_blocks(part)
        if all_too or not programs:
            programs[tuple(range(self.instance.servers))] = part.options
        for servers, options in programs.items():
            model = links_of_block(OpenPart(part.chosen, options), level_s, servers)
            if model is None:
                return True
            if (found := infeasible(model, seed, clock, most_s)) or clock.expired:
                return found
        return False

    def _symmetric_blocks(self, part: OpenPart) -> dict[tuple[int, ...], Options]:
        """Blocks that permutations of the servers take to each other, with the fewest options closed under these."""
        found: dict[tuple[int, ...], Options] = {}
        for servers, images in self.blocks:
            new, old = self._options(part, images), found.get(servers)
            if new is not None and (old is None or len(new.layers.choices) < len(old.layers.choices)):
                found[servers] = new
        return found

    def _options(self, part: OpenPart, images: Images) -> Options | None:
        """The part's options with all images; None if these do not leave what is chosen as it is."""
        if not all(is_symmetric(self.tables, part.chosen, image) for image in images):
            return None
        key = part.options, images
        if key not in self._known:
            layers = with_images(self.tables, part.options.layers, images)
            self._known[key] = None if layers is None else Options(self.instance, layers)
        return self._known[key]


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
