"""Sufficient factors: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.compression.sfb.exact_bounds:exact_sfb_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
