"""Placements in registers: proofs by going through all of them."""

OWN = "certificate:PlacementCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
