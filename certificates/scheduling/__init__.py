"""Proofs for schedules: prices in whole numbers."""

from ddlopt.certificates.scheduling.certificate import PriceCertificate

__all__ = ["PriceCertificate"]
