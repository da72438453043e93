"""Local search over links that some translations keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from ddlopt.frontier.topology.symmetric_rings.orbit_program import OrbitProgram
from ddlopt.frontier.topology.symmetric_rings.orbits import Orbits
from ddlopt.frontier.topology.symmetric_rings.sight import Ints
from ddlopt.solvers.heuristic import Clock

Choice = tuple[tuple[int, int], ...]
"""Orbit and element of every link."""

# Rounds of columns and kicks of each ring: of a trial, and of the best links.
TRIAL, FINAL = (8, 5), (60, 50)


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    hopeless: float = 1.0005
    """Load, in that of the links before, above which a trial ends: few that begin above it end below."""
    near: float = 1.01
    """Load, in that of the best links, up to which others are judged more finely, and begin the next ascent."""
    failures: int = 25
    """Exchanges of a link in a row that do not help, for each orbit, after which others are drawn."""
    kicks: int = 4
    """Exchanges at most that are made at once where an ascent begins at links found before."""
    patience: int = 8
    """Ascents in a row that begin so and find nothing better, after which links are drawn anew."""


_EFFORT = Effort()


class OrbitSearch:
    """Links of one kind of symmetry: drawn, and exchanged one by one for as long as that helps.

    An ascent begins at the best links found, a few of them exchanged, and after some in vain at links drawn at random.

    Parameters
    ----------
    orbits : Orbits
        Two at least, and links are one-way.
    rng : numpy.random.Generator
    clock : Clock
    enough : float
        Load at which there is nothing left to search for.
    """

    def __init__(self, orbits: Orbits, rng: np.random.Generator, clock: Clock, enough: float) -> None:
        self.orbits, self.rng, self.clock, self.enough = orbits, rng, clock, enough
        self.judged = 0
        pools = [family.subgroup for family in orbits.sight.families]
        pools += [np.flatnonzero(orbits.sight.offset_bytes > 0), np.arange(orbits.group.order)]
        pools = [pool[pool > 0] for pool in pools]
        numbers = range(len(orbits.first))
        self.pools = [[[p for pool in pools if len(p := pool[t[pool] == b])] for b in numbers] for t in orbits.target]
        self._begin: Choice | None = None
        self._least, self._vain = np.inf, 0

    def ascent(self, trials: int) -> tuple[OrbitProgram | None, float]:
        """Links, exchanged until none helps; their program and its load."""
        self.judged = failures = 0
        chosen = self._begun()
        load, program = self._judged(chosen, np.inf)
        patience = _EFFORT.failures * len(self.orbits.first)
        while failures < patience and self.judged < trials and not self.clock.expired and load > self.enough:
            found, candidate = self._judged(other := self._exchanged(chosen), load * _EFFORT.hopeless)
            failures = failures + 1 if not found < load else 0
            if found <= load:
                chosen, load, program = other, found, candidate
        near = load <= self._least * _EFFORT.near
        self._vain = 0 if load < self._least else self._vain + 1
        if load <= self._least:
            self._begin, self._least = chosen, load
        if program is not None and np.isfinite(load) and near and load > self.enough:
            load = min(load, program.solve(*FINAL, self.enough, np.inf))
        return program, load

    def _begun(self) -> Choice:
        """Links to begin with."""
        if self._begin is None or self._vain > _EFFORT.patience:
            self._begin, self._least, self._vain = None, np.inf, 0
            return self._drawn()
        chosen = self._begin
        for _ in range(int(self.rng.integers(1, _EFFORT.kicks))):
            chosen = self._exchanged(chosen)
        return chosen

    def _drawn(self) -> Choice:
        """Links at random, as many into every orbit as out of it; none where there are no such."""
        degree, orbits = self.orbits.sight.instance.degree, len(self.orbits.first)
        chosen: list[tuple[int, int]] = []
        for _ in range(_EFFORT.failures * degree):
            ends = self.rng.permutation(orbits).tolist()
            links = [(a, element) for a, b in enumerate(ends) if (element := self._element(a, b)) is not None]
            if len(links) == orbits:
                chosen += links
            if len(chosen) == degree * orbits:
                return tuple(chosen)
        return ()

    def _exchanged(self, chosen: Choice) -> Choice:
        """One link with another end in the same orbit, or two that exchange the orbits of their ends."""
        links, target = list(chosen), self.orbits.target
        for _ in range(_EFFORT.failures if links else 0):
            i, j = self.rng.integers(len(links), size=2).tolist()
            (a, g), (b, h) = links[i], links[j]
            if i == j or self.rng.random() < 0.5:
                other = self._element(a, int(target[a, g]))
                if other is not None and other != g:
                    links[i] = a, other
                    break
            elif a != b and target[a, g] != target[b, h]:
                one, two = self._element(a, int(target[b, h])), self._element(b, int(target[a, g]))
                if one is not None and two is not None:
                    links[i], links[j] = (a, one), (b, two)
                    break
        return tuple(links)

    def _element(self, orbit: int, target: int) -> int | None:
        """One of a pool at random that leads from an orbit to another, if there is any."""
        pools = self.pools[orbit][target]
        if not pools:
            return None
        pool: Ints = pools[int(self.rng.integers(len(pools)))]
        return int(pool[int(self.rng.integers(len(pool)))])

    def _judged(self, chosen: Choice, hopeless: float) -> tuple[float, OrbitProgram | None]:
        self.judged += 1
        if not chosen or (len(set(chosen)) < len(chosen) and not self.orbits.sight.instance.parallel_links):
            return np.inf, None
        program = OrbitProgram(self.orbits, np.array(chosen, dtype=np.int64))
        return program.solve(*TRIAL, self.enough, hopeless), program


def best_orbits(searches: Sequence[OrbitSearch], trials: int) -> tuple[OrbitProgram | None, float, int]:
    """Ascents of several searches in turn: the best program, its load, and how many were judged."""
    best, least, judged = None, np.inf, 0
    for search in cycle(searches):
        if judged >= trials or least <= search.enough or search.clock.expired:
            break
        program, load = search.ascent(trials - judged)
        judged += search.judged
        if load < least:
            best, least = program, load
    return best, least, judged
