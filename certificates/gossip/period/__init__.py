"""Periods of averaging: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.gossip.period.exact_bounds:exact_period_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
