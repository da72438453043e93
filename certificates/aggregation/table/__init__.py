"""Lookup tables: the bound without rounding."""

EXACT_BOUND = "ddlopt.certificates.aggregation.table.exact_bounds:exact_table_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
