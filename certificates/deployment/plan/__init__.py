"""Proofs for plans: the order in which groups are decided; the checker goes through the tree in whole numbers."""

from ddlopt.certificates.deployment.plan.certificate import PlanCertificate

__all__ = ["PlanCertificate"]

OWN = "certificate:PlanCertificate"
"""The kind of proofs that only this problem has: ``module:class``."""
