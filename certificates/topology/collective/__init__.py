"""Collectives on given links: proofs by a set of nodes or by prices of links."""

OWN = "certificate:CollectiveCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
