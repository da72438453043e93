"""Certificates of the branch and bound over designs: their file, and the check that trusts nothing in it."""

from ddlopt.models.topology.certificate.check import Checked, check_certificate
from ddlopt.models.topology.certificate.format import DesignCertificate

__all__ = ["Checked", "DesignCertificate", "check_certificate"]
