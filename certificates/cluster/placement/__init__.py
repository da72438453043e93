"""Hosts of gangs: the bound without rounding."""

EXACT_BOUND = "ddlopt.models.cluster.placement.bounds:exact_placement_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
