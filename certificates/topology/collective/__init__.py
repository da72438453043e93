"""Collectives on given links: proofs by a set of nodes or by prices of links."""

OWN = "certificate:CollectiveCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.models.topology.collective.bounds:exact_collective_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
