"""The search for strategies: prices and messages from above, choices from these, trees of a few nodes at last."""

import math
import time
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.deployment.strategies.dual import Dual, priced
from ddlopt.frontier.deployment.strategies.kernels.fixing import fix
from ddlopt.frontier.deployment.strategies.kernels.local import improve
from ddlopt.frontier.deployment.strategies.kernels.memory_rows import Items
from ddlopt.frontier.deployment.strategies.kernels.messages import Messages
from ddlopt.models.deployment.strategies.core import Core
from ddlopt.models.deployment.strategies.ragged import Floats, Ints
from ddlopt.solvers.heuristic import Clock

KERNELS = tuple(f"ddlopt.frontier.deployment.strategies.kernels.{name}" for name in ("fixing", "local"))
"""Modules whose kernels a search may call, besides those of the bounds of an instance."""


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    largest_tree: int = 60
    """Nodes of a tree that is solved at once: small ones, so that many different ones are."""
    parts: int = 24
    """In which nodes are fixed, each larger than the one before: nodes with many neighbours come first."""
    bad: float = 0.1
    """Distance of a choice from the bound at the same prices, relative to it, from which nodes are fixed one by one."""
    much: float = 1e-3
    """Gain of a sweep, relative to the bound, below which sweeps are left to the rounds."""
    most_beginnings: int = 40
    """Rounds of sweeps before prices, where these gain that much."""
    beginnings_with_memory: int = 2
    """The same with memory: messages that converged without prices hinder the search for prices."""
    trees_per_node: int = 10
    """In about how many trees each node is when a polish ends."""
    fewest_trees: int = 200
    """On small instances, where a tree takes microseconds."""
    penalty: float = 1.0
    """Of a forbidden pair, as a part of the bound: no choice with one is then near it."""


_EFFORT = Effort()


class SearchState:
    """The best choice so far, the bound, and the moves that improve either.

    Parameters
    ----------
    core : Core
    rng : numpy.random.Generator
    """

    def __init__(self, core: Core, rng: np.random.Generator) -> None:
        self.core, self.rng, self.dual = core, rng, Dual(core)
        memory = core.memory
        order = np.argsort(memory.node, kind="stable").astype(np.int64)
        at = np.zeros(core.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(memory.node, minlength=core.size), out=at[1:])
        self._items = Items(memory.low, memory.high, memory.start, memory.use, at, order)
        self._parts: tuple[Ints, Ints] | None = None
        self._tree_s = 1e-4
        self.best: Ints | None = None
        self.cost = math.inf
        """Of the best choice."""

    @property
    def gap(self) -> float:
        """How far the best choice is from the bound, relative to its cost."""
        missing = self.cost - max(0.0, self.dual.proven)  # no cost is below 0
        return 0.0 if missing <= 0 else missing / self.cost if math.isfinite(self.cost) else math.inf

    def offer(self, chosen: Ints) -> Floats:
        """Take a choice where it is the best so far; returns what it uses above the limits."""
        cost, excess = self.core.cost_of(chosen), self.core.excess_of(chosen)
        if cost < self.cost and (excess <= 0).all():
            self.best, self.cost = chosen.copy(), cost
        return excess

    def begin(self, sweeps: int, clock: Clock) -> None:
        """Messages without prices: where there are no rows of memory, as long as they gain much."""
        before = -math.inf
        for _ in range(_EFFORT.beginnings_with_memory if len(self.core.memory.limit) else _EFFORT.most_beginnings):
            self.dual.sweep(sweeps)
            found = self.dual.bound()
            if found - before <= _EFFORT.much * abs(found) or clock.expired:
                break
            before = found

    def round(self, sweeps: int, thorough: bool) -> None:
        """Messages at the present prices, a choice that is good there, and the next prices.

        Nodes are fixed one after the other if ``thorough``, and where the choice is bad without.
        """
        dual = self.dual
        dual.sweep(sweeps)
        bound = dual.bound()
        chosen = dual.decoded()
        excess = self.offer(chosen)
        if thorough or self.core.cost_of(chosen) + float(dual.prices @ excess) - bound > _EFFORT.bad * abs(bound):
            chosen = self.fixed()
            excess = self.offer(chosen)
        dual.next_prices(excess)

    def fixed(self) -> Ints:
        """(n,) places: nodes are fixed, those with the most neighbours first, and messages passed anew in between."""
        dual, core = self.dual, self.core
        if self._parts is None:
            order = np.argsort(-core.degree, kind="stable")
            ends = np.geomspace(1, core.size, _EFFORT.parts).astype(np.int64)
            self._parts = order, np.unique(np.append(ends, (0, core.size)))
        order, ends = self._parts
        chosen = np.empty(core.size, dtype=np.int64)
        messages = Messages(dual.messages.to_first.copy(), dual.messages.to_second.copy())
        fix(dual.graph, dual.cost.copy(), messages, order, ends, _EFFORT.penalty * max(1.0, dual.best), chosen)
        return chosen

    def polish(self, most_s: float) -> float:
        """Improve the best choice by small trees, for some seconds or so; returns by how much."""
        if self.best is None:
            return 0.0
        steps = int(min(max(most_s / self._tree_s, _EFFORT.fewest_trees), _EFFORT.trees_per_node * self.core.size))
        dual, memory = self.dual, self.core.memory
        chosen = self.best.copy()
        at_prices = priced(self.core, dual.best_prices)
        before = self.cost
        began = time.perf_counter()
        improve(
            dual.graph,
            self._items,
            self.core.cost,
            at_prices,
            memory.limit,
            chosen,
            steps,
            _EFFORT.largest_tree,
            self.rng,
        )
        self._tree_s = (time.perf_counter() - began) / steps
        self.offer(chosen)
        return before - self.cost
