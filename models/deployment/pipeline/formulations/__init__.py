"""Formulations of the problem ``deployment/pipeline``."""
