"""Formulations of the problem ``deployment/partition``."""
