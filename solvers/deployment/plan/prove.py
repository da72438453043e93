"""Writes proofs for plans: the order in which groups are decided, if the checker's tree ends soon with it."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.models.deployment.plan.certificate import PlanCertificate
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.tree.method import PlanTree


def prove(
    instance: DeploymentInstance, solution: Deployment, target: Fraction, expired: Callable[[], bool]
) -> PlanCertificate | None:
    """The certificate that proves ``target``; None where the tree is too large, the time is up, or a plan is quicker.

    Groups with most work are decided first.
    """
    if not PlanTree().may_end(instance):
        return None
    order = PlanRater(instance).by_work.tolist()
    certificate = PlanCertificate(instance.name, instance.digest, target, order)
    try:
        certificate.check(instance, expired)
    except (NotApplicableError, RefutedError):
        return None
    return None if expired() else certificate
