"""Formulations of the problem ``deployment/step``."""
