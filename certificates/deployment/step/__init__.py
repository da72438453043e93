"""Proofs for uniform plans of a training step: all of them are gone through in whole numbers."""

from ddlopt.certificates.deployment.step.certificate import StepCertificate

__all__ = ["StepCertificate"]

OWN = "certificate:StepCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
