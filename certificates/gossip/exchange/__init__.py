"""Times of exchanges: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.gossip.exchange.exact_bounds:exact_exchange_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
