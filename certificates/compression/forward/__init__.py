"""Proofs of orders before the next forward pass."""

OWN = "certificate:ForwardCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.models.compression.forward.bounds:exact_forward_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
