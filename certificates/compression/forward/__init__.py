"""Proofs of orders before the next forward pass."""

OWN = "certificate:ForwardCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
