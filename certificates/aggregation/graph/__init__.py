"""Aggregation trees in a network: the bound without rounding."""

EXACT_BOUND = "ddlopt.models.aggregation.graph.bounds:exact_graph_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
