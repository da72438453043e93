"""Formulations of the problem ``deployment/microbatches``."""
