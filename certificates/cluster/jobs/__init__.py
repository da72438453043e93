"""Jobs on servers: the bound without rounding."""

EXACT_BOUND = "ddlopt.models.cluster.jobs.bounds:exact_jobs_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
