"""Partitions: kinds of proofs."""

OWN = "device_sets.certificate:SetsCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.certificates.deployment.partition.exact_bounds:exact_partition_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
