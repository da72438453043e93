"""Placements in registers: proofs by going through all of them."""

OWN = "certificate:PlacementCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.certificates.aggregation.registers.exact_bounds:exact_registers_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
