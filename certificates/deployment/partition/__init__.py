"""Partitions: kinds of proofs."""

OWN = "device_sets.certificate:SetsCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
