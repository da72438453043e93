"""Certificates of the branch and bound over designs: their file, and the check that trusts nothing in it."""

from ddlopt.certificates.topology.check import Checked, check_certificate
from ddlopt.certificates.topology.format import DesignCertificate

__all__ = ["Checked", "DesignCertificate", "check_certificate"]

OWN = "hops.certificate:HopCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""

EXACT_BOUND = "ddlopt.certificates.topology.exact_bounds:exact_lower_bound"
"""The combinatorial bound without any rounding, as a fraction: ``module:function``."""
