"""Formulations of the problem ``cluster/placement``."""
