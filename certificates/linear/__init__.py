"""Proofs of bounds of linear formulations: a tree of cases with multipliers at its leaves, checked in whole numbers."""

from ddlopt.certificates.linear.check import Program, check_tree
from ddlopt.certificates.linear.format import LinearCertificate
from ddlopt.certificates.linear.program import program_of, step_of
from ddlopt.certificates.linear.rows import ExactModel, exact_model

__all__ = ["ExactModel", "LinearCertificate", "Program", "check_tree", "exact_model", "program_of", "step_of"]
