"""Proofs for uniform plans of a training step: all of them are gone through in whole numbers."""

from ddlopt.certificates.deployment.step.certificate import StepCertificate

__all__ = ["StepCertificate"]

OWN = "certificate:StepCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.models.deployment.step.bounds:exact_step_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
