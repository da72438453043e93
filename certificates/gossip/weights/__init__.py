"""Proofs of mixing weights."""

OWN = "certificate:SpectralCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
