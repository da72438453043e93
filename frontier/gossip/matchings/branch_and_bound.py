"""Plans of independent matchings by branch and bound: probabilities, weights and matchings together."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.frontier.gossip.matchings.branching import Branching, Built, Node
from ddlopt.frontier.gossip.matchings.connected import connected
from ddlopt.frontier.gossip.matchings.images import Images
from ddlopt.frontier.gossip.matchings.lifted import program_for
from ddlopt.frontier.gossip.matchings.relaxed_newton import Relaxed, relaxed
from ddlopt.models.gossip.matchings.evaluate import evaluate_matchings
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.spectral.laplacians import Floats
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, relative_gap
from ddlopt.solvers.gossip.matchings.activation import Plan, most_connected
from ddlopt.solvers.gossip.matchings.exact import GAP, plan_of
from ddlopt.solvers.gossip.matchings.moment_newton import best_weights
from ddlopt.solvers.gossip.matchings.search import MatchingsSearch, descended
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_OPENING, _OPENING_LARGE, _LARGE = 0.4, 0.9, 24
"""Parts of the time that the search gets; of more edges than the third it is the second: the tree moves little."""
# Part of the way between a bound and what would cut a node: nearer, the relaxed optimum matters no more.
_CLOSE = 0.02
_VISITED, _EVERY = 20, 10
"""Nodes whose relaxed answer becomes a plan: the first ones, and then each tenth."""
_HARDLY = 1e-9
"""Of a factor, what is no gap."""


class Open(NamedTuple):
    """A node with its relaxed answer."""

    node: Node
    box: RelaxedMoment
    at: Relaxed


@dataclass(frozen=True)
class MatchingsBranchAndBound(CertifiedMethod, uses=("threads", "seed")):
    r"""The best plan of matchings, after :class:`MatchingsSearch`.

    A node is a box of probabilities. Its bound is that of
    :class:`~ddlopt.models.gossip.matchings.relaxed_moments.RelaxedMoment`, from the multipliers of a convex problem in
    probabilities and weights. The probability with the largest error is split; matchings that are part of the question
    are found edge by edge, see :mod:`~ddlopt.frontier.gossip.matchings.branching`, where all edges take as long as
    each other and have no budgets of their own; of nodes that automorphisms take into each other the first is enough.
    Otherwise boxes of edges are split, whose bound need not reach the best plan.
    """

    name: ClassVar[str] = "matchings-branch-and-bound"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = MatchingsInstance

    def refuses(self, instance: Any) -> str | None:
        """Single matchings that are given, or whose edges have times or budgets of their own."""
        if instance.activation != "single":
            return None
        if instance.matchings:
            return "one of given matchings at a time has no branches; single-matching is for that"
        if instance.edge_budgets or len(set(instance.edge_times)) > 1:
            return "one matching at a time has levels only where edges take equally long and have no budgets"
        return None

    def find(self, instance: MatchingsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan and the bound on all plans."""
        share = _OPENING if len(instance.network.edges) <= _LARGE else _OPENING_LARGE
        part = Clock(Limits(clock.part(share), limits.gap), None)
        opening = MatchingsSearch().find(instance, limits, seed, part, start)
        assert isinstance(opening.solution, MatchingPlan)
        assert opening.bound is not None
        factor = evaluate_matchings(instance, opening.solution).objective
        assert factor is not None
        tree = _Tree(instance, opening.solution, float(factor), opening.bound, limits.gap, clock)
        clock.report(tree.factor, tree.bound)
        with threadpool_limits(limits.threads):
            tree.grow()
        clock.report(tree.factor, tree.bound)
        return MethodOutput(tree.best, {**opening.details, "nodes": tree.nodes}, tree.bound)


class _Tree:
    """The best plan, and the bound on all."""

    def __init__(
        self, instance: MatchingsInstance, best: MatchingPlan, factor: float, bound: float, gap: float, clock: Clock
    ) -> None:
        self.instance, self.best, self.factor, self.bound = instance, best, factor, bound
        self.nodes, self._clock, self._gap = 0, clock, gap
        self._branching, self._open = Branching(instance), OpenNodes[Open]()
        self._program = None if instance.activation == "single" else program_for(instance)
        self._images = Images(instance.network) if self._branching.leveled else None
        self._seen = set[bytes]()

    @property
    def target(self) -> float:
        """The bound from which on a node needs no branches."""
        return self.factor - max(self._gap * self.factor, _HARDLY)

    def grow(self) -> None:
        """Split the node with the least bound, until the bound is near enough or the time is up."""
        distance = relative_gap(self.factor, self.bound)
        if distance is None or distance <= self._gap or self.factor - self.bound <= _HARDLY:
            return
        roots = self._branching.roots()
        if len(roots) > 1:
            # Of all of them at once, as their number may take longer than there is time.
            self.bound = max(self.bound, self._of_all())
        for root in roots:
            if self._clock.expired:
                return
            self._bounded(root, self.bound)
        while self._open.least < self.target and not self._clock.expired:
            bound, first = self._open.pop()
            for child in self._branching.children(first.node, first.box, first.at):
                if self._is_new(child):
                    self._bounded(child, bound)
            least = min(self._open.bound, self.factor)
            if least > self.bound * (1.0 + IMPROVEMENT_TOL) + _HARDLY:
                self.bound = least
        if not self._open:
            self.bound = max(self.bound, min(self._open.bound, self.factor))

    def _bounded(self, node: Node, known: float) -> None:
        """Open a node, or put it off where its bound is near enough to the best plan, or nothing is left to decide."""
        built = self._branching.built(node)
        if built is None:
            return
        self.nodes += 1
        found = self._relaxed(built)
        if self.instance.activation == "single":
            if node.decided.all() and found.bound < self.factor:
                self._visit_connected([np.flatnonzero(node.level == j).tolist() for j in range(len(node.low))])
        elif found.factor < self.factor and (self.nodes <= _VISITED or self.nodes % _EVERY == 0):
            self._visit(node, built.box, found)
        bound = max(known, found.bound)
        if bound >= self.target or (self.instance.activation == "single" and node.decided.all()):
            self._open.put_off(bound)
        else:
            self._open.push(bound, Open(node, built.box, found))

    def _is_new(self, node: Node) -> bool:
        """Whether it is no image of a node that was here: what bounds that one bounds its image."""
        if self._images is None:
            return True
        levels = self._images.form(node.level, node.decided).levels
        known, count = levels + node.low.tobytes() + node.high.tobytes(), len(self._seen)
        self._seen.add(known)
        return len(self._seen) > count

    def _of_all(self) -> float:
        built = self._branching.built(self._branching.whole())
        return 0.0 if built is None else self._relaxed(built).bound

    def _relaxed(self, built: Built) -> Relaxed:
        """The tighter relaxation where it is solved fast and at all; a convex program where one matching is active."""
        if self.instance.activation == "single":
            at = connected(built.box, built.inside, self._decided)
            none = np.zeros(len(built.box.ends))
            return Relaxed(at.point, none, 1.0, at.bound, at.multiplier, none)
        found = self._program.relaxed(built.box) if self._program is not None else None
        return found or relaxed(built.box, built.inside, self._decided)

    def _decided(self, factor: float, bound: float) -> bool:
        return bound >= self.target or factor - bound <= max(_HARDLY, _CLOSE * abs(self.target - bound))

    def _visit(self, node: Node, box: RelaxedMoment, found: Relaxed) -> None:
        rounded = self._branching.rounded(node, box, found)
        if rounded is None:
            return
        plan = Plan(self.instance, rounded[0])
        value = _factor(plan, plan.kept(rounded[1]))
        if value >= self.factor * (1.0 - IMPROVEMENT_TOL):
            return
        probabilities, weights = descended(plan, plan.kept(rounded[1]), self._clock)
        self._offer(plan_of(self.instance, plan, probabilities, weights))

    def _visit_connected(self, matchings: list[list[int]]) -> None:
        """The best probabilities of matchings of which one is active at a time."""
        plan = Plan(self.instance, [own for own in matchings if own])
        active = most_connected(plan, min(GAP, self._gap), lambda: self._clock.expired)
        self._offer(plan_of(self.instance, plan, active.probabilities, np.full(plan.mixing.shape[0], 0.5)))

    def _offer(self, better: MatchingPlan) -> None:
        objective = evaluate_matchings(self.instance, better).objective
        if objective is not None and objective < self.factor:
            self.best, self.factor = better, float(objective)
            self._clock.report(self.factor, self.bound)


def _factor(plan: Plan, probabilities: Floats) -> float:
    # Finer than what makes a descent worth its time
    return best_weights(plan.moment(probabilities), 1e-6).factor
