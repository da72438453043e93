r"""Boxes of probabilities and levels of edges: what a branch and bound over plans of matchings splits.

Let the matchings of a plan be sorted by their probabilities, :math:`P_1 \ge P_2 \ge \dots`. Where all edges take as
long as each other, an edge that could be in an earlier matching may as well be: its probability grows, and the second
moment falls with it as long as :math:`p_e w_e` stays. So each edge that is not at level j or before meets one that is
at level j, and :math:`P_j \le B / j`. A node says of each edge at which level it is, or from which one on it may be.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from ddlopt.frontier.gossip.matchings.lifted_moments import loan_of
from ddlopt.frontier.gossip.matchings.relaxed_newton import Relaxed
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints
from ddlopt.models.gossip.weights.automorphisms import automorphisms
from ddlopt.models.tolerances import ROUNDING

# Boxes narrower than that have an inside all the same.
_WIDER = 1e-8
_ALIKE = 0.3
"""Part of the largest error from which on consequences count: on symmetric graphs errors hardly differ."""
_EDGES_FIRST = 0.05
"""Part of the error of a level from which on an edge is decided first: boxes that are split have no images."""
_NEAREST = 0.2
"""Part of a box that a split leaves to the smaller side at least."""


@dataclass(frozen=True, eq=False)
class Node:
    """Plans that are left.

    Parameters
    ----------
    level : (m,) array of int
        Of each edge, or the first one that it may have.
    decided : (m,) array of bool
        Whether that is its level.
    low, high : (K,) array
        Of the probability of each level.
    """

    level: Ints
    decided: npt.NDArray[np.bool_]
    low: Floats
    high: Floats


class Built(NamedTuple):
    """The convex problem of a node and a point strictly inside of its box."""

    box: RelaxedMoment
    inside: Floats


class Choice(NamedTuple):
    """What to split: an edge by its level, or the probability of a level at a point."""

    edge: int | None
    level: int = 0
    point: float = 0.0


class Branching:
    """The nodes of an instance.

    Parameters
    ----------
    instance : MatchingsInstance
        With independent matchings, or a single one at a time where all edges take as long as each other.
    """

    def __init__(self, instance: MatchingsInstance) -> None:
        self.instance = instance
        network = instance.network
        self.ends, self.count = network.ends, len(network.edges)
        times = np.array(instance.edge_times)
        self.most = np.array(instance.edge_budgets or (1.0,) * self.count)
        self.given = bool(instance.matchings)
        self.leveled = not self.given and not instance.edge_budgets and float(np.ptp(times)) == 0.0
        self.times, self.single = times, instance.activation == "single"
        # Matchings that are active in a round on average, where edges take equally long
        self.rounds = instance.budget / float(times[0])
        if self.single:
            self.rounds = min(1.0, self.rounds)
        touching = np.zeros((network.nodes, self.count), dtype=bool)
        touching[self.ends.T, np.arange(self.count)] = True
        self.touching = touching
        self.adjacent = touching.T.astype(int) @ touching.astype(int) == 1

    def whole(self) -> Node:
        """All plans."""
        budget = self.instance.budget
        if self.given:
            level = np.empty(self.count, dtype=np.int64)
            own = [list(matching) for matching in self.instance.matchings if matching]
            for number, matching in enumerate(own):
                level[matching] = number
            high = [min(float(self.most[m].min()), budget / float(self.times[m].max())) for m in own]
            return Node(level, np.ones(self.count, dtype=bool), np.zeros(len(own)), np.array(high))
        if not self.leveled:
            high = np.minimum(self.most, budget / self.times)
            every = np.arange(self.count)
            return Node(every, np.ones(self.count, dtype=bool), np.zeros(self.count), high)
        none, undecided = np.zeros(self.count, dtype=np.int64), np.zeros(self.count, dtype=bool)
        return Node(none, undecided, np.zeros(1), np.array([min(1.0, self.rounds)]))

    def roots(self) -> list[Node]:
        """Nodes that have all plans, but for symmetry."""
        whole = self.whole()
        if not self.leveled:
            return [whole]
        orbits = automorphisms(self.instance.network).edge_orbits
        found, left = list[Node](), whole
        for orbit in range(int(orbits.max()) + 1):
            members = np.flatnonzero(orbits == orbit)
            first = self._at_level(left, int(members[0]))
            if first is not None:
                found.append(first)
            for edge in members:
                after = self._later(left, int(edge))
                if after is None:
                    return found
                left = after
        return found

    def built(self, node: Node) -> Built | None:
        """The convex problem of a node; None if it has no plans."""
        if self.leveled:
            rows, limits, owners, low, high = self._leveled(node)
        else:
            rows, limits, owners, low, high = self._plain(node)
        left = linprog(
            np.append(np.zeros(len(low)), -1.0),
            A_ub=np.vstack([
                np.column_stack([rows, np.abs(rows).sum(axis=1)]),
                np.column_stack([-np.eye(len(low)), np.ones(len(low))]),
                np.column_stack([np.eye(len(low)), np.ones(len(low))]),
            ]),
            b_ub=np.concatenate([limits, -low, high]),
            bounds=[(None, None)] * len(low) + [(None, 1.0)],
        )  # fmt: skip
        if left.status != 0:
            return None
        room = float(left.x[-1])
        if room < -_WIDER:
            return None
        if room < _WIDER:
            low, high = np.maximum(0.0, low - 3.0 * _WIDER), np.minimum(1.0, high + 3.0 * _WIDER)
            limits = limits + 3.0 * _WIDER * np.abs(rows).sum(axis=1) + _WIDER
            wider = np.maximum(low + _WIDER, np.minimum(high - _WIDER, left.x[:-1]))
        else:
            wider = left.x[:-1]
        nodes = self.instance.size
        return Built(RelaxedMoment(nodes, self.ends, owners, low, high, sparse.csr_array(rows), limits), wider)

    def _plain(self, node: Node) -> tuple[Floats, Floats, Ints, Floats, Floats]:
        budget, count = self.instance.budget, len(node.low)
        if self.given:
            times = np.zeros(count)
            np.maximum.at(times, node.level, self.times)
            rows = np.vstack([times / budget, *([np.ones(count)] if self.single else [])])
            return rows, np.ones(len(rows)), node.level, node.low, node.high
        active = budget / float(self.times.min())
        half = (self.instance.size // 2) * (min(1.0, active) if self.single else active)
        rows = np.vstack([np.where(self.touching, self.times, 0.0) / budget, np.full((1, count), 1.0 / half)])
        if self.single:
            rows = np.vstack([rows, self.touching.astype(float)])
        return rows, np.ones(len(rows)), node.level, node.low, node.high

    def _leveled(self, node: Node) -> tuple[Floats, Floats, Ints, Floats, Floats]:
        budget, levels = self.rounds, len(node.low)
        free = np.flatnonzero(~node.decided)
        owners = node.level.copy()
        owners[free] = levels + np.arange(len(free))
        count = levels + len(free)
        low, high = np.zeros(count), np.ones(count)
        low[:levels], high[:levels] = node.low, node.high
        high[levels:] = node.high[node.level[free]]
        rows, limits = list[Floats](), list[float]()

        def row(limit: float, *entries: tuple[int, float]) -> None:
            found = np.zeros(count)
            for place, value in entries:
                found[place] += value
            rows.append(found)
            limits.append(limit)

        for level in range(1, levels):
            row(0.0, (level, 1.0), (level - 1, -1.0))
        for place, edge in enumerate(free):
            row(0.0, (levels + place, 1.0), (int(node.level[edge]), -1.0))
        row(budget, *((level, 1.0) for level in range(levels)))
        for at in range(self.instance.size):
            own = np.flatnonzero(self.touching[at] & ~node.decided)
            if not len(own):
                continue
            used = set(node.level[self.touching[at] & node.decided].tolist())
            first = int(node.level[own].min())
            # A level that no free edge here can have counts too.
            used |= set(range(first))
            row(budget, *((level, 1.0) for level in sorted(used)), *((int(owners[edge]), 1.0) for edge in own))
        half = self.instance.size // 2
        sizes = np.bincount(node.level[node.decided], minlength=levels)
        row(half * budget, *enumerate(sizes.astype(float).tolist()), *((int(owners[edge]), 1.0) for edge in free))
        return np.array(rows), np.array(limits), owners, low, high

    def rounded(self, node: Node, box: RelaxedMoment, at: Relaxed) -> tuple[list[list[int]], Floats] | None:
        """Matchings and probabilities near a relaxed answer; None where edges do not tell matchings."""
        if self.given:
            return [list(matching) for matching in self.instance.matchings if matching], at.point
        if not self.leveled:
            return None
        chances, matchings = at.point[box.owners], list[list[int]]()
        for edge in np.argsort(-chances, kind="stable").tolist():
            for matching in matchings:
                if not self.adjacent[edge, matching].any():
                    matching.append(edge)
                    break
            else:
                matchings.append([edge])
        return matchings, np.array([chances[matching].max() for matching in matchings])

    def children(self, node: Node, box: RelaxedMoment, at: Relaxed) -> list[Node]:
        """The node in two, where the relaxed answer is furthest from a plan."""
        choice = self.choice(node, box, at)
        if choice.edge is not None:
            found = [self._at_level(node, choice.edge), self._later(node, choice.edge)]
            return [each for each in found if each is not None]
        below, above = node.high.copy(), node.low.copy()
        below[choice.level], above[choice.level] = choice.point, choice.point
        halves = [replace(node, high=below), replace(node, low=above)]
        return [each for each in map(self._tightened, halves) if each is not None]

    def choice(self, node: Node, box: RelaxedMoment, at: Relaxed) -> Choice:
        """Where the relaxed answer is furthest from a plan."""
        chances = np.maximum(at.point[box.owners], ROUNDING)
        if self.single:
            # Linear in probabilities: nothing but levels is relaxed.
            free = np.flatnonzero(~node.decided)
            return Choice(self.most_met(node, free, chances[free]))
        errors = loan_of(box, at.multiplier, at.lent).doubts(at.point, at.y)
        free = np.flatnonzero(~node.decided) if self.leveled else np.zeros(0, dtype=np.int64)
        by_level = np.bincount(
            node.level, weights=np.where(node.decided, errors, 0.5 * errors), minlength=len(node.low)
        )
        # Too narrow for an error that matters
        by_level[node.high - node.low < 1e-6] = 0.0
        worst = int(by_level.argmax())
        if len(free):
            # Among edges without an error, the most probable
            tops = errors[free] + 1e-6 * chances[free]
            if tops.max() >= _EDGES_FIRST * by_level[worst]:
                return Choice(self.most_met(node, free, tops))
        low, high = float(node.low[worst]), float(node.high[worst])
        # Levels come first among the variables.
        point = float(at.point[worst])
        # Up to 1 the relaxed term is 0: nothing tells where to split.
        nearest = 0.5 if high >= 1.0 and not at.lent.any() else _NEAREST
        middle = min(max(point, low + nearest * (high - low)), high - nearest * (high - low))
        return Choice(None, worst, middle)

    def most_met(self, node: Node, free: Ints, errors: Floats) -> int:
        """Of edges with much the same error the one whose neighbours leave it least: its decision has consequences."""
        met = self.adjacent[free] & (node.decided | (node.level > node.level[free][:, None]))
        counts = (1.0 + met.sum(axis=1)) / (1.0 + node.level[free])
        worth = np.where(errors >= _ALIKE * errors.max(), counts * errors, 0.0)
        return int(free[worth.argmax()])

    def _tightened(self, node: Node) -> Node | None:
        if not self.leveled:
            return node
        budget = self.rounds
        # Sorted: a level is at least the later ones, and at most the earlier ones.
        low, high = np.maximum.accumulate(node.low[::-1])[::-1], np.minimum.accumulate(node.high)
        for _ in range(2):
            for level in range(len(low)):
                others = float(low.sum() - low[level])
                # Those before are as large as this one.
                after = float(low[level + 1 :].sum())
                high[level] = min(high[level], budget - others, (budget - after) / (level + 1))
            high = np.minimum.accumulate(high)
        return None if (high < low - ROUNDING).any() else replace(node, low=low, high=np.maximum(low, high))

    def _at_level(self, node: Node, edge: int) -> Node | None:
        level, decided = node.level.copy(), node.decided.copy()
        decided[edge] = True
        return self._propagated(replace(node, level=level, decided=decided))

    def _later(self, node: Node, edge: int) -> Node | None:
        level = node.level.copy()
        level[edge] += 1
        return self._propagated(replace(node, level=level))

    def _propagated(self, node: Node) -> Node | None:
        """Levels that others leave; None where an edge is later than it need be."""
        level, decided = node.level.copy(), node.decided.copy()
        changed = True
        while changed:
            changed = False
            for edge in np.flatnonzero(~decided).tolist():
                met = decided & self.adjacent[edge]
                while (level[met] == level[edge]).any():
                    level[edge] += 1
                    changed = True
            for edge in range(self.count):
                for before in range(int(level[edge])):
                    others = self.adjacent[edge] & (level <= before)
                    at = others & decided & (level == before)
                    if at.any():
                        continue
                    able = np.flatnonzero(others & ~decided)
                    if not len(able):
                        return None
                    if len(able) == 1:
                        only = int(able[0])
                        if level[only] < before:
                            continue
                        if (self.adjacent[only] & decided & (level == before)).any():
                            return None  # decided in this round: a neighbour at this level leaves the edge none to meet
                        decided[only] = True
                        changed = True
        count = int(level.max()) + 1
        low, high = np.zeros(count), np.ones(count)
        low[: len(node.low)], high[: len(node.high)] = node.low, node.high
        return self._tightened(Node(level, decided, low, high))
