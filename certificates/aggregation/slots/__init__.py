"""Memory of switches that jobs share: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.aggregation.slots.exact_bounds:exact_slots_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
