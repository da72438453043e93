"""Writes proofs for uniform plans: the claim alone, if the checker finds that it holds."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.certificates.deployment.step import StepCertificate
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.errors import RefutedError


def prove(
    instance: StepInstance, solution: StepPlan, target: Fraction, expired: Callable[[], bool]
) -> StepCertificate | None:
    """The certificate that proves ``target``; None where the time is up, or a plan is quicker."""
    certificate = StepCertificate(instance.name, instance.digest, target)
    try:
        certificate.check(instance, expired)
    except RefutedError:
        return None
    return None if expired() else certificate
