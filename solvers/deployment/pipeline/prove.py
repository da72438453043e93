"""Writes proofs for pipelines: the largest claim that the checker finds to hold."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.certificates.deployment.pipeline import PipelineCertificate
from ddlopt.models.deployment.pipeline.bounds import exact_pipeline_bound
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.errors import NotApplicableError, RefutedError

_ROUNDED = Fraction(1, 2**24)
"""What the checker's rounding may lose, and more."""
_TRIES = 12
"""Claims between the bound without a search and the target, where that cannot be proven; each halves the gap."""


def prove(
    instance: PipelineInstance, solution: PipelinePlan, target: Fraction, expired: Callable[[], bool]
) -> PipelineCertificate | None:
    """The best certificate that was found, up to ``target``; None where none holds, or there are too many ideals."""

    def proven(claim: Fraction) -> PipelineCertificate | None:
        certificate = PipelineCertificate(instance.name, instance.digest, claim)
        try:
            certificate.check(instance, expired)
        except RefutedError:
            return None
        return None if expired() else certificate

    low, best = exact_pipeline_bound(instance), None
    try:
        for claim in (target, target * (1 - _ROUNDED)):
            if (found := proven(claim)) is not None:
                return found
        high = target
        for _ in range(_TRIES):
            middle = Fraction(float((low + high) / 2))
            if expired() or not low < middle < high:
                break
            if (found := proven(middle)) is None:
                high = middle
            else:
                low, best = middle, found
    except NotApplicableError:
        return None
    return best
