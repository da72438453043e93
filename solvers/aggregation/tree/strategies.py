"""Strategies for aggregation in trees: none, one level, near the destination, largest loads, at random."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.tree.evaluate import evaluate_tree
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.aggregation.tree.tables import TreeTables, budgets, tables
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Pair = tuple[int, int]
"""A job and a switch."""


class Filling:
    """Pairs of job and switch that are taken as long as memory and budgets allow."""

    def __init__(self, instance: TreeInstance, figures: TreeTables) -> None:
        self._instance, self._useful = instance, figures.useful
        self._memory = None if instance.memory is None else list(instance.memory)
        self.left, self._each = budgets(instance, figures.useful)
        self.chosen: list[set[int]] = [set() for _ in instance.jobs]

    def fits(self, pair: Pair) -> bool:
        """Whether there is memory and budget for a useful pair that is not taken."""
        job, node = pair
        if self.left <= 0 or self._each[job] <= 0 or not self._useful[job, node] or node in self.chosen[job]:
            return False
        return self._memory is None or self._memory[node] >= self._instance.jobs[job].memory

    def take(self, pair: Pair) -> None:
        """Take a pair that fits."""
        job, node = pair
        self.left -= 1
        self._each[job] -= 1
        if self._memory is not None:
            self._memory[node] -= self._instance.jobs[job].memory
        self.chosen[job].add(node)

    def fill(self, pairs: Iterable[Pair]) -> "Filling":
        """Take each that fits."""
        for pair in pairs:
            if self.fits(pair):
                self.take(pair)
        return self

    def answer(self) -> AggregatingSwitches:
        """What has been taken."""
        switches = tuple(tuple(sorted(each)) for each in self.chosen)
        return AggregatingSwitches(instance=self._instance.name, switches=switches)

    def objective(self) -> float:
        """Seconds of what has been taken."""
        value = evaluate_tree(self._instance, self.answer()).objective
        assert value is not None
        return float(value)


@dataclass(frozen=True)
class Strategy(Heuristic, uses=("seed",)):
    """Switches by their place or load, as far as memory and budgets allow.

    ``none``: none. ``top``: the nearest to the destination by number of links, more messages below first where they are
    equally near. ``max``: those at which the most messages enter from hosts. ``level``: all of one level, namely of the
    levels that the budget has room for, the one with the most of them, the better one of two; the first of the root's
    level that fit where there is room for none. ``random``: any.

    Switches that save nothing (fewer than two messages below, or without memory) are left out. Of several jobs, pairs
    of job and switch are sorted, and jobs with larger messages come first.

    Parameters
    ----------
    strategy : {"none", "top", "max", "level", "random"}

    References
    ----------
    After the strategies with which R. Segal, C. Avin, G. Scalosub compare theirs, CoNEXT 2021; ties and trees that are
    not complete are ours.
    """

    strategy: str

    covers: ClassVar[type[TreeInstance]] = TreeInstance

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "tree-random" if self.strategy == "random" else self.strategy

    def uses_for(self, instance: Any) -> frozenset[str]:
        """A seed, where levels are drawn."""
        return frozenset({"seed"} if self.strategy == "random" else ())

    def answer(self, instance: TreeInstance, seed: int, clock: Clock, start: Any) -> Answer[AggregatingSwitches]:
        """The switches."""
        figures = tables(instance)
        pairs = [(job, node) for job, each in enumerate(figures.useful) for node in np.flatnonzero(each).tolist()]
        size = [job.message_size for job in instance.jobs]
        if self.strategy == "none":
            pairs = []
        elif self.strategy == "max":
            pairs.sort(key=lambda pair: (-size[pair[0]] * (instance.jobs[pair[0]].loads[pair[1]] - 1), pair))
        elif self.strategy == "random":
            pairs = [pairs[place] for place in np.random.default_rng(seed).permutation(len(pairs))]
        else:
            depth = _depths(instance)
            pairs.sort(key=lambda pair: (depth[pair[1]], -size[pair[0]] * figures.below[pair], pair))
            if self.strategy == "level":
                return _level(instance, figures, pairs, depth).answer(), {}
        return Filling(instance, figures).fill(pairs).answer(), {}


def _depths(instance: TreeInstance) -> list[int]:
    depth = [0] * instance.size
    for node in instance.order[1:]:
        above = instance.parents[node]
        assert above is not None
        depth[node] = depth[above] + 1
    return depth


def _level(instance: TreeInstance, figures: TreeTables, pairs: list[Pair], depth: list[int]) -> Filling:
    levels: dict[int, list[Pair]] = {}
    for pair in pairs:
        levels.setdefault(depth[pair[1]], []).append(pair)
    whole: list[tuple[int, float, int, Filling]] = []
    for members in levels.values():
        filling = Filling(instance, figures).fill(members)
        if sum(map(len, filling.chosen)) == len(members):
            whole.append((-len(members), filling.objective(), len(whole), filling))
    if whole:
        return min(whole)[-1]
    return Filling(instance, figures).fill(levels[min(levels)] if levels else [])
