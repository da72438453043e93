r"""Regions of plans: what a proof splits, and what holds for the probabilities in each; in rational numbers.

Variables are probabilities. Each edge has one, its owner:

* *matchings are given*: one for each matching;
* *levels*, where all edges take as long and have no budgets of their own: let the matchings
  of a plan be sorted, :math:`P_1 \ge P_2 \ge \dots`. An edge that could be in an earlier matching may as well be: its
  probability grows, and with :math:`p_e w_e` as it was the second moment falls. So each edge that is not at level j or
  before meets one that is at level j. A region says of each edge at which level it is, or from which one on it may be;
  undecided edges have variables of their own;
* *edges* otherwise: one for each edge, whose matchings are left out; a relaxation.

At a node of the graph the edges are in different matchings, so their probabilities share the budget; and a matching
has at most half of the nodes as edges, so all probabilities of edges have that many budgets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeVar

from ddlopt.models.gossip.matchings.instance import MatchingsInstance


@dataclass(frozen=True)
class Region:
    """Plans that are left.

    Parameters
    ----------
    level : tuple of m int
        Of each edge, or the first one that it may have; without levels its variable.
    decided : tuple of m bool
        Whether that is its level.
    low, high : tuples of Fraction
        Of the probability of each level or variable.
    symmetric : bool
        Whether automorphisms of the graph map the plans of the region to plans of the region.
    """

    level: tuple[int, ...]
    decided: tuple[bool, ...]
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    symmetric: bool = False


class Polytope(NamedTuple):
    """Where the probabilities of a region are: a box and rows, each at most its limit."""

    owners: tuple[int, ...]
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    rows: tuple[tuple[Mapping[int, Fraction], Fraction], ...]


class Regions:
    """The regions of an instance.

    Parameters
    ----------
    instance : MatchingsInstance
    """

    def __init__(self, instance: MatchingsInstance) -> None:
        self.instance, self.edges = instance, instance.network.edges
        self.single = instance.activation == "single"
        self.times = tuple(map(Fraction, instance.edge_times))
        self.budget = Fraction(instance.budget)
        self.most = tuple(map(Fraction, instance.edge_budgets or (1,) * len(self.edges)))
        self.given = tuple(own for own in instance.matchings if own)
        equal = not instance.edge_budgets and len(set(self.times)) == 1
        self.leveled = not self.given and equal
        self.rounds = min(self.budget / self.times[0], Fraction(1)) if self.single else self.budget / self.times[0]
        self.touching = tuple(
            tuple(e for e, ends in enumerate(self.edges) if node in ends) for node in range(instance.size)
        )
        self.adjacent = tuple(
            frozenset(f for node in ends for f in self.touching[node] if f != e) for e, ends in enumerate(self.edges)
        )

    @cached_property
    def root(self) -> Region:
        """All plans."""
        count, one = len(self.edges), Fraction(1)
        if self.leveled:
            most = min(one, self.rounds)
            return Region((0,) * count, (False,) * count, (0 * one,), (most,), symmetric=True)
        groups = self.given or tuple((edge,) for edge in range(count))
        level = [0] * count
        for number, own in enumerate(groups):
            for edge in own:
                level[edge] = number
        high = tuple(
            min(min(self.most[e] for e in own), self.budget / max(self.times[e] for e in own), one) for own in groups
        )
        return Region(tuple(level), (True,) * count, (0 * one,) * len(groups), high)

    def split(self, region: Region, variable: int, point: Fraction) -> tuple[Region | None, Region | None]:
        """Plans whose probability is at most ``point``, and at least."""
        below = replace(region, high=_changed(region.high, variable, point), symmetric=False)
        above = replace(region, low=_changed(region.low, variable, point), symmetric=False)
        return self._tightened(below), self._tightened(above)

    def at_level(self, region: Region, edge: int) -> Region | None:
        """Plans in which the edge is at the first level that it may have."""
        return self._propagated(replace(region, decided=_changed(region.decided, edge, True), symmetric=False))

    def later(self, region: Region, edges: Iterable[int], symmetric: bool = False) -> Region | None:
        """Plans in which none of the edges is; ``symmetric`` if they are those that automorphisms exchange."""
        level = list(region.level)
        for edge in edges:
            level[edge] += 1
        return self._propagated(replace(region, level=tuple(level), symmetric=region.symmetric and symmetric))

    def _propagated(self, region: Region) -> Region | None:
        """Levels that others leave; None where an edge is later than it need be."""
        level, decided = list(region.level), list(region.decided)
        changed = True
        while changed:
            changed = False
            for edge in range(len(level)):
                if not decided[edge]:
                    taken = {level[other] for other in self.adjacent[edge] if decided[other]}
                    while level[edge] in taken:
                        level[edge] += 1
                        changed = True
                for before in range(level[edge]):
                    able = [other for other in self.adjacent[edge] if level[other] <= before]
                    if any(decided[other] and level[other] == before for other in able):
                        continue
                    able = [other for other in able if not decided[other]]
                    if not able:
                        return None
                    if len(able) == 1 and level[able[0]] == before:
                        decided[able[0]] = changed = True
        count = max(level) + 1
        low = region.low + (Fraction(0),) * (count - len(region.low))
        high = region.high + (Fraction(1),) * (count - len(region.high))
        return self._tightened(replace(region, level=tuple(level), decided=tuple(decided), low=low, high=high))

    def _tightened(self, region: Region) -> Region | None:
        """Probabilities that order and budget leave; None where they leave none."""
        low, high = list(region.low), list(region.high)
        if self.leveled:
            budget = self.rounds
            for level in range(len(low) - 1, 0, -1):
                low[level - 1] = max(low[level - 1], low[level])
            for level in range(1, len(low)):
                high[level] = min(high[level], high[level - 1])
            others = sum(low)
            for level in range(len(low)):
                # Those before are as large as this one.
                after = sum(low[level + 1 :])
                high[level] = min(high[level], budget - others + low[level], (budget - after) / (level + 1))
        if any(least > most for least, most in zip(low, high, strict=True)):
            return None
        return replace(region, low=tuple(low), high=tuple(high))

    def polytope(self, region: Region) -> Polytope:
        """What holds for the probabilities of a region."""
        if self.leveled:
            return self._of_levels(region)
        one, rows = Fraction(1), list[tuple[Mapping[int, Fraction], Fraction]]()
        count, least = len(region.low), min(self.times)
        if self.given:
            rows.append((
                {j: max(self.times[e] for e in own) for j, own in enumerate(self.given)}, self.budget
            ))  # fmt: skip
            if self.single:
                rows.append((dict.fromkeys(range(count), one), one))
            return Polytope(region.level, region.low, region.high, tuple(rows))
        for own in self.touching:
            rows.append(({e: self.times[e] for e in own}, self.budget))
            if self.single:
                rows.append((dict.fromkeys(own, one), one))
        active = self.budget / least
        half = (self.instance.size // 2) * (min(one, active) if self.single else active)
        rows.append((dict.fromkeys(range(count), one), half))
        return Polytope(region.level, region.low, region.high, tuple(rows))

    def _of_levels(self, region: Region) -> Polytope:
        budget, levels, one = self.rounds, len(region.low), Fraction(1)
        free = [e for e in range(len(self.edges)) if not region.decided[e]]
        own = {e: levels + place for place, e in enumerate(free)}
        owners = tuple(own.get(e, region.level[e]) for e in range(len(self.edges)))
        low = region.low + (Fraction(0),) * len(free)
        high = region.high + tuple(region.high[region.level[e]] for e in free)
        rows: list[tuple[Mapping[int, Fraction], Fraction]] = []
        rows += [({level: one, level - 1: -one}, Fraction(0)) for level in range(1, levels)]
        rows += [({own[e]: one, region.level[e]: -one}, Fraction(0)) for e in free]
        rows.append((dict.fromkeys(range(levels), one), budget))
        for node in self.touching:
            undecided = [e for e in node if e in own]
            if undecided:
                # Levels of decided edges here, and those that no undecided one can have
                others = {region.level[e] for e in node if e not in own}
                others |= set(range(min(region.level[e] for e in undecided)))
                rows.append((dict.fromkeys((*others, *(own[e] for e in undecided)), one), budget))
        sizes = dict[int, Fraction]()
        for owner in owners:
            sizes[owner] = sizes.get(owner, Fraction(0)) + 1
        rows.append((sizes, (self.instance.size // 2) * budget))
        return Polytope(owners, low, high, tuple(rows))


_T = TypeVar("_T")


def _changed(values: tuple[_T, ...], place: int, value: _T) -> tuple[_T, ...]:
    return (*values[:place], value, *values[place + 1 :])
