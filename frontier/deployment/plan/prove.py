"""Writes proofs for plans: the order in which groups are decided, if the checker's tree ends soon with it."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from time import process_time

from ddlopt.certificates.deployment.plan import PlanCertificate
from ddlopt.frontier.deployment.plan.tree.method import PlanTree
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.solvers.deployment.plan.rater import PlanRater

_FIRST_S, _LONGER = 60.0, 4.0
"""Processor seconds of the first attempts, and how many times as many the next ones have."""
_HARDLY_ANY, _SOME = 0.01, 0.01
"""Of the mean work of groups: one with less is decided at the end; of a group's: where it begins."""


def prove(
    instance: DeploymentInstance, solution: Deployment, target: Fraction, expired: Callable[[], bool]
) -> PlanCertificate | None:
    """The certificate that proves ``target``; None where the tree is too large, the time is up, or a plan is quicker.

    Orders are tried in turn, each time for longer: which of them is good differs by more than a hundred times.
    """
    if not PlanTree().may_end(instance):
        return None
    for attempt in count():
        for order in orders(instance):
            certificate = PlanCertificate(instance.name, instance.digest, target, order)
            given_up = [False]
            until_s = process_time() + _FIRST_S * _LONGER**attempt

            def over(given_up: list[bool] = given_up, until_s: float = until_s) -> bool:
                given_up[0] = expired() or process_time() > until_s
                return given_up[0]

            try:
                certificate.check(instance, over)
            except (NotApplicableError, RefutedError):
                return None
            if not given_up[0]:
                return certificate
            if expired():
                return None
    raise AssertionError("attempts do not end")


def orders(instance: DeploymentInstance) -> list[list[int]]:
    """Along the graph from its end and from its beginning, and groups with most work first."""
    work = PlanRater(instance).work_s
    groups = sorted(range(instance.groups), key=lambda group: _begins(instance, group))
    little = [group for group in groups if work[group] < _HARDLY_ANY * work.mean()]
    along = [group for group in groups if group not in little]
    by_work = sorted(groups, key=lambda group: -work[group])
    found = [along[::-1] + little, along + little, by_work]
    return [order for place, order in enumerate(found) if order not in found[:place]]


def _begins(instance: DeploymentInstance, group: int) -> int:
    """Where in the order its first operator is that has some part of its work."""
    own = instance.members[group]
    work = [max(times[0] for times in instance.operators[place].times_s.values()) for place in own]
    return min(instance.order.index(place) for place, each in zip(own, work, strict=True) if each >= _SOME * sum(work))
