"""Proofs for schedules: prices in whole numbers."""

from ddlopt.models.scheduling.certificate.certificate import PriceCertificate

__all__ = ["PriceCertificate"]
