"""Proofs of plans on a timeline."""

OWN = "certificate:TimelineCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.certificates.compression.timeline.exact_bounds:exact_timeline_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
