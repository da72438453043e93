"""MATCHA: matchings, how often each is active, and weights; each step solved exactly, with a certificate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.spectral.laplacians import Floats
from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.matchings.activation import Plan, most_connected
from ddlopt.solvers.gossip.matchings.decompositions import Decomposition, fewest_matchings
from ddlopt.solvers.gossip.matchings.moment_newton import Mixed, best_weights
from ddlopt.solvers.gossip.matchings.single_bound import single_bound
from ddlopt.solvers.gossip.weights.exact import FastestWeights
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.names import spelled

GAP = 1e-9
"""Relative gap at which each step ends, or earlier where less was asked for."""


def decomposed(instance: MatchingsInstance, clock: Clock) -> Decomposition:
    """The matchings that are given, or as few as possible."""
    if instance.matchings:
        return Decomposition(tuple(own for own in instance.matchings if own), int(instance.network.degrees.max()))
    return fewest_matchings(instance.network, None if np.isinf(clock.left_s) else clock.left_s)


def certified_bound(instance: MatchingsInstance, limits: Limits, clock: Clock) -> float:
    r"""What no plan is below: the square of the bound of fastest averaging, or that of fractional matchings.

    Independent matchings under a budget that pays for less than one in a round have probabilities of at most u < 1.
    As :math:`(L(y) - cP)^2 \succeq 0`, and by the best :math:`y_e` for each edge,

    .. math::

        \mathbb{E}[W^2] - J \succeq (1 - c^2) P - 2 (1 - c) L(y) + 2 \sum_e (1/p_e - 1) y_e^2\, a_e a_e^\top
        \succeq (1 - c^2) P - \tfrac12 (1 - c)^2 L(p / (1 - p)) ,

    so with :math:`K = \lambda_2 / (1 - u)` and the λ₂ of fractional matchings, :math:`\rho \ge 2 / (2 + K)`, for
    :math:`c = K / (2 + K)`.
    """
    if instance.activation == "single":
        return single_bound(instance, lambda: clock.expired)
    active = min(instance.budget / min(instance.edge_times), max(instance.edge_budgets, default=1.0))
    small = 0.0
    if instance.budget < min(instance.edge_times) and active < 1.0:
        small = 1.0 / (1.0 + (1.0 - single_bound(instance, lambda: clock.expired)) / (1.0 - active))
    averaging = WeightsInstance(name=instance.name, network=instance.network)
    # The bound holds at any gap; this costs it its last digits only.
    bound = FastestWeights("averaging").solve(averaging, Limits(clock.part(), 1e-6, limits.threads)).bound
    return max(small, 0.0 if bound is None else bound**2)


def plan_of(instance: MatchingsInstance, plan: Plan, probabilities: Floats, weights: Floats) -> MatchingPlan:
    """The answer."""
    return MatchingPlan(
        instance=instance.name,
        matchings=plan.matchings,
        probabilities=tuple(probabilities.tolist()),
        weights=tuple(weights.tolist()),
    )


def mixed(
    plan: Plan, probabilities: Floats, per_edge: bool, gap: float, expired: Callable[[], bool] = lambda: False
) -> Mixed:
    """The best weight that all edges share, or the best of each."""
    shared = None if per_edge else np.ones((len(plan.instance.network.edges), 1))
    return best_weights(plan.moment(probabilities), gap, shared, expired)


@dataclass(frozen=True)
class Matcha(CertifiedMethod, uses=("threads",)):
    r"""MATCHA in its three steps: matchings, the most connected probabilities, the best weight.

    The scope's bound is certified for weights with these matchings and probabilities; the bound is the square of that
    of fastest averaging.

    Parameters
    ----------
    per_edge : bool
        A weight for each edge, which is ours, in place of one for all.

    References
    ----------
    J. Wang et al., "MATCHA", Indian Control Conference 2019, and JYWa/MATCHA.
    """

    per_edge: bool = False

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = MatchingsInstance

    @property
    def name(self) -> str:
        """``matcha``, with its option."""
        return spelled("matcha", self, "per_edge")

    def refuses(self, instance: Any) -> str | None:
        """Single matchings."""
        if instance.activation == "single":
            return "it is for matchings that are active independently; single-matching is for one at a time"
        return None

    def find(self, instance: MatchingsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Plan and certificates."""
        gap = min(GAP, limits.gap)
        with threadpool_limits(limits.threads):
            matchings, fewest = decomposed(instance, clock)
            plan = Plan(instance, matchings)
            active = most_connected(plan, gap, lambda: clock.expired)
            found = mixed(plan, active.probabilities, self.per_edge, gap, lambda: clock.expired)
            clock.report(found.factor)
            bound = certified_bound(instance, limits, clock)
        details = {
            "fewest_matchings": fewest,
            "connectivity": active.connectivity,
            "connectivity_bound": active.bound,
        }
        scope = "these matchings and probabilities" + ("" if self.per_edge else ", one weight")
        answer = plan_of(instance, plan, active.probabilities, found.weights)
        return MethodOutput(answer, details, bound, scope, found.bound)


@dataclass(frozen=True)
class SingleMatching(CertifiedMethod, uses=("threads",)):
    r"""The best probabilities where a single matching is active in a round: exact for given matchings.

    :math:`\mathbb{E}[W^2] - J = I - J - 2 \sum_e p_e (w_e - w_e^2)\, a_e a_e^\top` falls, in the order of positive
    semidefinite matrices, with each :math:`w_e - w_e^2 \le 1/4`: so :math:`w = 1/2` (both ends take their average) is
    best whatever the probabilities are, and then :math:`\rho = 1 - \lambda_2(\sum_j p_j L_j) / 2`. To maximise λ₂ is no
    heuristic here. Where the matchings are part of the question, as few as possible are taken, the certificate is for
    them, and the bound on all plans is that of fractional matchings.
    """

    name: ClassVar[str] = "single-matching"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = MatchingsInstance

    def refuses(self, instance: Any) -> str | None:
        """Matchings that are active independently."""
        if instance.activation != "single":
            return "it is for one matching at a time; here they are active independently"
        return None

    def find(self, instance: MatchingsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Plan and certificate."""
        with threadpool_limits(limits.threads):
            matchings, fewest = decomposed(instance, clock)
            plan = Plan(instance, matchings)
            active = most_connected(plan, min(GAP, limits.gap), lambda: clock.expired)
            least = None if instance.matchings else certified_bound(instance, limits, clock)
        answer = plan_of(instance, plan, active.probabilities, np.full(len(instance.network.edges), 0.5))
        bound = 1.0 - active.bound / 2.0
        clock.report(1.0 - active.connectivity / 2.0, bound if instance.matchings else None)
        details = {"fewest_matchings": fewest, "connectivity": active.connectivity}
        if instance.matchings:
            return MethodOutput(answer, details, bound)
        return MethodOutput(answer, details, least, "these matchings", bound)
