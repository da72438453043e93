"""Proofs by choices of strategies: their file, and the check that goes through all choices."""

from ddlopt.certificates.codesign.certificate import ChoiceCertificate, not_gone_through

__all__ = ["ChoiceCertificate", "not_gone_through"]

OWN = "certificate:ChoiceCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
