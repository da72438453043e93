"""Proofs of plans by levels."""

OWN = "certificate:LevelCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
