"""Orders of microbatches: the bound without rounding."""

EXACT_BOUND = "ddlopt.models.deployment.microbatches.bounds:exact_order_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
