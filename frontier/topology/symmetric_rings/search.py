"""Local search over the generators of a Cayley graph, whatever judges them."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from ddlopt.frontier.topology.symmetric_rings.sight import Ints
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.solvers.heuristic import Clock

# Rounds of columns and kicks of each ring: of a trial, and of the best generators.
_TRIAL, FINAL = (8, 5), (60, 50)
_HOPELESS = 1.1
"""Value, in that of the generators before, above which a trial ends."""
_FAILURES = 25
"""Exchanges of a generator in a row that do not help, after which others are drawn."""


class Program(Protocol):
    """What judges generators."""

    def solve(self, rounds: int, kicks: int, enough: float, hopeless: float) -> float:
        """A value, the less the better, as of :meth:`.Quotient.solve`."""
        ...


class Ports(NamedTuple):
    """Of a server: how many, whether links are duplex, and whether several may lead to the same server."""

    degree: int
    duplex: bool
    parallel: bool


P = TypeVar("P", bound=Program)


class GeneratorSearch(Generic[P]):
    """Exchanges of single generators of one group.

    A choice is a tuple of elements, each of which takes a port, or two with duplex links unless it is its own inverse.
    The first one are the unit vectors, in turn.

    Parameters
    ----------
    group : AbelianGroup
    subgroups : sequence of int arrays
        That generators are drawn from, besides the whole group.
    ports : Ports
    program : callable
        Of different generators and the links of each at a server.
    rng : numpy.random.Generator
    clock : Clock
    enough : float
        A value at which there is nothing left to search for.
    """

    def __init__(
        self,
        group: AbelianGroup,
        subgroups: Sequence[Ints],
        ports: Ports,
        program: Callable[[Ints, Ints], P],
        rng: np.random.Generator,
        clock: Clock,
        enough: float,
    ) -> None:
        self.group, self.ports, self.program, self.rng, self.clock = group, ports, program, rng, clock
        self.enough, self.judged = enough, 0
        everybody = np.arange(group.order)
        inverse = group.negate(everybody)
        self.taken = np.where(ports.duplex & (inverse != everybody), 2, 1)
        # A duplex link is in a matching, so that its cycle is even.
        usable = everybody > 0 if not ports.duplex else (everybody > 0) & (group.element_orders % 2 == 0)
        self.pools = [pool[usable[pool]] for pool in (*subgroups, everybody) if usable[pool].any()]
        units = np.eye(len(group.invariants), dtype=np.int64)[::-1]
        self._first = [x for x in group.index(units).tolist() if usable[x]]

    def ascent(self, trials: int) -> tuple[P | None, float]:
        """Generators drawn, and exchanged one by one until none helps; their program and its value."""
        self.judged = failures = 0
        chosen = self._drawn()
        value, program = self._judged(chosen, np.inf)
        while failures < _FAILURES and self.judged < trials and not self.clock.expired and value > self.enough:
            other = self._exchanged(chosen)
            found, candidate = self._judged(other, value * _HOPELESS)
            failures += 1
            if found < value:
                chosen, value, program, failures = other, found, candidate, 0
        if program is not None and np.isfinite(value) and value > self.enough:
            value = min(value, program.solve(*FINAL, self.enough, np.inf))
        return program, value

    def _drawn(self) -> tuple[int, ...]:
        chosen: list[int] = []
        left, units = self.ports.degree, self._first
        self._first = []
        while left > 0:
            element = units[len(chosen) % len(units)] if units else self._element(left)
            if element is None or self.taken[element] > left:
                break
            chosen.append(element)
            left -= int(self.taken[element])
        return tuple(chosen)

    def _exchanged(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        if not chosen:
            return self._drawn()
        place = int(self.rng.integers(len(chosen)))
        ports = int(self.taken[chosen[place]])
        other = self._element(ports, ports)
        return chosen if other is None else (*chosen[:place], other, *chosen[place + 1 :])

    def _element(self, most_ports: int, least_ports: int = 1) -> int | None:
        """One of a pool at random, if it has any with that number of ports."""
        for _ in range(_FAILURES):
            pool = self.pools[int(self.rng.integers(len(self.pools)))]
            element = int(pool[int(self.rng.integers(len(pool)))])
            if least_ports <= self.taken[element] <= most_ports:
                return element
        return None

    def _judged(self, chosen: tuple[int, ...], hopeless: float) -> tuple[float, P | None]:
        self.judged += 1
        elements = list(chosen)
        if self.ports.duplex:
            elements += [int(self.group.negate(g)) for g in chosen if self.taken[g] == 2]
        generators, counts = np.unique(np.array(elements, dtype=np.int64), return_counts=True)
        if not len(generators) or (counts.max() > 1 and not self.ports.parallel):
            return np.inf, None
        program = self.program(generators, counts)
        return program.solve(*_TRIAL, self.enough, hopeless), program


def best_of(searches: Sequence[GeneratorSearch[P]], trials: int) -> tuple[P | None, float, int]:
    """Ascents of several searches in turn: the best program, its value, and how many were judged."""
    turns = [search for search in searches if search.pools]
    best, least, judged = None, np.inf, 0
    while turns and judged < trials and least > turns[0].enough and not turns[0].clock.expired:
        turns.append(turns.pop(0))
        program, value = turns[-1].ascent(trials - judged)
        judged += turns[-1].judged
        if value < least:
            best, least = program, value
    return best, least, judged
