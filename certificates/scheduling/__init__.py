"""Proofs for schedules: prices in whole numbers."""

from ddlopt.certificates.scheduling.certificate import PriceCertificate

__all__ = ["PriceCertificate"]

OWN = "certificate:PriceCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.models.scheduling.times.bounds:exact_time_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
