"""The file of a proof for plans, read as if an enemy had written it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.deployment.plan.choices import Choice, choices_of
from ddlopt.certificates.deployment.plan.kernels import DONE, PAUSED, Room, bound, room_for, search
from ddlopt.certificates.deployment.plan.tables import GOAL, Ints, Tables, tables_of
from ddlopt.certificates.own import OwnCertificate, fault_of_order
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import RefutedError

_PORTION = 50_000
"""Partial plans between looks at the clock: a fraction of a second."""
_LEAVES = 64
"""Plans that are simulated between two parts of the search."""

Known = tuple[tuple[Choice, ...], ...]


@dataclass(frozen=True)
class PlanCertificate(OwnCertificate):
    """A proof that no plan is quicker than ``claim``, in seconds.

    The checker goes through all plans, group by group, in whole numbers
    (:mod:`~ddlopt.certificates.deployment.plan.kernels`); plans whose bound is below the claim are simulated in
    rational numbers.

    Parameters
    ----------
    order : list of int
        All groups, in the order in which they are decided: any order proves the same, and a good one soon.
    """

    format: ClassVar[str] = "ddlopt plan certificate"
    kind: ClassVar[str] = "plans"
    says: ClassVar[str] = "of the instance, by a tree of all plans in whole numbers"

    order: list[int]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Whole numbers, each once."""
        return fault_of_order(data["order"], "group")

    def check(self, instance: DeploymentInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError if a plan is quicker; how many partial and whole plans were looked at.

        Raises
        ------
        NotApplicableError
            If a group has too many choices, or numbers might overflow.
        """
        if len(self.order) != instance.groups:
            raise RefutedError(f"the order has {len(self.order)} groups, but there are {instance.groups}")
        if self.claim <= 0:
            return 0
        known: Known = tuple(choices_of(instance, group) for group in range(instance.groups))
        tables = tables_of(instance, known, self.claim)
        cases, before = 0, None
        while before != known and not expired():
            before = known
            cases += sum(map(len, known))
            known = _promising(known, tables, room_for(tables))
            if not all(known):
                return cases
            if known != before:
                tables = tables_of(instance, known, self.claim)
        return cases + self._searched(instance, known, tables, expired)

    def _searched(self, instance: DeploymentInstance, known: Known, tables: Tables, expired: Callable[[], bool]) -> int:
        line, groups = np.array(self.order, np.int64), instance.groups
        chosen, following, at = np.full(groups, -1), np.zeros(groups, np.int64), np.zeros(1, np.int64)
        found, room, cases, code = np.zeros((_LEAVES, groups), np.int64), room_for(tables), 0, PAUSED
        while code != DONE and not expired():
            used = np.array([0, _PORTION])
            code = search(tables, room, line, chosen, following, at, found, used)
            cases += _PORTION - int(used[1])
            for row in found[: used[0]].tolist():
                if expired():
                    break
                self._simulated(instance, [own[c] for own, c in zip(known, row, strict=True)])
        return cases

    def _simulated(self, instance: DeploymentInstance, plan: list[Choice]) -> None:
        duplicated = sorted(place for choice in plan for place in choice.duplicated)
        groups = tuple(choice.plan for choice in plan)
        deployment = Deployment(instance=instance.name, groups=groups, duplicated=tuple(duplicated))
        evaluation = evaluate_plan(instance, deployment, exact=True)
        if evaluation.feasible and evaluation.objective is not None and evaluation.objective < self.claim:
            told = f"{float(evaluation.objective):.12g} s, less than the claim of {float(self.claim):.12g} s"
            raise RefutedError(f"there is a plan of '{instance.name}' whose step takes {told}")


def _promising(known: Known, tables: Tables, room: Room) -> Known:
    """Choices that may be part of a plan that is quicker than the claim."""
    kept = []
    for group, own in enumerate(known):
        chosen: Ints = np.full(len(known), -1)
        left = []
        for place, choice in enumerate(own):
            chosen[group] = place
            if bound(tables, room, chosen) < GOAL:
                left.append(choice)
        kept.append(tuple(left))
    return tuple(kept)
