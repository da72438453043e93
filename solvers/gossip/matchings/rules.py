"""What MATCHA is compared with: every matching in every round, and all of them equally often."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.solvers.gossip.matchings.activation import Plan
from ddlopt.solvers.gossip.matchings.exact import GAP, decomposed, mixed, plan_of
from ddlopt.solvers.gossip.weights.rules import best_constant
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Vanilla(Heuristic, uses=()):
    r"""Decentralized SGD without matchings: all edges in every round, with :math:`w = 2 / (\lambda_2 + \lambda_n)`."""

    name: ClassVar[str] = "vanilla"
    covers: ClassVar[type[Any]] = MatchingsInstance

    def answer(self, instance: MatchingsInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The plan, where budgets pay for it."""
        plan = Plan(instance, decomposed(instance, clock).matchings)
        everything = plan.everything()
        if everything is None or everything.min() < 1.0:
            raise NoSolutionError(
                f"budgets do not pay for every matching in every round, which takes {plan.times.sum():g}"
            )
        return plan_of(instance, plan, everything, best_constant(instance.network)), {}


@dataclass(frozen=True)
class EqualActivation(Heuristic, uses=()):
    """Every matching equally often, as often as budgets allow, with the best weight that all edges can share."""

    name: ClassVar[str] = "equal-activation"
    covers: ClassVar[type[Any]] = MatchingsInstance

    def answer(self, instance: MatchingsInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The plan."""
        plan = Plan(instance, decomposed(instance, clock).matchings)
        chance = min(float(plan.most.min()), instance.budget / float(plan.times.sum()))
        if plan.single:
            chance = min(chance, 1.0 / len(plan.matchings))
        probabilities = plan.kept(np.full(len(plan.matchings), chance))
        found = mixed(plan, probabilities, False, GAP, lambda: clock.expired)
        return plan_of(instance, plan, probabilities, found.weights), {"weight": float(found.weights[0])}
