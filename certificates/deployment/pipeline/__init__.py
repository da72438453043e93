"""Proofs for pipelines: which stages may follow each other below a time, over all ideals, in whole numbers."""

from ddlopt.certificates.deployment.pipeline.certificate import PipelineCertificate

__all__ = ["PipelineCertificate"]

OWN = "certificate:PipelineCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.models.deployment.pipeline.bounds:exact_pipeline_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
