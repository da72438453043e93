"""Circulant graphs: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.gossip.circulant.exact_bounds:exact_circulant_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
