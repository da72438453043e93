"""Formulations of the problem ``cluster/jobs``."""
