"""Formulations of the problem ``deployment/strategies``."""
