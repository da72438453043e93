"""Proofs by choices of strategies: their file, and the check that goes through all choices."""

from ddlopt.models.codesign.certificate.certificate import ChoiceCertificate, not_gone_through

__all__ = ["ChoiceCertificate", "not_gone_through"]
