"""Proofs for schedules: prices in whole numbers."""

from ddlopt.certificates.scheduling.certificate import PriceCertificate

__all__ = ["PriceCertificate"]

OWN = "certificate:PriceCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
