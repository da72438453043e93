"""Proofs of bounds of linear formulations: a tree of cases with multipliers at its leaves, checked in whole numbers."""

from ddlopt.models.linear_proof.check import Program, check_tree
from ddlopt.models.linear_proof.format import LinearCertificate
from ddlopt.models.linear_proof.program import program_of, step_of
from ddlopt.models.linear_proof.rows import ExactModel, exact_model

__all__ = ["ExactModel", "LinearCertificate", "Program", "check_tree", "exact_model", "program_of", "step_of"]
