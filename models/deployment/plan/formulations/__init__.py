"""Formulations of the problem ``deployment/plan``."""
