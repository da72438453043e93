"""Writes proofs for pipelines: the largest claim that the checker finds to hold."""

from collections.abc import Callable
from fractions import Fraction

from ddlopt.certificates.deployment.pipeline import PipelineCertificate
from ddlopt.models.deployment.pipeline.bounds import exact_pipeline_bound
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.errors import NotApplicableError, RefutedError

_ROUNDED = Fraction(1, 2**24)
"""What the checker's rounding may lose, and more."""
_TRIES = 16
"""Claims between the bound without a search and the target, where that does not hold."""
_FIRST = Fraction(1, 32)
"""The first of them, as a part of what is between. Steps are doubled: a claim that holds is checked soon, one that does
not takes ten times as long."""


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

    worth = evaluate_pipeline(instance, solution, exact=True).objective
    high = target if worth is None else min(target, Fraction(worth) * (1 - _ROUNDED))
    low, best = exact_pipeline_bound(instance), None
    step = (high - low) * _FIRST
    try:
        found = proven(high)
        for _ in range(_TRIES):
            if found is not None or expired():
                break
            claim = Fraction(float(low + min(step, (high - low) / 2)))
            if not low < claim < high:
                break
            if (better := proven(claim)) is None:
                high = claim
            else:
                low, best, step = claim, better, 2 * step
    except NotApplicableError:
        return None
    return found or best
