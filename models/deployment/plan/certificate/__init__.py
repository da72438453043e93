"""Proofs for plans: the order in which groups are decided; the checker goes through the tree in whole numbers."""

from ddlopt.models.deployment.plan.certificate.certificate import PlanCertificate

__all__ = ["PlanCertificate"]
