"""The exact method for strategies: bounds and search, then the integer program of what they leave."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.strategies.dual import Dual, rounded_up
from ddlopt.frontier.deployment.strategies.junction_tree import JunctionTree
from ddlopt.frontier.deployment.strategies.milp import narrowed, solve_core, unit_of
from ddlopt.frontier.deployment.strategies.search import StrategySearch
from ddlopt.frontier.deployment.strategies.state import KERNELS, SearchState
from ddlopt.frontier.deployment.strategies.tree_dual import TreeDual
from ddlopt.models.deployment.strategies.core import Core, core_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.deployment.strategies.ragged import Ints
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status, TracePoint
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    most_pairs: int = 1_500_000
    """Allowed pairs up to which the program is tried."""
    few_pairs: int = 50_000
    """The same where the gap is closed already, but not to the last."""
    search_share: float = 0.3
    """Part of the time for the search where the program may follow."""
    patience: int = 400
    """Of the search; it lets prices start again several times."""
    sweeps: int = 40
    """Messages before any price; the ascent goes on from there."""
    smaller: float = 0.95
    """Narrowing goes on as long as it leaves at most this part."""
    tree_search_share: float = 0.03
    """The part for the search where the graph is solved exactly at prices, and small programs find more."""
    first_pairs: int = 2
    """Allowed pairs of the first of these programs, for each edge."""
    more_pairs: int = 2
    """How many times as many the next one has."""


_EFFORT = Effort()


@dataclass(frozen=True)
class StrategyBest(CertifiedMethod, uses=("threads", "seed", "start")):
    """Proves soonest: :class:`StrategySearch`, and HiGHS on what its bound leaves.

    1. The search gives a choice and a bound.
    2. Strategies and pairs with which the bound exceeds the cost of the choice are left out, which makes bounds
       better, again and again. Where nothing is left, the choice is optimal.
    3. Where what is left is small enough, the integer program over the local polytope solves it.

    Graphs of small width, as those of training steps mostly are, are solved exactly at prices of memory
    (:class:`~ddlopt.frontier.deployment.strategies.tree_dual.TreeDual`), in place of 2. That bound is better, and
    leaves out far more. Programs then go from small to large: of all choices below a target, which a few pairs an edge
    may have, then below higher ones. Each finds the best of those choices, often a better one than before, or proves
    that there is none below its target.

    Parameters
    ----------
    highs : Highs
    """

    proves_infeasible: ClassVar[bool] = True

    highs: Highs = dataclasses.field(default_factory=Highs)

    name: ClassVar[str] = "exact"
    kernels: ClassVar[tuple[str, ...]] = KERNELS
    covers = StrategyInstance

    def solver_for(self, instance: Any) -> str | None:
        """HiGHS, behind the last program."""
        return self.highs.name

    def find(self, instance: StrategyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Answer and certificate."""
        try:
            core = core_of(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        run = _Run(core, limits, seed, clock)
        if start is not None:
            run.start(start)
        run.search()
        run.prove(self.highs)
        if run.best is None:
            if run.bound == math.inf:
                raise InfeasibleError(f"'{instance.name}': no choice of strategies keeps the limit of memory")
            raise NoSolutionError(f"found no strategies for '{instance.name}' that keep the limit of memory")
        answer = StrategyAssignment(instance=instance.name, strategies=core.strategies(run.best))
        return MethodOutput(answer, run.figures, max(0.0, run.bound), versions=run.versions)


class _Run:
    """One solve: the core, the best choice of its nodes, the bound."""

    def __init__(self, whole: Core, limits: Limits, seed: int, clock: Clock) -> None:
        # From places in a narrowed core back to those here: its strategies say which they are.
        places = np.arange(len(whole.cost)) - np.repeat(whole.start[:-1], whole.counts)
        core = dataclasses.replace(whole, original=places)
        self.whole, self.core = whole, core
        self.limits, self.seed, self.clock = limits, seed, clock
        self.state = SearchState(core, np.random.default_rng(seed))
        self.tree = JunctionTree.of(core)
        self.bound = -math.inf
        self.figures: dict[str, float] = {"core_nodes": core.size, "core_edges": len(core.edges)}
        self.versions: Mapping[str, Any] = {}

    @property
    def best(self) -> Ints | None:
        """(n,) places in the core."""
        return self.state.best

    @property
    def cost(self) -> float:
        """Of the best choice."""
        return self.state.cost

    @property
    def closed(self) -> bool:
        """Whether the gap is as small as asked for."""
        return math.isfinite(self.cost) and self.cost - self.bound <= self.clock.gap * abs(self.cost)

    def start(self, solution: StrategyAssignment) -> None:
        """Begin with a solution."""
        places = self.whole.places(solution.strategies)
        if places is not None:
            self.state.offer(places)

    def search(self) -> None:
        """Search for a part of the time; alone where the program is out of reach."""
        pairs = np.isfinite(self.core.table).sum()
        left = self.clock.left_s
        share = (
            _EFFORT.tree_search_share
            if self.tree is not None
            else _EFFORT.search_share
            if pairs <= _EFFORT.most_pairs
            else 1.0
        )
        until = self.clock.elapsed_s + (left * share if share < 1 else left)
        StrategySearch(patience=_EFFORT.patience).go_on(self.state, self.clock, until)
        self.note(self.state.dual.proven)

    def note(self, bound: float) -> None:
        """Take a bound where it is better, and report."""
        self.bound = max(self.bound, bound)
        if math.isfinite(self.bound):
            self.clock.report(self.cost if self.best is not None else None, max(0.0, self.bound))

    def prove(self, highs: Highs) -> None:
        """Narrow the core as far as the bound allows, then solve its program."""
        try:
            if self.tree is None:
                core = self._narrowed_by_messages()
            else:
                core = self._solved_below_targets(TreeDual(self.tree), highs)
        except InfeasibleError:
            self.note(self.cost)
            return
        pairs = np.isfinite(core.table).sum()
        if (
            self.bound >= self.cost
            or self.clock.expired
            or pairs > (_EFFORT.few_pairs if self.closed else _EFFORT.most_pairs)
        ):
            return
        self._solve(core, highs)

    def _narrowed_by_messages(self) -> Core:
        dual = self.state.dual
        core = dual.core
        while self.bound < self.cost and not self.clock.expired and self.best is not None:
            before = np.isfinite(core.table).sum() + len(core.cost)
            core = narrowed(dual, self.cost)
            after = np.isfinite(core.table).sum() + len(core.cost)
            self.figures["narrowed_pairs"] = float(np.isfinite(core.table).sum())
            if after > _EFFORT.smaller * before and dual.core is not self.state.dual.core:
                break
            dual = Dual(core)
            dual.sweep(_EFFORT.sweeps)
            dual.bound()
            self.note(min(dual.proven, self.cost))
        return core

    def _solved_below_targets(self, dual: TreeDual, highs: Highs) -> Core:
        """Solve programs of all choices below targets; returns the core of those that may still be better."""
        dual.ascend(self.state.offer, lambda: self.cost, lambda: self.clock.expired)
        self.note(dual.proven)
        bound, _, pairs = dual.rises()
        rises = np.sort(pairs[np.isfinite(pairs)])
        wanted = _EFFORT.first_pairs * len(self.core.edges)
        while self.bound < self.cost and not self.closed and not self.clock.expired and wanted < len(rises):
            target = math.ceil(bound + rises[wanted]) if self.core.whole else bound + rises[wanted]
            if target >= self.cost:
                break
            wanted *= _EFFORT.more_pairs
            try:
                self._solve(narrowed(dual, target), highs, target)
            except InfeasibleError:
                self.note(target)
        core = narrowed(dual, self.cost) if self.best is not None else self.core
        self.figures["narrowed_pairs"] = float(np.isfinite(core.table).sum())
        return core

    def _solve(self, core: Core, highs: Highs, target: float = math.inf) -> None:
        """Solve the program of all choices that are better than the best, or below a target."""
        unit = unit_of(core)
        left = self.clock.left_s
        gap = 0.0 if self.closed else self.limits.gap
        limits = dataclasses.replace(self.limits, gap=gap, time_s=None if math.isinf(left) else max(0.1, left))
        began = self.clock.elapsed_s
        start = None if self.best is None else _placed(core, self.core, self.best)

        def watch(point: TracePoint) -> None:
            if point.bound is not None:
                self.bound = max(self.bound, min(self._lower(core, point.bound * unit), self.cost, target))

        with self.clock.lending_ctrl_c():
            outcome, chosen = solve_core(core, highs, limits, self.seed, start, watch)
        self.clock.interrupted = self.clock.interrupted or outcome.interrupted
        self.versions = {"solver": outcome.solver}
        self.figures |= {"milp_s": self.clock.elapsed_s - began, **outcome.figures}
        if chosen is not None:
            self.state.offer(core.original[core.start[:-1] + chosen])
        if outcome.status is Status.INFEASIBLE:
            # Nothing better than the best choice is left; where there is none, nothing at all.
            self.note(min(self.cost, target))
        elif outcome.bound is not None:
            self.note(min(self._lower(core, outcome.bound * unit), self.cost, target))

    def _lower(self, core: Core, bound: float) -> float:
        return rounded_up(bound) if core.whole else bound


def _placed(core: Core, wider: Core, chosen: Ints) -> Ints | None:
    """The same choice in a narrowed core; None where it is not there."""
    owner = np.repeat(np.arange(core.size), core.counts)
    hits = np.flatnonzero(core.original == chosen[owner])
    if len(hits) != core.size:
        return None
    places: Ints = hits - core.start[:-1]
    return places if math.isfinite(core.cost_of(places)) else None
