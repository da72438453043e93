"""Aggregating switches in a tree: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.aggregation.tree.exact_bounds:exact_tree_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
