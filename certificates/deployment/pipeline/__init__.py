"""Proofs for pipelines: which stages may follow each other below a time, over all ideals, in whole numbers."""

from ddlopt.certificates.deployment.pipeline.certificate import PipelineCertificate

__all__ = ["PipelineCertificate"]

OWN = "certificate:PipelineCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
