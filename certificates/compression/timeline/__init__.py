"""Proofs of plans on a timeline."""

OWN = "certificate:TimelineCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
